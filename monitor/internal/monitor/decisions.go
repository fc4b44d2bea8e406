// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// decisions counts accesses by their outcome: those that the monitor decided, and the
// documents that the kernel opened natively because they had been decided ahead. The
// workers count the latter themselves (see counts.go): they are for judging load, not for
// evidence. Safe for concurrent use.
type decisions struct {
	description *prometheus.Desc

	mu    sync.Mutex
	count map[outcomeKey]uint64
	live  map[*sessionCounts]struct{} // of sessions that have not ended
}

type outcomeKey struct {
	pipeline string
	allowed  bool
}

func newDecisions() *decisions {
	return &decisions{
		description: prometheus.NewDesc("shai_decisions_total",
			"Accesses that were decided, natively opened documents among them, by outcome.",
			[]string{"pipeline", "allowed"}, nil),
		count: map[outcomeKey]uint64{}, live: map[*sessionCounts]struct{}{},
	}
}

func (d *decisions) add(pipeline string, allowed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count[outcomeKey{pipeline, allowed}]++
}

// watch reads what a session's worker counts from now on.
func (d *decisions) watch(counts *sessionCounts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[counts] = struct{}{}
}

// retire keeps what a session's worker has counted, once it can count no more, and
// closes the page. One that is not watched is no error.
func (d *decisions) retire(counts *sessionCounts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, watched := d.live[counts]; !watched {
		return
	}
	d.count[outcomeKey{counts.pipeline, true}] += counts.nativeOpens(time.Now())
	delete(d.live, counts)
	counts.page.Close()
}

// Describe implements [prometheus.Collector].
func (d *decisions) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- d.description }

// Collect implements [prometheus.Collector].
func (d *decisions) Collect(metrics chan<- prometheus.Metric) {
	d.mu.Lock()
	totals := make(map[outcomeKey]uint64, len(d.count))
	for key, count := range d.count {
		totals[key] = count
	}
	for counts := range d.live {
		totals[outcomeKey{counts.pipeline, true}] += counts.nativeOpens(time.Now())
	}
	d.mu.Unlock()
	for key, count := range totals {
		metrics <- prometheus.MustNewConstMetric(d.description, prometheus.CounterValue, float64(count), key.pipeline, strconv.FormatBool(key.allowed))
	}
}
