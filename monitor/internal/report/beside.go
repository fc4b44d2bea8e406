// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"

	"shai.dev/monitor/internal/report/boards"
	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// beyond returns a reading that is no panel of the dashboard.
func beyond(r *boards.Range, id string) boards.Reading {
	if r != nil {
		for _, reading := range r.Beside {
			if reading.ID == id {
				return reading
			}
		}
	}
	return boards.Reading{}
}

// rangeLatency makes a histogram for each mode of Prometheus' cumulative one.
func rangeLatency(r *boards.Range) []sources.Latency {
	type bucket struct{ bound, below float64 }
	modes := map[string][]bucket{}
	for _, result := range beyond(r, "latency-distribution").Results {
		for _, series := range result {
			bound, err := strconv.ParseFloat(series.Labels["le"], 64)
			if err == nil && finite(series.Points[0].Value) {
				mode := cmp.Or(series.Labels["mode"], "by-hand")
				modes[mode] = append(modes[mode], bucket{bound, series.Points[0].Value})
			}
		}
	}
	var all []sources.Latency
	for _, mode := range sources.InOrder(modes) {
		buckets := modes[mode]
		slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
		latency := sources.Latency{Mode: mode, SessionLength: anyLength}
		before := 0.0
		for _, b := range buckets {
			if !math.IsInf(b.bound, 1) {
				latency.Bounds = append(latency.Bounds, b.bound*1000)
			}
			latency.Counts = append(latency.Counts, int64(math.Round(max(b.below-before, 0))))
			before = max(before, b.below)
		}
		if len(latency.Counts) == len(latency.Bounds)+1 && before > 0 {
			all = append(all, latency)
		}
	}
	return all
}

// rangeAnalyses yields the last analysis of each pipeline.
func rangeAnalyses(r *boards.Range) iter.Seq2[string, figure.Row] {
	reading := beyond(r, "analysis-size")
	by := map[string][]float64{}
	for i, result := range reading.Results {
		for _, series := range result {
			name := series.Labels["pipeline"]
			if by[name] == nil {
				by[name] = make([]float64, len(reading.Queries))
			}
			by[name][i] = series.Points[0].Value
		}
	}
	return func(yield func(string, figure.Row) bool) {
		for _, name := range sources.InOrder(by) {
			// In the order of the queries: time, accesses, instances.
			v := by[name]
			if v[0] > 0 && v[1] > 0 && finite(v[0]) && finite(v[1]) && finite(v[2]) &&
				!yield(name, analysisRow(name+" (Prometheus)", v[1], v[0], v[2])) {
				return
			}
		}
	}
}

// rangeHighlights are the panels at the head of the dashboard that say what was stopped.
func rangeHighlights(r boards.Range) []figure.Highlight {
	labels := map[string]string{"refused": "accesses refused in this range", "share": "of CPU time is enforcement's"}
	var found []figure.Highlight
	for _, panel := range r.Panels {
		label, wanted := labels[panel.ID]
		if !wanted || len(panel.Results) == 0 || len(panel.Results[0]) == 0 {
			continue
		}
		value := panel.Results[0][0].Points[0].Value
		if finite(value) {
			if panel.ID == "refused" {
				value = math.Round(value) // Prometheus computes the ends of the range
			}
			found = append(found, figure.Highlight{Value: shown(value, panel.Queries[0].Unit), Label: label,
				Good: panel.ID == "refused" && value > 0, Remark: "by Prometheus"})
		}
	}
	return found
}
