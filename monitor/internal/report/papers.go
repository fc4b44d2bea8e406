// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/published"
	"shai.dev/monitor/internal/report/sources"
)

// papers shows what the papers published, and beside it what was measured here.
func papers(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "papers", Title: "Beside the papers",
		Text: "Published figures, and what this report has beside them. The machines differ, and so does the cost of a query",
	}
	tables := published.Tables()
	there := tables[0].CPUMillisecondsPerQuery
	section.Text += fmt.Sprintf(": about %s ms of CPU time in the paper.", figure.Digits(there))
	if results := likePapers(in.Given); results != nil {
		here := 0.0
		if found := results.Throughput[0].Modes[baseline].CPUMicrosPerQuery; found != nil {
			here = found.Value / 1000
		}
		switch {
		case here > 0 && here < there:
			section.Text += fmt.Sprintf(" Here it is %s ms, so the same added time is a larger share.", figure.Digits(here))
		case here > 0:
			section.Text += fmt.Sprintf(" Here it is %s ms.", figure.Digits(here))
		}
	}
	for _, table := range tables {
		section.Figures = append(section.Figures, beside(in, table))
	}
	return section, nil
}

// likePapers returns the first results of a load as the papers have it: all users all the
// time, from the regions that the analysis expects, and a search engine that searches.
func likePapers(given sources.All) *sources.Results {
	return firstOf(given, func(size sources.Size) bool { return size.BusyCycles == nil })
}

// firstOf returns the first results of all users all the time, from the regions that the
// analysis expects, whose engine is the right one.
func firstOf(given sources.All, engine func(sources.Size) bool) *sources.Results {
	for i, results := range given.Results {
		if len(results.Size.Phases) == 0 && results.Size.Mispredicted == 0 && engine(results.Size) {
			return &given.Results[i]
		}
	}
	return nil
}

// comparableTo returns the results that can stand beside a row; nil if there are none.
func comparableTo(given sources.All, row published.Row) *sources.Results {
	switch row.Measured {
	case "busy-engine":
		return firstOf(given, func(size sources.Size) bool { return size.BusyCycles != nil && *size.BusyCycles > 0 })
	case "instant-engine":
		return firstOf(given, func(size sources.Size) bool { return size.BusyCycles != nil && *size.BusyCycles == 0 })
	}
	return likePapers(given)
}

// beside makes a table of a published one, with a column "here" after each that can be
// compared.
func beside(in Input, table published.Table) figure.Figure {
	f := figure.Figure{
		ID: "papers-" + table.ID, Title: fmt.Sprintf("%s, %s: %s", table.Paper, table.Place, table.Title),
		Caption: table.Conditions, Kind: figure.Kind(table.Chart), X: figure.Axis{Label: table.RowsAre},
	}
	if table.Axis != nil {
		f.Y = figure.Axis{Label: table.Axis.Label, Unit: table.Axis.Unit}
	}
	for _, row := range table.Rows {
		f.Rows = append(f.Rows, figure.Row{Name: row.Name})
	}
	found := false
	for at, column := range table.Columns {
		drawn := table.Axis != nil && column.Unit == table.Axis.Unit
		heading := figure.Column{Title: titled("paper: "+column.Title, column.Unit), Colour: "modes-" + column.Mode,
			Reference: true, Text: column.Text, Hidden: !drawn}
		if isPublished(table, at) {
			f.Columns = append(f.Columns, heading)
			for i, row := range table.Rows {
				f.Rows[i].Cells = append(f.Rows[i].Cells, publishedCell(row.Values[at]))
			}
		}
		if column.Quantity == "" {
			continue
		}
		heading.Title, heading.Reference = titled("here: "+column.Title, column.Unit), false
		f.Columns = append(f.Columns, heading)
		for i, row := range table.Rows {
			cell, measured := here(in, column, row)
			found = found || measured
			f.Rows[i].Cells = append(f.Rows[i].Cells, cell)
		}
	}
	if !found {
		f.Notes = append(f.Notes, "Not measured in this report: "+table.Needs+".")
	}
	return f
}

func titled(title, unit string) string {
	if unit == "" || unit == title {
		return title
	}
	return title + ", " + unit
}

// isPublished reports whether a column has a published value.
func isPublished(table published.Table, at int) bool {
	for _, row := range table.Rows {
		if row.Values[at].Number != nil || row.Values[at].Text != "" {
			return true
		}
	}
	return false
}

func publishedCell(value published.Value) figure.Cell {
	switch {
	case value.Number != nil:
		return figure.Exactly(*value.Number)
	case value.Text != "":
		return figure.Words(value.Text)
	}
	return figure.None()
}

// here returns what was measured of a quantity.
func here(in Input, column published.Column, row published.Row) (figure.Cell, bool) {
	switch column.Quantity {
	case "analysis":
		return timePerInstance(in, row)
	case "fault":
		return faultStopped(in, row)
	}
	results := comparableTo(in.Given, row)
	if results == nil || row.SessionLength == nil {
		return figure.None(), false
	}
	for _, entry := range results.Throughput {
		if mode, measured := entry.Modes[column.Mode]; measured && entry.SessionLength == *row.SessionLength {
			return quantity(column.Quantity, mode)
		}
	}
	return figure.None(), false
}

func quantity(name string, mode sources.Mode) (figure.Cell, bool) {
	switch name {
	case "throughput":
		return optional(mode.QueriesPerSecond), true
	case "throughput-overhead":
		if mode.Overhead != nil {
			return estimated(percent(*mode.Overhead)), true
		}
	case "latency":
		if median, measured := mode.LatencyMilliseconds["p50"]; measured {
			return estimated(median), true
		}
	}
	return figure.None(), false
}

// timePerInstance is the time of the largest analysis, divided by its instances.
func timePerInstance(in Input, row published.Row) (figure.Cell, bool) {
	rows := analyses(in)
	if row.Measured != "instance" || len(rows) == 0 {
		return figure.None(), false
	}
	cells := rows[len(rows)-1].Cells
	return figure.Number(*cells[1].Value / *cells[2].Value), *cells[2].Value > 0
}

func faultStopped(in Input, row published.Row) (figure.Cell, bool) {
	found := in.Given.Verification
	if row.Measured != "leak" || found == nil || !found.Leak.Baseline.Leaked {
		return figure.Words("not tried in this report"), false
	}
	if found.Leak.Shai.Leaked {
		return figure.Words("no: it leaked"), true
	}
	return figure.Words("yes, by policy " + cmp.Or(policyName(found.Leak.Audit.Policy), "(unknown)")), true
}
