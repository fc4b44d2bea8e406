// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// BenchmarkScrape compares decisions while nobody scrapes with decisions while somebody does, in
// slices that follow each other in random order. It prints medians of the ratios within rounds,
// with the interval that holds 95 % of the medians of resampled rounds. The scrapers run in the
// same process: what they cost is part of it.
func BenchmarkScrape(b *testing.B) {
	const rounds, slice = 15, time.Second
	p := bare(b)
	p.analyze()
	server := servedMetrics(b, p)
	conduit, found := p.services.conduitNamed("/diary/alice/1.txt")
	holds := p.setOf("worker(alice, de)")
	if !found || holds == nil {
		b.Fatal("alice has no diary")
	}
	who := actor{Subject: holds.subject, mode: wire.ModeDynamic}
	decide := func() {
		asked := p.counts.Begin(metrics.Open)
		if decided := p.decide(asked, who, policy.Read, conduit); !decided.Allowed {
			b.Fatal(decided.Reason)
		}
		asked.End()
	}
	conditions := []scraping{
		{"nobody", func(context.Context) {}},
		{"nobody, again", func(context.Context) {}},
		{"1 a second", func(ctx context.Context) { scrapeOften(ctx, server, 1, 1) }},
		{"1,000 a second", func(ctx context.Context) { scrapeOften(ctx, server, 100, 10) }},
		{"64 that never read", func(ctx context.Context) { neverRead(ctx, server, 64) }},
	}
	rows := map[string][]decided{}
	for range rounds {
		for _, at := range rand.Perm(len(conditions)) {
			one := conditions[at]
			rows[one.name] = append(rows[one.name], one.during(slice, decide))
		}
	}
	fmt.Printf("%-20s %-22s %-22s %s\n", "scrapes", "decisions per second", "median latency", "99 % latency")
	for _, one := range conditions[1:] {
		fmt.Printf("%-20s %-22s %-22s %s\n", one.name,
			ratio(rows, one.name, func(d decided) float64 { return d.rate }),
			ratio(rows, one.name, func(d decided) float64 { return d.median }),
			ratio(rows, one.name, func(d decided) float64 { return d.high }))
	}
	alone := rows["nobody"]
	fmt.Printf("nobody: %.0f decisions/s, %.2f µs, 99 %%: %.2f µs\n",
		middle(alone, func(d decided) float64 { return d.rate }),
		1e6*middle(alone, func(d decided) float64 { return d.median }),
		1e6*middle(alone, func(d decided) float64 { return d.high }))
}

// servedMetrics serves metrics of the pipeline and of some more.
func servedMetrics(b *testing.B, p *fixture) net.Addr {
	b.Helper()
	for i := range 20 {
		other := p.services.Metrics.Pipeline(fmt.Sprint("other", i), metrics.Names{Tasks: []string{"worker"},
			Conduits: []string{"documents"}, Policies: []metrics.Policy{{Name: "friends"}}})
		for _, reason := range metrics.Reasons {
			other.Denied("worker", "friends", reason)
		}
		other.Decided("documents", "read", true)
	}
	p.services.Metrics.ReadFrom(p.Read)
	server := httptest.NewServer(p.services.Metrics.Handler())
	b.Cleanup(server.Close)
	return server.Listener.Addr()
}

// scraping is what others do meanwhile, until its context ends.
type scraping struct {
	name string
	run  func(context.Context)
}

// decided is how decisions went in a slice, in seconds.
type decided struct{ rate, median, high float64 }

func (s scraping) during(slice time.Duration, decide func()) decided {
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { s.run(ctx) })
	var took []float64
	begun := time.Now()
	for before := begun; before.Sub(begun) < slice; {
		decide()
		now := time.Now()
		took = append(took, now.Sub(before).Seconds())
		before = now
	}
	over := time.Since(begun).Seconds()
	stop()
	group.Wait()
	slices.Sort(took)
	return decided{float64(len(took)) / over, took[len(took)/2], took[len(took)*99/100]}
}

// scrapeOften scrapes by so many connections, each so many times a second.
func scrapeOften(ctx context.Context, server net.Addr, connections, each int) {
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			ticks := time.NewTicker(time.Second / time.Duration(each))
			defer ticks.Stop()
			connection, err := net.Dial("tcp", server.String())
			if err != nil {
				return
			}
			defer connection.Close()
			answers := bufio.NewReader(connection)
			for ctx.Err() == nil {
				if _, err := io.WriteString(connection, "GET /metrics HTTP/1.1\r\nHost: monitor\r\n\r\n"); err != nil {
					return
				}
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				select {
				case <-ctx.Done():
				case <-ticks.C:
				}
			}
		})
	}
	group.Wait()
}

// neverRead asks by so many connections and reads none of the answers.
func neverRead(ctx context.Context, server net.Addr, connections int) {
	for range connections {
		connection, err := net.Dial("tcp", server.String())
		if err != nil {
			return
		}
		defer connection.Close()
		for range 64 { // more than the sockets hold the answers of
			if _, err := io.WriteString(connection, "GET /metrics HTTP/1.1\r\nHost: monitor\r\n\r\n"); err != nil {
				return
			}
		}
	}
	<-ctx.Done()
}

func middle(of []decided, value func(decided) float64) float64 {
	list := make([]float64, len(of))
	for i, one := range of {
		list[i] = value(one)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// ratio compares a condition with nobody, round by round.
func ratio(rows map[string][]decided, name string, value func(decided) float64) string {
	ratios := make([]decided, len(rows[name]))
	for i, one := range rows[name] {
		ratios[i].rate = value(one) / value(rows["nobody"][i])
	}
	rate := func(d decided) float64 { return d.rate }
	var medians []float64
	for range 2000 {
		again := make([]decided, len(ratios))
		for i := range again {
			again[i] = ratios[rand.IntN(len(ratios))]
		}
		medians = append(medians, middle(again, rate))
	}
	slices.Sort(medians)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", middle(ratios, rate), medians[len(medians)*25/1000], medians[len(medians)*975/1000])
}
