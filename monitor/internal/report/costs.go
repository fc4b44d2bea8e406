// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"strings"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

const (
	baseline = "baseline"

	belowNoise = "below the noise"
	imprecise  = "imprecise"
)

// costs shows what each mode costs in one run.
func costs(results sources.Results, several bool) figure.Section {
	section := figure.Section{
		ID: "costs", Title: "What enforcement costs",
		Text: "The same load ran in every mode, in short slices that alternate. control is a second installation " +
			"without enforcement: what it differs by from baseline is the resolution of the run, and not a cost. " +
			"A bracket is the interval that holds the figure with 95 % confidence. Below the noise: it includes zero. Imprecise: " +
			"it is wider than the effect.",
	}
	if several {
		section.ID += "-" + slug(results.Name)
		section.Title += ": " + results.Name
	}
	prefix := section.ID
	section.Figures = []figure.Figure{
		added(prefix, results), perQuery(prefix, results), throughput(prefix, results), comparison(prefix, results),
	}
	if f, found := besideSearches(prefix, results.Beside); found {
		section.Figures = append(section.Figures, f)
	}
	return section
}

// series are the modes of a run, in order.
func series(results sources.Results) []string { return sources.InOrder(results.Throughput[0].Modes) }

func columnsOf(modes []string) []figure.Column {
	columns := make([]figure.Column, len(modes))
	for i, mode := range modes {
		columns[i] = figure.Column{Title: mode, Colour: "modes-" + mode}
	}
	return columns
}

func estimated(e sources.Estimate) figure.Cell { return figure.Interval(e.Value, e.Low, e.High) }

// optional is estimated for what may not have been measured.
func optional(e *sources.Estimate) figure.Cell {
	if e == nil {
		return figure.None()
	}
	return estimated(*e)
}

// caveat says what to doubt about an estimate; empty if nothing is.
func caveat(e sources.Estimate) string {
	switch {
	case e.Low == nil:
		return ""
	case e.BelowNoise:
		return belowNoise
	case e.Imprecise:
		return imprecise
	}
	return ""
}

// added shows the CPU time that each mode adds to a query and to a session.
func added(prefix string, results sources.Results) figure.Figure {
	var modes []string
	for _, mode := range series(results) {
		if mode != baseline {
			modes = append(modes, mode)
		}
	}
	f := figure.Figure{
		ID: prefix + "-added", Title: "CPU time that a mode adds",
		Caption: "To a query of the longest sessions, and to a session itself: to log in, to get its rights, and to be " +
			"wiped from its worker.",
		Kind: figure.Bars, X: figure.Axis{Label: "added to"}, Y: figure.Axis{Label: "CPU time", Unit: "µs"},
		Columns: columnsOf(modes),
	}
	doubted := map[string][]string{}
	query, session := figure.Row{Name: "a query"}, figure.Row{Name: "a session"}
	last := results.Throughput[len(results.Throughput)-1].Modes
	for _, mode := range modes {
		cell := figure.None()
		if found := last[mode].AddedCPUMicrosPerItem; found != nil {
			cell = estimated(*found)
			doubted[caveat(*found)] = append(doubted[caveat(*found)], mode+", a query")
		}
		query.Cells = append(query.Cells, cell)
		cell = figure.None()
		if found, measured := results.AddedPerSession[mode]; measured {
			cell = estimated(found)
			doubted[caveat(found)] = append(doubted[caveat(found)], mode+", a session")
		}
		session.Cells = append(session.Cells, cell)
	}
	f.Rows = []figure.Row{query, session}
	for _, doubt := range []string{belowNoise, imprecise} {
		if names := doubted[doubt]; len(names) > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s%s: %s.", strings.ToUpper(doubt[:1]), doubt[1:], strings.Join(names, "; ")))
		}
	}
	if results.Size.Rounds <= 1 {
		f.Notes = append(f.Notes, "One round was measured, so there are no intervals: do not rely on these figures.")
	}
	return f
}

// byLength makes a figure with a row for each session length and a column for each mode.
func byLength(results sources.Results, pick func(sources.Mode) figure.Cell) ([]figure.Column, []figure.Row) {
	modes := series(results)
	var rows []figure.Row
	for _, entry := range results.Throughput {
		row := figure.Row{Name: lengthOf(entry.SessionLength)}
		for _, mode := range modes {
			cell := figure.None()
			if found, measured := entry.Modes[mode]; measured {
				cell = pick(found)
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return columnsOf(modes), rows
}

func perQuery(prefix string, results sources.Results) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-cpu", Title: "CPU time of a query",
		Caption: "All processes of the pipeline, supervisors and monitor, divided by the queries. A session costs the same " +
			"however many queries it has, so its share shrinks to the right.",
		Kind: figure.Bars, X: figure.Axis{Label: "queries per session"}, Y: figure.Axis{Label: "CPU time", Unit: "µs"},
	}
	f.Columns, f.Rows = byLength(results, func(m sources.Mode) figure.Cell { return optional(m.CPUMicrosPerQuery) })
	return f
}

func throughput(prefix string, results sources.Results) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-throughput", Title: "Throughput",
		Caption: fmt.Sprintf("Queries that %d users at a time had answered.", results.Size.ConcurrentUsers),
		Kind:    figure.Bars, X: figure.Axis{Label: "queries per session"},
		Y: figure.Axis{Label: "throughput", Unit: "queries/s"},
	}
	f.Columns, f.Rows = byLength(results, func(m sources.Mode) figure.Cell { return optional(m.QueriesPerSecond) })
	busiest := 0.0
	for _, entry := range results.Throughput {
		for _, mode := range entry.Modes {
			busiest = max(busiest, mode.DriverShare)
		}
	}
	if busiest > saturated {
		f.Notes = append(f.Notes, fmt.Sprintf("The load generator was busy %.0f %% of a slice and limited the throughput: "+
			"trust the CPU time.", busiest*100))
	}
	return f
}

// saturated is the share of its processor above which the load generator is the limit.
const saturated = 0.95

// comparison is the table of shares.
func comparison(prefix string, results sources.Results) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-shares", Title: "Each mode compared with baseline",
		Caption: "Shares look large where a query is cheap: the same added time is a larger part of it.",
		X:       figure.Axis{Label: "queries per session, mode"},
		Columns: []figure.Column{{Title: "CPU overhead, %"}, {Title: "throughput overhead, %"},
			{Title: "what to doubt", Text: true}},
	}
	for _, entry := range results.Throughput {
		for _, name := range sources.InOrder(entry.Modes) {
			mode := entry.Modes[name]
			if mode.Overhead == nil || mode.CPUOverhead == nil {
				continue
			}
			f.Rows = append(f.Rows, figure.Row{Name: lengthOf(entry.SessionLength) + ", " + name, Cells: []figure.Cell{
				estimated(percent(*mode.CPUOverhead)), estimated(percent(*mode.Overhead)),
				figure.Words(doubts(*mode.CPUOverhead, *mode.Overhead))}})
		}
	}
	return f
}

func doubts(cpu, lost sources.Estimate) string {
	one, other := caveat(cpu), caveat(lost)
	switch {
	case one == other && one != "":
		return "both " + one
	case one != "" && other != "":
		return "CPU " + one + "; throughput " + other
	case one != "":
		return "CPU " + one
	case other != "":
		return "throughput " + other
	}
	return ""
}

// percent converts a share.
func percent(e sources.Estimate) sources.Estimate {
	scaled := func(end *float64) *float64 {
		if end == nil {
			return nil
		}
		value := *end * 100
		return &value
	}
	return sources.Estimate{Value: e.Value * 100, Low: scaled(e.Low), High: scaled(e.High), BelowNoise: e.BelowNoise,
		Imprecise: e.Imprecise}
}
