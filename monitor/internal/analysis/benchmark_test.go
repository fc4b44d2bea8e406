// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"flag"
	"testing"

	"shai.dev/monitor/internal/catalog"
)

var populationSize = flag.Int("population", 400, "users of BenchmarkPopulation and TestBenchmark; the targets are for 40000")

func TestBenchmark(t *testing.T) {
	c, err := catalog.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := Benchmark(context.Background(), c, Workload{Users: *populationSize, Friends: min(100, *populationSize/4), Seed: 1}, func(step string) { t.Log(step) })
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + m.Text())
	if len(m.Lines) != 7 || m.Classes < uint32(2**populationSize) {
		t.Errorf("%d lines, %d classes", len(m.Lines), m.Classes)
	}
}

func BenchmarkPopulation(b *testing.B) {
	c, err := catalog.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w := Workload{Users: *populationSize, Friends: min(100, *populationSize/4), Seed: 1}
	if err := w.fill(c, &Measurements{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Run(context.Background(), w.Plan(), c.State(), Options{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
