// SPDX-License-Identifier: BSD-2-Clause

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metric is a row of the table of metrics: all that others know about it.
type Metric struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"` // "counter", "gauge" or "histogram"
	Labels  []Label `json:"labels"`
	Unit    string  `json:"unit"` // "seconds" or "bytes"; empty for counts, and for metrics that only carry labels
	Meaning string  `json:"meaning"`
}

// Label is a label, and the meaning of its values.
type Label struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// Units of metrics.
const (
	noUnit  = ""
	seconds = "seconds"
	inBytes = "bytes"
)

// Table returns every metric of the monitor, in the order of declaration.
func Table() []Metric { return New().table }

// labels returns labels for the declaration of one metric.
func labels(list ...Label) []Label { return append([]Label{}, list...) }

// declare adds a row to the table.
func (m *Metrics) declare(row Metric) *prometheus.Desc {
	m.table = append(m.table, row)
	return prometheus.NewDesc(row.Name, row.Meaning, row.labelNames(), nil)
}

func (row Metric) labelNames() []string {
	names := make([]string, len(row.Labels))
	for i, label := range row.Labels {
		names[i] = label.Name
	}
	return names
}

// counter declares a metric that counts events of the monitor.
func (m *Metrics) counter(name, meaning string, list ...Label) *Counter {
	row := Metric{Name: name, Type: "counter", Labels: labels(list...), Unit: noUnit, Meaning: meaning}
	c := &Counter{name: name, description: m.declare(row), labels: row.labelNames(), at: len(m.counters)}
	if c.pipelines = len(list) > 0 && list[0] == pipelineLabel; c.pipelines {
		c.labels = c.labels[1:]
	}
	m.counters = append(m.counters, c)
	return c
}

// perPipeline declares a metric that counts events of each pipeline.
func (m *Metrics) perPipeline(name, meaning string, list ...Label) *Counter {
	return m.counter(name, meaning, append(labels(pipelineLabel), list...)...)
}

// histogram declares a metric of durations, with the upper bounds of its buckets.
func (m *Metrics) histogram(name, meaning string, buckets []float64) prometheus.Histogram {
	m.declare(Metric{Name: name, Type: "histogram", Labels: labels(), Unit: seconds, Meaning: meaning})
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: meaning, Buckets: buckets})
}

// gauge declares a metric that is read when somebody asks.
func (m *Metrics) gauge(name, unit, meaning string, list ...Label) *Reading {
	return m.reading(Metric{Name: name, Type: "gauge", Labels: labels(list...), Unit: unit, Meaning: meaning},
		prometheus.GaugeValue)
}

// total declares a counter that something else keeps, and that is read when somebody asks.
func (m *Metrics) total(name, unit, meaning string, list ...Label) *Reading {
	return m.reading(Metric{Name: name, Type: "counter", Labels: labels(list...), Unit: unit, Meaning: meaning},
		prometheus.CounterValue)
}

func (m *Metrics) reading(row Metric, kind prometheus.ValueType) *Reading {
	r := &Reading{name: row.Name, description: m.declare(row), kind: kind, labels: row.labelNames(), merge: sum}
	m.readings = append(m.readings, r)
	return r
}
