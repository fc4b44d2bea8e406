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
			section.Figures = append(section.Figures, timeline(panel))
		case "bar":
			section.Figures = append(section.Figures, bars(panel))
		case "table":
			section.Figures = append(section.Figures, labelled(panel))
		}
	}
	section.Figures = append([]figure.Figure{stats}, section.Figures...)
	return section, nil
}

const noData = "No data in this range."

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
const drawn = 10

func timeline(panel boards.Reading) figure.Figure {
	f := panelFigure(panel, figure.Time)
	f.X, f.Stacked = figure.Axis{Label: "time (UTC)"}, panel.Stacked
	unit := ""
	var curves []curve
	largest := 0.0
	for i, query := range panel.Queries {
		unit = query.Unit
		for _, series := range panel.Results[i] {
			c := curve{boards.Name(query.Legend, series.Labels), map[time.Time]float64{}, 0}
			for _, point := range series.Points {
				if finite(point.Value) {
					c.values[point.At] = point.Value
					c.sum += math.Abs(point.Value)
					largest = max(largest, math.Abs(point.Value))
				}
			}
			if len(c.values) > 0 {
				curves = append(curves, c)
			}
		}
	}
	if len(curves) == 0 {
		f.Notes = []string{noData}
		return f
	}
	if len(curves) > drawn {
		slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(b.sum, a.sum) })
		f.Notes = append(f.Notes, fmt.Sprintf("The %d largest of %d curves.", drawn, len(curves)))
		curves = curves[:drawn]
	}
	scale := figure.ScaleFor(base(unit), largest)
	f.Y = figure.Axis{Label: panel.Title, Unit: scale.Unit}
	instants := map[time.Time]bool{}
	for _, c := range curves {
		name := c.name
		f.Columns = append(f.Columns, figure.Column{Title: cmp.Or(name, "(no name)"),
			Colour: colour(panel.Colours, name), Reference: strings.HasPrefix(name, paper)})
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

// bars draws the one query of a panel: rows by one label, columns by another.
func bars(panel boards.Reading) figure.Figure {
	f := panelFigure(panel, figure.Bars)
	f.X = figure.Axis{Label: strings.ReplaceAll(panel.Across, "_", " ")}
	values := map[string]map[string]float64{}
	names := map[string]bool{}
	largest := 0.0
	for _, series := range panel.Results[0] {
		across, by := series.Labels[panel.Across], series.Labels[panel.By]
		if values[across] == nil {
			values[across] = map[string]float64{}
		}
		values[across][by] = series.Points[0].Value
		names[by] = true
		largest = max(largest, math.Abs(series.Points[0].Value))
	}
	if len(values) == 0 {
		f.Notes = []string{noData}
		return f
	}
	scale := figure.ScaleFor(base(panel.Queries[0].Unit), largest)
	f.Y = figure.Axis{Label: panel.Title, Unit: scale.Unit}
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
		row := figure.Row{Name: across}
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
	type line struct {
		sort []string
		row  figure.Row
	}
	lines := map[string]*line{}
	for i, query := range panel.Queries {
		largest := 0.0
		for _, series := range panel.Results[i] {
			largest = max(largest, math.Abs(series.Points[0].Value))
		}
		scale := figure.ScaleFor(base(query.Unit), largest)
		f.Columns = append(f.Columns, figure.Column{Title: titled(strings.TrimSpace(query.Legend), scale.Unit)})
		for _, series := range panel.Results[i] {
			var key []string
			for _, column := range panel.Columns {
				key = append(key, series.Labels[column.Label])
			}
			name := strings.Join(key, ", ")
			if lines[name] == nil {
				cells := make([]figure.Cell, len(panel.Queries))
				for at := range cells {
					cells[at] = figure.None()
				}
				lines[name] = &line{key, figure.Row{Name: name, Cells: cells}}
			}
			lines[name].row.Cells[i] = figure.Number(series.Points[0].Value * scale.Factor)
		}
	}
	sorted := slices.SortedFunc(maps.Values(lines), func(a, b *line) int {
		return slices.CompareFunc(a.sort, b.sort, naturally)
	})
	for _, one := range sorted {
		f.Rows = append(f.Rows, one.row)
	}
	if len(f.Rows) == 0 {
		f.Notes = []string{noData}
	}
	f.Rows = limited(f.Rows, &f.Notes)
	return f
}
