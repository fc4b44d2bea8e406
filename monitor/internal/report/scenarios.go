// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// scenarios shows what users of a service waited for and got in scenarios of load.
func scenarios(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "scenarios", Title: "Scenarios of load",
		Text: "What users of the running service waited for, and what they got, while their number changed as the scenario " +
			"says. Nothing is compared with mode baseline here.",
	}
	for _, load := range in.Given.Loads {
		prefix := "scenario-" + slug(load.Scenario)
		section.Figures = append(section.Figures, waited(prefix, load), counted(prefix, load))
		if load.Complete && len(load.Thresholds) > 0 {
			section.Figures = append(section.Figures, judged(prefix, load))
		}
		if len(load.Errors) > 0 {
			section.Figures = append(section.Figures, failed(prefix, load))
		}
	}
	if len(section.Figures) == 0 {
		return section, &figure.Absent{What: section.Title,
			Remedy: "give out/scenarios/NAME/result.json of make scenario NAME=spike"}
	}
	return section, nil
}

// scaled is a cell of a figure in another unit.
func scaled(value *float64, factor float64) figure.Cell {
	if value == nil {
		return figure.None()
	}
	return figure.Number(*value * factor)
}

// waited shows how long searches take in each phase.
func waited(prefix string, load sources.Load) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-latency", Title: load.Scenario + ": how long a search takes",
		Caption: fmt.Sprintf("Load: %s. Half, 90 %% and 99 %% of all searches were answered in this time, as the users "+
			"saw it.", load.Description),
		Kind: figure.Bars, X: figure.Axis{Label: "part of the run"}, Y: figure.Axis{Label: "latency", Unit: "ms"},
		Columns: []figure.Column{{Title: "half"}, {Title: "90 %"}, {Title: "99 %"}},
	}
	for _, part := range load.Parts {
		f.Rows = append(f.Rows, figure.Row{Name: partName(part), Cells: []figure.Cell{
			scaled(part.P50, 1e3), scaled(part.P90, 1e3), scaled(part.P99, 1e3)}})
	}
	if !load.Complete {
		f.Notes = []string{"The run was cut off, or has lost a process: its figures are of a part of it, and it was not " +
			"judged."}
	}
	return f
}

// counted is the table of what was sent and what came back.
func counted(prefix string, load sources.Load) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-counts", Title: load.Scenario + ": what was sent, and what came back",
		Caption: "Documents are withheld from users whom a policy does not let read them.",
		X:       figure.Axis{Label: "part of the run"},
		Columns: []figure.Column{{Title: "seconds"}, {Title: "searches"}, {Title: "searches/s"}, {Title: "logins/s"},
			{Title: "failed"}, {Title: "documents shown"}, {Title: "withheld"}},
	}
	checked := load.Whole().Checked
	former := checked != nil && *checked > 0
	if former {
		f.Columns = append(f.Columns,
			figure.Column{Title: "searches checked"}, figure.Column{Title: "shown and must not be"})
	}
	for _, part := range load.Parts {
		quantities := []*float64{part.Seconds, part.Queries, part.QueriesPerSecond, part.SessionsPerSecond,
			part.Failures, part.Shown, part.Withheld}
		if former {
			quantities = append(quantities, part.Checked, part.Violations)
		}
		row := figure.Row{Name: partName(part)}
		for _, quantity := range quantities {
			row.Cells = append(row.Cells, scaled(quantity, 1))
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// judged is the table of the thresholds.
func judged(prefix string, load sources.Load) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-thresholds", Title: load.Scenario + ": thresholds", X: figure.Axis{Label: "fails the run"},
		Columns: []figure.Column{{Title: "judgement", Text: true}, {Title: "measured", Text: true}},
	}
	for _, one := range load.Thresholds {
		word := "within"
		if one.Exceeded {
			word = "exceeded"
		}
		f.Rows = append(f.Rows, figure.Row{Name: one.Threshold, Cells: []figure.Cell{
			figure.Words(word), figure.Words(strings.TrimPrefix(one.Message, one.Threshold+": "))}})
	}
	return f
}

// failed is the table of errors, the most frequent first.
func failed(prefix string, load sources.Load) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-errors", Title: load.Scenario + ": what failed", X: figure.Axis{Label: "error"},
		Columns: []figure.Column{{Title: "times"}},
	}
	names := slices.SortedFunc(maps.Keys(load.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(load.Errors[b], load.Errors[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{figure.Number(float64(load.Errors[name]))}})
	}
	return f
}

func partName(part sources.Part) string { return cmp.Or(part.Phase, "whole run") }

// loadHighlights say what the users of a scenario got.
func loadHighlights(load sources.Load) []figure.Highlight {
	whole := load.Whole()
	if whole.QueriesPerSecond == nil {
		return nil
	}
	found := figure.Highlight{Value: figure.Digits(*whole.QueriesPerSecond),
		Label: "searches per second in scenario " + load.Scenario}
	if whole.P99 != nil {
		found.Remark = fmt.Sprintf("99 %% of them answered within %s ms", figure.Digits(*whole.P99*1e3))
	}
	return []figure.Highlight{found}
}

// describedLoad says how a scenario was run.
func describedLoad(load sources.Load) string {
	processes := "1 process"
	if load.Workers != 1 {
		processes = fmt.Sprintf("%d processes", load.Workers)
	}
	return fmt.Sprintf("%s s on %s, pipeline %s, up to %s users, %s, seed %d", figure.Digits(load.Seconds), load.Host,
		load.Pipeline, figure.Digits(float64(load.Users)), processes, load.Seed)
}
