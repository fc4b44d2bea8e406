// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/report/boards"
	"shai.dev/monitor/internal/report/figure"
)

var end = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// over makes a result with a value each minute.
func over(labels map[string]string, values ...float64) boards.Series {
	series := boards.Series{Labels: labels}
	for i, value := range values {
		at := end.Add(time.Duration(i-len(values)+1) * time.Minute)
		series.Points = append(series.Points, boards.Point{At: at, Value: value})
	}
	return series
}

func panel(kind, unit, legend string, results ...boards.Series) boards.Reading {
	return boards.Reading{
		Panel: boards.Panel{ID: "p-" + kind, Title: "Panel", Kind: kind, Colours: "modes",
			Across: "session_length", By: "mode",
			Columns: []boards.Column{{Label: "session_length", Title: "length"}, {Label: "mode", Title: "mode"}},
			Queries: []boards.Query{{Expr: "up", Legend: legend, Unit: unit}}},
		Results: [][]boards.Series{results},
	}
}

// figureOf composes a report of one panel, and returns its figure.
func figureOf(t *testing.T, reading boards.Reading) figure.Figure {
	t.Helper()
	found := section(Compose(Input{Range: &boards.Range{From: end.Add(-time.Hour), To: end,
		Panels: []boards.Reading{reading}}}), "range")
	if reading.Kind == "stat" {
		return found.Figures[0]
	}
	return found.Figures[1]
}

// A panel without data says so, and is no chart.
func TestNoData(t *testing.T) {
	for _, kind := range []string{"timeseries", "bar", "table", "stat"} {
		for _, reading := range []boards.Reading{
			panel(kind, "s", "{{mode}}"),
			panel(kind, "s", "{{mode}}", over(map[string]string{"mode": "shai"}, math.NaN())),
		} {
			f := figureOf(t, reading)
			said := slices.Contains(f.Notes, noData)
			for _, row := range f.Rows {
				said = said || row.Cells[0].Text == noData
			}
			if !said || !f.Empty() {
				t.Errorf("%s: notes %q, rows %v", kind, f.Notes, f.Rows)
			}
		}
	}
}

// Values stand in a unit in which they are easy to read, the same for the whole panel.
func TestUnits(t *testing.T) {
	f := figureOf(t, panel("timeseries", "s", "{{mode}} p50", over(map[string]string{"mode": "shai"}, 0.0004, 0.0021),
		over(map[string]string{"mode": "baseline"}, 0.0001, math.Inf(1))))
	text := ""
	for _, row := range f.Rows {
		text += fmt.Sprintf("%s %s %s\n", row.At.Format("15:04"), row.Cells[0].Text, row.Cells[1].Text)
	}
	if want := "11:59 0.400 0.100\n12:00 2.10 –\n"; text != want || f.Y.Unit != "ms" {
		t.Errorf("in %s\n%s, want\n%s", f.Y.Unit, text, want)
	}
	if f.Columns[0].Title != "shai p50" || f.Columns[0].Colour != "modes-shai" {
		t.Errorf("column %+v", f.Columns[0])
	}
}

// Of many curves the largest are drawn, and the rest is counted.
func TestManyCurves(t *testing.T) {
	var results []boards.Series
	for i := range 500 {
		results = append(results, over(map[string]string{"mode": fmt.Sprint(i)}, float64(i), float64(i)))
	}
	f := figureOf(t, panel("timeseries", "ops", "{{mode}}", results...))
	if len(f.Columns) != drawn || f.Columns[0].Title != "499" || !strings.Contains(f.Notes[0], "12 largest of 500") {
		t.Errorf("%d columns from %q, notes %q", len(f.Columns), f.Columns[0].Title, f.Notes)
	}
	table := figureOf(t, panel("table", "short", "count", results...))
	if len(table.Rows) != most || !strings.Contains(table.Notes[0], "of 500 rows") {
		t.Errorf("%d rows, notes %q", len(table.Rows), table.Notes)
	}
}

// Session lengths are in the order of numbers, and 0, for the whole run, is the last.
func TestBars(t *testing.T) {
	var results []boards.Series
	for i, length := range []string{"0", "32", "8", "1"} {
		for _, mode := range []string{"shai", "paper: shai"} {
			results = append(results, over(map[string]string{"session_length": length, "mode": mode}, 0.01*float64(i)))
		}
	}
	f := figureOf(t, panel("bar", "percentunit", "", results...))
	names := ""
	for _, row := range f.Rows {
		names += row.Name + "=" + row.Cells[1].Text + " "
	}
	if want := "1=3 8=2 32=1 whole run=0 "; names != want || f.Y.Unit != "%" {
		t.Errorf("%s in %s, want %s", names, f.Y.Unit, want)
	}
	if paper := f.Columns[0]; paper.Title != "paper: shai" || !paper.Reference || paper.Colour != "modes-shai" {
		t.Errorf("column %+v", paper)
	}
	table := figureOf(t, panel("table", "percentunit", "", results[0]))
	if name := table.Rows[0].Name; name != "whole run, shai" {
		t.Errorf("row %q", name)
	}
}

// Prometheus' cumulative buckets become a distribution.
func TestRangeLatency(t *testing.T) {
	bucket := func(le string, count float64) boards.Series {
		return over(map[string]string{"mode": "shai", "le": le}, count)
	}
	reading := boards.Reading{Panel: boards.Panel{ID: "latency-distribution", Queries: []boards.Query{{}}},
		Results: [][]boards.Series{{bucket("+Inf", 20), bucket("0.01", 10), bucket("0.001", 5)}}}
	report := Compose(Input{Range: &boards.Range{To: end, Beside: []boards.Reading{reading}}})
	f := section(report, "latency").Figures[0]
	text := ""
	for _, row := range f.Rows {
		text += row.Name + " ms: " + row.Cells[0].Text + " %\n"
	}
	if want := "1 ms: 25 %\n10 ms: 50 %\n"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// Stacked curves that are zero lie on the others, so that the topmost seemed to be all of them.
func TestZerosAreNotStacked(t *testing.T) {
	for _, c := range []struct {
		stacked     bool
		policy      float64
		want, notes string
	}{
		{true, 1, "policy", "[Zero all the time: taint.]"},
		{false, 1, "policy taint", "[]"},
		{true, 0, "policy taint", "[]"},
	} {
		reading := panel("timeseries", "ops", "{{reason}}", over(map[string]string{"reason": "policy"}, 0, c.policy),
			over(map[string]string{"reason": "taint"}, 0, 0))
		reading.Stacked = c.stacked
		f := figureOf(t, reading)
		var names []string
		for _, column := range f.Columns {
			names = append(names, column.Title)
		}
		if drawn := strings.Join(names, " "); drawn != c.want || fmt.Sprint(f.Notes) != c.notes {
			t.Errorf("%+v: drawn %s, notes %v", c, drawn, f.Notes)
		}
	}
}

// A figure and the ends of its interval are in the same unit, and a heading has its unit once.
func TestColumnsOfATableShareTheirUnit(t *testing.T) {
	reading := panel("table", "s", "value", over(map[string]string{"mode": "shai"}, 0.002))
	reading.Queries = append(reading.Queries, boards.Query{Expr: "up", Legend: "low", Unit: "s"},
		boards.Query{Expr: "up", Legend: "queries/s", Unit: "reqps"})
	reading.Results = append(reading.Results, []boards.Series{over(map[string]string{"mode": "shai"}, 0.00003)}, nil)
	var headings []string
	for _, column := range figureOf(t, reading).Columns {
		headings = append(headings, column.Title)
	}
	if found := strings.Join(headings, "; "); found != "value, ms; low, ms; queries/s" {
		t.Errorf("headings %s", found)
	}
}

// An analysis that the objects and Prometheus both have is one.
func TestAnAnalysisIsThereOnce(t *testing.T) {
	run := `{"kind": "AnalysisRun", "metadata": {"name": "a-1"}, "spec": {"pipeline": "a"},
		"status": {"expected": 900, "durationMilliseconds": 20}}`
	reading := boards.Reading{Panel: boards.Panel{ID: "analysis-size", Queries: make([]boards.Query, 3)}}
	for _, value := range []float64{0.02, 900, 3} {
		reading.Results = append(reading.Results, []boards.Series{over(map[string]string{"pipeline": "a"}, value),
			over(map[string]string{"pipeline": "b"}, value)})
	}
	made := Compose(Input{Given: read(t, run), Range: &boards.Range{Beside: []boards.Reading{reading}}})
	f := section(made, "analysis").Figures[0]
	if len(f.Rows) != 2 || f.Rows[0].Name != "a-1" || f.Rows[1].Name != "b (Prometheus)" {
		t.Errorf("analyses %v", f.Rows)
	}
	if !strings.Contains(fmt.Sprint(f.Notes), "Only one size") {
		t.Errorf("notes %v", f.Notes)
	}
}
