// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// latency is the histogram of what interceptions take, by kind.
type latency struct {
	vector *prometheus.HistogramVec
	of     map[Kind]*timings // of all kinds; it does not change
}

// timings are the observations of one kind.
type timings struct {
	observed  prometheus.Histogram
	buckets   []float64
	exemplars []exemplar // by bucket, the last one for all that takes longer
}

func (m *Metrics) declareLatency() latency {
	row := Metric{Name: "shai_decision_seconds", Type: "histogram", Labels: labels(kindLabel), Unit: seconds,
		Meaning: "Time that the monitor took, or a supervisor in its place."}
	m.declare(row)
	buckets := prometheus.ExponentialBuckets(1e-6, 4, 10)
	l := latency{of: map[Kind]*timings{}, vector: prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: row.Name, Help: row.Meaning, Buckets: buckets}, row.labelNames())}
	for _, kind := range Kinds {
		l.of[kind] = &timings{observed: l.vector.WithLabelValues(string(kind)).(prometheus.Histogram), buckets: buckets,
			exemplars: make([]exemplar, len(buckets)+1)}
	}
	return l
}

// collect passes the histograms on, each with its exemplars.
func (l latency) collect(to chan<- prometheus.Metric) {
	for _, kind := range Kinds {
		t := l.of[kind]
		all := make([]*exemplar, len(t.exemplars))
		for i := range t.exemplars {
			all[i] = &t.exemplars[i]
		}
		to <- withExemplars(t.observed, all...)
	}
}

// Interception is one involvement of the monitor. Its methods may be called concurrently, and of
// nil, which is no interception.
type Interception struct {
	timings *timings
	begun   time.Time

	mu     sync.Mutex
	ended  bool
	took   time.Duration
	record uint64 // 0: none yet
}

// End notes how long the interception took.
func (i *Interception) End() { i.end(time.Since(i.begun)) }

func (i *Interception) end(took time.Duration) {
	i.timings.observed.Observe(took.Seconds())
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended, i.took = true, took
	i.illustrate()
}

// Recorded implements [audit.Told]. Of several records of one interception, one is its example.
func (i *Interception) Recorded(number uint64) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.record = number
	i.illustrate()
}

// illustrate makes the record the example of how long it took, once both are known. Called with
// mu held.
func (i *Interception) illustrate() {
	if i.ended && i.record != 0 {
		bucket, _ := slices.BinarySearch(i.timings.buckets, i.took.Seconds())
		i.timings.exemplars[bucket].set(i.took.Seconds(), i.record)
	}
}
