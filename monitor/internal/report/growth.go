// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// analyses returns the points of the growth: from AnalysisRuns, and from Prometheus.
func analyses(in Input) []figure.Row {
	var rows []figure.Row
	for _, run := range in.Given.Analyses {
		if run.Status.Expected > 0 && run.Status.DurationMilliseconds > 0 {
			rows = append(rows, analysisRow(run.Metadata.Name, float64(run.Status.Expected),
				float64(run.Status.DurationMilliseconds)/1000, float64(instances(run))))
		}
	}
	for pipeline, row := range rangeAnalyses(in.Range) {
		if !listed(in.Given.Analyses, pipeline, *row.Cells[0].Value) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b figure.Row) int { return cmp.Compare(*a.Cells[0].Value, *b.Cells[0].Value) })
	return rows
}

// listed reports whether the objects have an analysis of so many accesses of a pipeline: what
// Prometheus has of it is the same one.
func listed(runs []sources.AnalysisRun, pipeline string, accesses float64) bool {
	return slices.ContainsFunc(runs, func(run sources.AnalysisRun) bool {
		_, name, qualified := strings.Cut(run.Spec.Pipeline, "/")
		same := run.Spec.Pipeline == pipeline || qualified && name == pipeline
		return same && float64(run.Status.Expected) == accesses
	})
}

func analysisRow(name string, accesses, seconds, instances float64) figure.Row {
	return figure.Row{Name: name, Cells: []figure.Cell{
		figure.Number(accesses), figure.Number(seconds), figure.Number(instances),
		figure.Number(seconds * 1e9 / max(accesses, 1))}}
}

func instances(run sources.AnalysisRun) int64 {
	most := int64(0)
	for _, member := range run.Status.Members {
		most = max(most, member.Instances)
	}
	return most
}

// growth shows how the time of the analysis grows with what it decides.
func growth(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "analysis", Title: "How the offline analysis grows",
		Text: "The analysis decides every expected access: each instance of a task with each conduit. It takes no time from " +
			"a session.",
	}
	rows := analyses(in)
	if len(rows) == 0 {
		return section, &figure.Absent{What: section.Title,
			Remedy: "give AnalysisRuns that have ended: kubectl get analysisruns -o json | shai report -"}
	}
	f := figure.Figure{
		ID: "analysis-growth", Title: "Time of an analysis by the accesses that it decides",
		Caption: "Both axes are logarithmic: a line of slope 1 is a time that grows in proportion.",
		Kind:    figure.Points, X: figure.Axis{Label: "expected accesses", Log: true},
		Y: figure.Axis{Label: "time", Unit: "s", Log: true},
		Columns: []figure.Column{{Title: "expected accesses"}, {Title: "time, s", Colour: "modes-shai"},
			{Title: "instances", Hidden: true}, {Title: "ns for each access", Hidden: true}},
	}
	if *rows[0].Cells[0].Value == *rows[len(rows)-1].Cells[0].Value {
		f.Notes = append(f.Notes, "Only one size was analysed: analyses of pipelines of other sizes beside it show the growth.")
	}
	f.Rows = spread(rows, &f.Notes)
	section.Figures = []figure.Figure{f}
	return section, nil
}

// spread keeps rows from the first to the last at equal distances, and says how many there are.
func spread(rows []figure.Row, notes *[]string) []figure.Row {
	if len(rows) <= most {
		return rows
	}
	*notes = append(*notes, fmt.Sprintf("%d of %d analyses, from the smallest to the largest.", most, len(rows)))
	kept := make([]figure.Row, most)
	for i := range kept {
		kept[i] = rows[i*(len(rows)-1)/(most-1)]
	}
	return kept
}
