// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Measurement is one line of the benchmark's table.
type Measurement struct {
	Work   string `json:"work"`
	Paper  string `json:"paper"`
	Target string `json:"target"`
	// Measured in nanoseconds or bytes, as Unit says.
	Measured int64  `json:"measured"`
	Unit     string `json:"unit"` // "ns" or "bytes"
	Within   bool   `json:"within"`
	// CPU is the processor time of the same work, on a machine that others use too
	// the steadier figure; 0 where it was not taken.
	CPU int64 `json:"cpu,omitempty"`
	// Naive is the same work by the naive algorithm in the same run; 0 where it has
	// no counterpart. Scaled tells that it was measured on a part and multiplied.
	Naive  int64 `json:"naive,omitempty"`
	Scaled bool  `json:"scaled,omitempty"`
}

// Measurements is a benchmark's result.
type Measurements struct {
	Users     int           `json:"users"`
	Friends   int           `json:"friends"`
	Seed      uint64        `json:"seed"`
	Conduits  uint32        `json:"conduits"`
	Classes   uint32        `json:"classes"`
	Tuples    int           `json:"tuples"`
	CPUs      int           `json:"cpus"`
	ImportNS  int64         `json:"importNs"`  // facts into the durable catalog
	HeapBytes uint64        `json:"heapBytes"` // catalog and result, after a collection
	Lines     []Measurement `json:"lines"`
}

// samples of the operations that take less than a millisecond.
const samples = 500

// Benchmark fills an empty catalog with the workload and measures the analysis of
// it. progress is told each step's name; it may be nil.
func Benchmark(ctx context.Context, c *catalog.Catalog, w Workload, progress func(step string)) (*Measurements, error) {
	step := func(format string, arguments ...any) {
		if progress != nil {
			progress(fmt.Sprintf(format, arguments...))
		}
	}
	m := &Measurements{Users: w.Users, Friends: w.Friends, Seed: w.Seed, CPUs: runtime.GOMAXPROCS(0)}
	step("import %d users with %d friends", w.Users, w.Friends)
	if err := w.fill(c, m); err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	b := &benchmark{plan: w.Plan(), catalog: c, measured: m, now: time.Now()}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"indexer and search", b.single}, {"one user", b.user}, {"whole population", b.population}, {"one unfriending", b.unfriend}} {
		step("measure %s", part.name)
		if err := part.run(ctx); err != nil {
			return nil, fmt.Errorf("benchmark: %s: %w", part.name, err)
		}
	}
	return m, nil
}

func (w Workload) fill(c *catalog.Catalog, m *Measurements) error {
	if _, err := c.Apply(w.Bundle()); err != nil {
		return err
	}
	facts := w.Facts()
	begun := time.Now()
	if _, err := c.AddFacts(facts...); err != nil {
		return err
	}
	m.ImportNS = time.Since(begun).Nanoseconds()
	if _, _, err := c.Register(w.Documents()); err != nil {
		return err
	}
	s := c.State()
	m.Conduits, m.Classes, m.Tuples = s.Conduits(), s.Classes(), s.Facts()
	return nil
}

type benchmark struct {
	plan     *Plan
	catalog  *catalog.Catalog
	measured *Measurements
	now      time.Time
	result   *Result
}

func (b *benchmark) add(work, paper, target string, limit, measured, naive int64, unit string, scaled bool) {
	b.measured.Lines = append(b.measured.Lines, Measurement{
		Work: work, Paper: paper, Target: target, Measured: measured, Unit: unit, Within: measured < limit, Naive: naive, Scaled: scaled,
	})
}

// engine is ready to analyse: the classes are prepared once for all instances.
func (b *benchmark) engine() *engine {
	e := newEngine(b.plan, b.catalog.State(), b.now)
	for _, set := range b.plan.Sets {
		e.targets.prepare(set.Catalog)
	}
	return e
}

// single measures the tasks without parameters, preparation included.
func (b *benchmark) single(ctx context.Context) error {
	few := *b.plan
	few.Tasks = few.Tasks[:2]
	begun, cpu := time.Now(), processorTime()
	if _, err := Run(ctx, &few, b.catalog.State(), Options{Now: b.now}); err != nil {
		return err
	}
	elapsed := time.Since(begun).Nanoseconds()
	cpu = processorTime() - cpu
	begun = time.Now()
	if _, err := RunNaive(ctx, &few, b.catalog.State(), Options{Now: b.now}); err != nil {
		return err
	}
	work := fmt.Sprintf("indexer and search, %d classes", b.measured.Classes)
	b.add(work, "< 2 s", "< 0.2 s", 200e6, elapsed, time.Since(begun).Nanoseconds(), "ns", false)
	b.measured.Lines[len(b.measured.Lines)-1].CPU = cpu
	return nil
}

// user measures users one after the other, by the median.
func (b *benchmark) user(ctx context.Context) error {
	e := b.engine()
	instances := b.plan.Instances(b.catalog.State())[2:]
	var times []int64
	for i := range min(samples, len(instances)) {
		begun := time.Now()
		e.analyse(instances[i*len(instances)/samples%len(instances)], 1)
		times = append(times, time.Since(begun).Nanoseconds())
	}
	begun := time.Now()
	if _, err := e.naive(ctx, instances[0]); err != nil {
		return err
	}
	naive := time.Since(begun).Nanoseconds()
	b.add("one user", "1.2 s on RAM disk, 90.5 s on a disk", "< 1 ms", 1e6, median(times), naive, "ns", false)
	b.measured.Lines[len(b.measured.Lines)-1].Work += fmt.Sprintf(" (median of %d)", len(times))
	return nil
}

// processorTime is what this process has used of all CPUs, in nanoseconds.
func processorTime() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func median(values []int64) int64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// population measures the full run; the naive algorithm's time is one user's times
// the users, for it would take hours.
func (b *benchmark) population(ctx context.Context) error {
	begun, cpu := time.Now(), processorTime()
	result, err := Run(ctx, b.plan, b.catalog.State(), Options{Now: b.now})
	if err != nil {
		return err
	}
	elapsed := time.Since(begun).Nanoseconds()
	cpu = processorTime() - cpu
	b.result = result
	oneNaive := b.measured.Lines[len(b.measured.Lines)-1].Naive
	users := int64(b.measured.Users)
	b.add(fmt.Sprintf("whole population, %d users", users), "13 hours on RAM disk", "< 30 s", 30e9, elapsed, oneNaive*users, "ns", true)
	b.measured.Lines[len(b.measured.Lines)-1].CPU = cpu
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.measured.HeapBytes = memory.HeapAlloc
	b.add("memory, catalog and result", "-", "< 2 GB", 2<<30, int64(memory.HeapAlloc), 0, "bytes", false) //nolint:gosec // far below 2^63
	stored := 0
	for _, c := range result.instances[2:] {
		stored += len(c.encode(nil))
	}
	b.add("stored per user", "12.9 MB of links + 110 KB", "< 10 KB", 10<<10, int64(stored/max(1, len(result.instances)-2)), 0, "bytes", false)
	return nil
}

// unfriend measures removals: the durable change of the catalog, which waits for
// the disk, and the update of the capability sets, apart.
func (b *benchmark) unfriend(ctx context.Context) error {
	var durable, update []int64
	for i := range min(100, b.measured.Users) {
		fact, ok := b.friendship(i * b.measured.Users / 100)
		if !ok {
			continue
		}
		begun := time.Now()
		change, err := b.catalog.RemoveFacts(fact)
		if err != nil {
			return err
		}
		durable = append(durable, time.Since(begun).Nanoseconds())
		begun = time.Now()
		next, affected, err := b.result.Update(ctx, change, Options{Now: b.now})
		if err != nil {
			return err
		}
		update = append(update, time.Since(begun).Nanoseconds())
		if len(affected) != 1 {
			return fmt.Errorf("an unfriending affected %d instances; expected 1", len(affected))
		}
		b.result = next
	}
	if len(update) == 0 {
		return nil
	}
	b.add(fmt.Sprintf("one unfriending: capability sets (median of %d)", len(update)), "-", "< 1 ms", 1e6, median(update), 0, "ns", false)
	b.add("one unfriending: made durable (waits for the disk)", "-", "-", 1<<62, median(durable), 0, "ns", false)
	return nil
}

// friendship is one of a user's.
func (b *benchmark) friendship(user int) (found policy.Fact, ok bool) {
	pattern := policy.Pattern{Conduit: "friends/" + userName(user), Relation: "friend", Arguments: make([]policy.Value, 1)}
	b.catalog.State().Lookup(pattern, func(fact policy.Fact) bool {
		found, ok = fact, true
		found.Arguments = slices.Clone(fact.Arguments)
		return false
	})
	return found, ok
}

// Text is the table.
func (m *Measurements) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d users with %d friends, %d documents in %d classes, %d facts (imported in %s); seed %d, %d CPUs\n\n",
		m.Users, m.Friends, m.Conduits, m.Classes, m.Tuples, time.Duration(m.ImportNS).Round(time.Millisecond), m.Seed, m.CPUs)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "work\tpaper\ttarget\tmeasured\t\tprocessor\tnaive")
	for _, line := range m.Lines {
		verdict := "met"
		if !line.Within {
			verdict = "missed"
		}
		if line.Target == "-" {
			verdict = ""
		}
		naive, cpu := "-", "-"
		if line.CPU > 0 {
			cpu = quantity(line.CPU, "ns")
		}
		if line.Naive > 0 {
			naive = quantity(line.Naive, line.Unit)
		}
		if line.Scaled {
			naive += " (one user's × users)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line.Work, line.Paper, line.Target, quantity(line.Measured, line.Unit), verdict, cpu, naive)
	}
	_ = table.Flush() // to memory
	return out.String()
}

func quantity(value int64, unit string) string {
	switch {
	case unit == "ns" && value >= int64(time.Second):
		return time.Duration(value).Round(10 * time.Millisecond).String()
	case unit == "ns":
		return time.Duration(value).Round(time.Microsecond).String()
	case value >= 10<<20:
		return fmt.Sprintf("%d MB", value>>20)
	default:
		return fmt.Sprintf("%d bytes", value)
	}
}
