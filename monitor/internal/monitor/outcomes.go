// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcomes counts accesses by their outcome: those that the monitor decided on, and the
// documents that the kernel opened natively after a decision in advance. The workers
// count the latter themselves (see counts.go), so they show the load but are no evidence.
// It is safe for concurrent use.
type outcomes struct {
	description *prometheus.Desc

	mu    sync.Mutex
	count map[outcomeKey]uint64
	live  map[*sessionCounts]struct{} // of sessions that have not ended
}

type outcomeKey struct {
	pipeline string
	allowed  bool
}

func newOutcomes() *outcomes {
	return &outcomes{
		description: prometheus.NewDesc("shai_decisions_total",
			"Accesses that were decided on, including natively opened documents, by outcome.",
			[]string{"pipeline", "allowed"}, nil),
		count: map[outcomeKey]uint64{}, live: map[*sessionCounts]struct{}{},
	}
}

func (o *outcomes) add(pipeline string, allowed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[outcomeKey{pipeline, allowed}]++
}

// watch includes the counts of a session's worker from now on.
func (o *outcomes) watch(counts *sessionCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.live[counts] = struct{}{}
}

// retire adds up the counts of a session's worker, when it can count no more, and closes
// the page. It is no error if the session is not watched.
func (o *outcomes) retire(counts *sessionCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, watched := o.live[counts]; !watched {
		return
	}
	o.count[outcomeKey{counts.pipeline, true}] += counts.nativeOpens(time.Now())
	delete(o.live, counts)
	counts.page.Close()
}

// Describe implements [prometheus.Collector].
func (o *outcomes) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- o.description }

// Collect implements [prometheus.Collector].
func (o *outcomes) Collect(metrics chan<- prometheus.Metric) {
	o.mu.Lock()
	totals := make(map[outcomeKey]uint64, len(o.count))
	for key, count := range o.count {
		totals[key] = count
	}
	for counts := range o.live {
		totals[outcomeKey{counts.pipeline, true}] += counts.nativeOpens(time.Now())
	}
	o.mu.Unlock()
	for key, count := range totals {
		metrics <- prometheus.MustNewConstMetric(o.description, prometheus.CounterValue, float64(count), key.pipeline,
			strconv.FormatBool(key.allowed))
	}
}
