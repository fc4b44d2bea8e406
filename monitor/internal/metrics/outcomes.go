// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"maps"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes counts accesses by their outcome: those that the monitor decided on, and the
// documents that the kernel opened natively after a decision in advance. The workers
// count the latter themselves, and say their number at the session's end,
// so they show the load but are no evidence.
// It is safe for concurrent use.
type Outcomes struct {
	description *prometheus.Desc

	mu    sync.Mutex
	count map[outcomeKey]uint64
}

type outcomeKey struct {
	pipeline string
	allowed  bool
}

func newOutcomes() *Outcomes {
	return &Outcomes{
		description: prometheus.NewDesc("shai_decisions_total",
			"Accesses that were decided on, including natively opened documents, by outcome.",
			[]string{"pipeline", "allowed"}, nil),
		count: map[outcomeKey]uint64{},
	}
}

// Add counts accesses of one outcome.
func (o *Outcomes) Add(pipeline string, allowed bool, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[outcomeKey{pipeline, allowed}] += number
}

// Describe implements [prometheus.Collector].
func (o *Outcomes) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- o.description }

// Collect implements [prometheus.Collector].
func (o *Outcomes) Collect(metrics chan<- prometheus.Metric) {
	o.mu.Lock()
	totals := maps.Clone(o.count)
	o.mu.Unlock()
	for key, count := range totals {
		metrics <- prometheus.MustNewConstMetric(o.description, prometheus.CounterValue, float64(count), key.pipeline,
			strconv.FormatBool(key.allowed))
	}
}
