// SPDX-License-Identifier: BSD-2-Clause

// Package top turns what a monitor says about itself at two times into what happened in
// between: rates, and what enforcement took. It does no input or output.
package top

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"shai.dev/monitor/internal/monitor/api"
)

// Sample is what a monitor said at one time: its status, and the metrics of the same
// moment. Make it with [NewSample]. It does not change afterwards.
type Sample struct {
	at     time.Time
	status api.Status
	series map[string]map[string]series // by metric, then by labels
}

// series is one series of a counter or gauge.
type series struct {
	labels map[string]string
	value  float64
}

// NewSample reads metrics in Prometheus' text format. The error says that they are not.
func NewSample(at time.Time, status api.Status, metrics []byte) (Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return Sample{}, fmt.Errorf("read the monitor's metrics: %w", err)
	}
	sample := Sample{at: at, status: status, series: map[string]map[string]series{}}
	for name, family := range families {
		found := map[string]series{}
		for _, metric := range family.GetMetric() {
			one := seriesOf(metric)
			found[identity(one.labels)] = one
		}
		sample.series[name] = found
	}
	return sample, nil
}

func seriesOf(metric *dto.Metric) series {
	one := series{labels: map[string]string{}}
	for _, label := range metric.GetLabel() {
		one.labels[label.GetName()] = label.GetValue()
	}
	switch {
	case metric.GetCounter() != nil:
		one.value = metric.GetCounter().GetValue()
	case metric.GetGauge() != nil:
		one.value = metric.GetGauge().GetValue()
	}
	return one
}

// identity returns one text for equal labels, and different ones for others.
func identity(labels map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&text, "%q=%q,", name, labels[name])
	}
	return text.String()
}

// labels select series: those that have all these values.
type labels map[string]string

func (l labels) match(one series) bool {
	for name, value := range l {
		if one.labels[name] != value {
			return false
		}
	}
	return true
}

// sum adds up the values of the series that the labels select. found tells whether there
// is one.
func (s Sample) sum(metric string, wanted labels) (total float64, found bool) {
	for _, one := range s.series[metric] {
		if wanted.match(one) {
			total += one.value
			found = true
		}
	}
	return total, found
}

// increase returns by how much counters have grown since another sample. A counter that
// has begun anew, or was not there, has grown by its value.
func (s Sample) increase(since Sample, metric string, wanted labels) float64 {
	var total float64
	for key, one := range s.series[metric] {
		if !wanted.match(one) {
			continue
		}
		grown := one.value
		if before, ok := since.series[metric][key]; ok && before.value <= one.value && s.continues(since) {
			grown -= before.value
		}
		total += grown
	}
	return total
}

// continues tells whether both samples are of one run of the monitor.
func (s Sample) continues(since Sample) bool { return s.status.Started.Equal(since.status.Started) }
