// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"shai.dev/monitor/internal/report/boards"
	"shai.dev/monitor/internal/report/figure"
)

// overTime shows the panels of the dashboard Overhead.
func overTime(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{ID: "range", Title: "In this range of time"}
	if in.Range == nil {
		return section, &figure.Absent{What: "What happened over time",
			Remedy: "name a Prometheus that scrapes the monitors: --prometheus http://127.0.0.1:9090 --last 1h"}
	}
	section.Text = fmt.Sprintf("The panels of the dashboard Overhead, by the same queries: %s to %s.",
		in.Range.From.UTC().Format(instant), in.Range.To.UTC().Format(instant))
	stats := figure.Figure{ID: "range-stats", Title: "At the end of the range", X: figure.Axis{Label: "figure"},
		Columns: []figure.Column{{Title: "value", Text: true}, {Title: "meaning", Text: true}}}
	for _, panel := range in.Range.Panels {
		switch panel.Kind {
		case "stat":
			stats.Rows = append(stats.Rows, statRows(panel)...)
		case "timeseries":
			section.Figures = append(section.Figures, orNoData(timeline(panel)))
		case "bar":
			section.Figures = append(section.Figures, orNoData(bars(panel)))
		case "table":
			section.Figures = append(section.Figures, orNoData(labelled(panel)))
		}
	}
	section.Figures = append([]figure.Figure{stats}, section.Figures...)
	return section, nil
}

const noData = "No data in this range."

// orNoData says of a figure without a number that there is none.
func orNoData(f figure.Figure) figure.Figure {
	if f.Empty() {
		f.Columns, f.Rows, f.Notes = nil, nil, []string{noData}
	}
	return f
}

// base converts Grafana's unit to a base unit of figure.ScaleFor, or to what is shown.
func base(unit string) string {
	switch unit {
	case "percentunit":
		return "ratio"
	case "reqps":
		return "queries/s"
	case "ops":
		return "1/s"
	case "short":
		return ""
	}
	return unit
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// shown is a value with its unit.
func shown(value float64, unit string) string {
	if !finite(value) {
		return noData
	}
	scale := figure.ScaleFor(base(unit), value)
	return strings.TrimSpace(figure.Digits(value*scale.Factor) + " " + scale.Unit)
}

func statRows(panel boards.Reading) []figure.Row {
	var rows []figure.Row
	for i, query := range panel.Queries {
		for _, series := range panel.Results[i] {
			name := panel.Title
			if legend := boards.Name(query.Legend, series.Labels); strings.Contains(query.Legend, "{{") {
				name += ", " + legend
			}
			rows = append(rows, figure.Row{Name: name, Cells: []figure.Cell{
				figure.Words(shown(series.Points[0].Value, query.Unit)), figure.Words(panel.Description)}})
		}
	}
	if len(rows) == 0 {
		rows = []figure.Row{{Name: panel.Title, Cells: []figure.Cell{figure.Words(noData),
			figure.Words(panel.Description)}}}
	}
	return rows
}

func panelFigure(panel boards.Reading, kind figure.Kind) figure.Figure {
	return figure.Figure{ID: "range-" + panel.ID, Title: panel.Title, Caption: panel.Description, Kind: kind}
}

// colour is that of a result by its name: "shai", "shai p99" or "paper: shai".
func colour(group, name string) string {
	return group + "-" + strings.Fields(strings.TrimPrefix(name, paper) + " -")[0]
}

const paper = "paper: "

// curve is a result over time.
type curve struct {
	name   string
	values map[time.Time]float64
	sum    float64
}

// drawn is the largest number of curves in a chart.
const drawn = 12

func timeline(panel boards.Reading) figure.Figure {
	f := panelFigure(panel, figure.Time)
	f.X, f.Stacked = figure.Axis{Label: "time (UTC)"}, panel.Stacked
	curves := curvesOf(panel)
	if panel.Stacked {
		curves = withoutZeros(curves, &f.Notes)
	}
	if len(curves) > drawn {
		slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(b.sum, a.sum) })
		f.Notes = append(f.Notes, fmt.Sprintf("The %d largest of %d curves.", drawn, len(curves)))
		curves = curves[:drawn]
	}
	scale := figure.ScaleFor(base(panel.Queries[0].Unit), greatest(slices.Concat(panel.Results...)))
	f.Y = figure.Axis{Unit: scale.Unit}
	instants := map[time.Time]bool{}
	used := map[string]bool{}
	for _, c := range curves {
		// Of two curves of a mode, such as p50 and p99, the second is dashed.
		column := figure.Column{Title: c.name, Colour: colour(panel.Colours, c.name)}
		column.Reference = strings.HasPrefix(c.name, paper) || used[column.Colour]
		used[column.Colour] = panel.Colours != ""
		f.Columns = append(f.Columns, column)
		for at := range c.values {
			instants[at] = true
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(instants), time.Time.Compare) {
		row := figure.Row{At: at}
		for _, c := range curves {
			cell := figure.None()
			if value, found := c.values[at]; found {
				cell = figure.Number(value * scale.Factor)
			}
			row.Cells = append(row.Cells, cell)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// withoutZeros leaves out curves that are zero throughout: stacked, they lie on the others and
// hide whose the topmost is. All of them stay if nothing else is there.
func withoutZeros(curves []curve, notes *[]string) []curve {
	var kept []curve
	var zero []string
	for _, c := range curves {
		if c.sum > 0 {
			kept = append(kept, c)
		} else {
			zero = append(zero, c.name)
		}
	}
	if len(kept) == 0 || len(zero) == 0 {
		return curves
	}
	*notes = append(*notes, fmt.Sprintf("Zero all the time: %s.", strings.Join(limited(zero, notes), ", ")))
	return kept
}

// curvesOf returns the results of a panel that have a value.
func curvesOf(panel boards.Reading) []curve {
	var curves []curve
	for i, query := range panel.Queries {
		for _, series := range panel.Results[i] {
			c := curve{cmp.Or(boards.Name(query.Legend, series.Labels), "(no name)"), map[time.Time]float64{}, 0}
			for _, point := range series.Points {
				if finite(point.Value) {
					c.values[point.At] = point.Value
					c.sum += math.Abs(point.Value)
				}
			}
			if len(c.values) > 0 {
				curves = append(curves, c)
			}
		}
	}
	return curves
}

// bars draws the one query of a panel: rows by one label, columns by another.
func bars(panel boards.Reading) figure.Figure {
	f := panelFigure(panel, figure.Bars)
	f.X = figure.Axis{Label: strings.ReplaceAll(panel.Across, "_", " ")}
	values := map[string]map[string]float64{}
	names := map[string]bool{}
	for _, series := range panel.Results[0] {
		across, by := series.Labels[panel.Across], series.Labels[panel.By]
		if values[across] == nil {
			values[across] = map[string]float64{}
		}
		values[across][by] = series.Points[0].Value
		names[by] = true
	}
	scale := figure.ScaleFor(base(panel.Queries[0].Unit), greatest(panel.Results[0]))
	f.Y = figure.Axis{Unit: scale.Unit}
	order := slices.Sorted(maps.Keys(names))
	if len(order) > drawn {
		f.Notes = append(f.Notes, fmt.Sprintf("The first %d of %d series.", drawn, len(order)))
		order = order[:drawn]
	}
	for _, name := range order {
		f.Columns = append(f.Columns, figure.Column{Title: name, Colour: colour(panel.Colours, name),
			Reference: strings.HasPrefix(name, paper)})
	}
	for _, across := range slices.SortedFunc(maps.Keys(values), naturally) {
		row := figure.Row{Name: valueOf(panel.Across, across)}
		for _, name := range order {
			cell := figure.None()
			if value, found := values[across][name]; found {
				cell = figure.Number(value * scale.Factor)
			}
			row.Cells = append(row.Cells, cell)
		}
		f.Rows = append(f.Rows, row)
	}
	f.Rows = limited(f.Rows, &f.Notes)
	return f
}

// valueOf is a label's value as it is shown.
func valueOf(label, value string) string {
	if label == "session_length" && value == "0" {
		return lengthOf(0)
	}
	return value
}

// naturally orders numbers by size, and 0, which stands for the whole run, last.
func naturally(a, b string) int {
	x, notX := strconv.Atoi(a)
	y, notY := strconv.Atoi(b)
	if notX != nil || notY != nil {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(map[bool]int{true: 1}[x == 0], map[bool]int{true: 1}[y == 0]), cmp.Compare(x, y))
}

// labelled is a table: a row for each combination of labels, a column for each query.
func labelled(panel boards.Reading) figure.Figure {
	f := panelFigure(panel, "")
	var headings []string
	for _, column := range panel.Columns {
		headings = append(headings, column.Title)
	}
	f.X = figure.Axis{Label: strings.Join(headings, ", ")}
	var lines []line
	for i, query := range panel.Queries {
		scale := figure.ScaleFor(base(query.Unit), greatest(sharing(panel, query.Unit)))
		f.Columns = append(f.Columns, figure.Column{Title: titled(strings.TrimSpace(query.Legend), scale.Unit)})
		for _, series := range panel.Results[i] {
			at := lineOf(&lines, panel, series)
			lines[at].cells[i] = figure.Number(series.Points[0].Value * scale.Factor)
		}
	}
	// A query that sorts says which rows come first.
	if !strings.HasPrefix(panel.Queries[0].Expr, "sort") {
		slices.SortStableFunc(lines, func(a, b line) int { return slices.CompareFunc(a.labels, b.labels, naturally) })
	}
	for _, one := range lines {
		for i, column := range panel.Columns {
			one.labels[i] = valueOf(column.Label, one.labels[i])
		}
		f.Rows = append(f.Rows, figure.Row{Name: strings.Join(one.labels, ", "), Cells: one.cells})
	}
	f.Rows = limited(f.Rows, &f.Notes)
	return f
}

// sharing returns the results of a panel's queries of a unit: they stand beside each other, a
// figure and the ends of its interval.
func sharing(panel boards.Reading, unit string) []boards.Series {
	var all []boards.Series
	for i, query := range panel.Queries {
		if query.Unit == unit {
			all = append(all, panel.Results[i]...)
		}
	}
	return all
}

// line is a row of such a table, with its labels' values.
type line struct {
	labels []string
	cells  []figure.Cell
}

// lineOf returns the index of the line with the labels of a result, and adds it if it is new.
func lineOf(lines *[]line, panel boards.Reading, series boards.Series) int {
	var labels []string
	for _, column := range panel.Columns {
		labels = append(labels, series.Labels[column.Label])
	}
	at := slices.IndexFunc(*lines, func(l line) bool { return slices.Equal(l.labels, labels) })
	if at < 0 {
		cells := slices.Repeat([]figure.Cell{figure.None()}, len(panel.Queries))
		*lines = append(*lines, line{labels, cells})
		at = len(*lines) - 1
	}
	return at
}

// greatest is the largest size of a finite value.
func greatest(results []boards.Series) float64 {
	largest := 0.0
	for _, series := range results {
		for _, point := range series.Points {
			if finite(point.Value) {
				largest = max(largest, math.Abs(point.Value))
			}
		}
	}
	return largest
}
