// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// values are those of a series' labels in the order of declaration, without the pipeline.
type values [3]string

// Counter is a metric that counts events, by its labels. Each scope has series of its own.
type Counter struct {
	name        string
	description *prometheus.Desc
	labels      []string // without the pipeline
	pipelines   bool     // whether it has the pipeline as its first label
	at          int      // of its series in a scope
}

// in returns the series of a scope with these values. It allocates nothing unless the series is new.
func (c *Counter) in(s *scope, of values) *series {
	return s.series[c.at].get(of, newSeries)
}

// begin begins the series of a scope that are new at 0.
func (c *Counter) begin(s *scope, of ...values) { s.series[c.at].fill(of, newSeries) }

func (c *Counter) all(s *scope) map[values]*series { return s.series[c.at].all() }

// collect passes the series of a scope on.
func (c *Counter) collect(s *scope, to chan<- prometheus.Metric) {
	for of, one := range c.all(s) {
		var texts []string
		if c.pipelines {
			texts = append(texts, s.pipeline)
		}
		texts = append(texts, of[:len(c.labels)]...)
		to <- withExemplars(prometheus.MustNewConstMetric(c.description, prometheus.CounterValue,
			float64(one.count.Load()), texts...), &one.exemplar)
	}
}

// series is one counter. It is safe for concurrent use.
type series struct {
	count    atomic.Uint64
	exemplar exemplar
}

func newSeries() *series { return &series{} }

func (s *series) add(number uint64) { s.count.Add(number) }

// Recorded implements [audit.Told]: the record is the series' example from now on.
func (s *series) Recorded(number uint64) { s.exemplar.set(1, number) }

// exemplar is the last audit record about what a metric counts.
type exemplar struct {
	last atomic.Pointer[prometheus.Exemplar]
}

// set makes a record the example of a value.
func (e *exemplar) set(value float64, record uint64) {
	e.last.Store(&prometheus.Exemplar{Value: value, Timestamp: time.Now(),
		Labels: prometheus.Labels{"audit": strconv.FormatUint(record, 10)}})
}

// withExemplars adds exemplars to a metric, as far as there are any.
func withExemplars(metric prometheus.Metric, all ...*exemplar) prometheus.Metric {
	var list []prometheus.Exemplar
	for _, one := range all {
		if last := one.last.Load(); last != nil {
			list = append(list, *last)
		}
	}
	if len(list) == 0 {
		return metric
	}
	with, err := prometheus.NewMetricWithExemplars(metric, list...)
	if err != nil {
		return prometheus.NewInvalidMetric(metric.Desc(), err)
	}
	return with
}

// growing is a small map that is read without a lock, and copied when it changes.
type growing[K comparable, V any] struct {
	mu      sync.Mutex // held while it changes
	current atomic.Pointer[map[K]V]
}

func (g *growing[K, V]) all() map[K]V {
	if current := g.current.Load(); current != nil {
		return *current
	}
	return nil
}

// get returns the value of a key, which made makes if there is none.
func (g *growing[K, V]) get(key K, made func() V) V {
	if value, found := g.all()[key]; found {
		return value
	}
	return g.fill([]K{key}, made)[key]
}

// fill makes the values that keys lack, and returns the map that has them.
func (g *growing[K, V]) fill(keys []K, made func() V) map[K]V {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := map[K]V{}
	maps.Copy(next, g.all())
	for _, key := range keys {
		if _, found := next[key]; !found {
			next[key] = made()
		}
	}
	g.current.Store(&next)
	return next
}

// remove removes what a condition holds for.
func (g *growing[K, V]) remove(which func(K, V) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := maps.Clone(g.all())
	maps.DeleteFunc(next, which)
	g.current.Store(&next)
}
