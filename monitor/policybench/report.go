// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/page"
)

// results are what out/bench/policy.json holds.
type results struct {
	Made      time.Time         `json:"made"`
	Go        string            `json:"go"`
	Versions  map[string]string `json:"versions"`
	Rounds    int               `json:"rounds"`
	Questions int               `json:"questions_agreed"`
	Rows      []row             `json:"rows"`
}

// print writes the table for people.
func (r *results) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "policy\tanswer\t")
	for _, b := range builders {
		fmt.Fprintf(table, "%s\tallocs\t", b.title)
	}
	fmt.Fprintln(table, "ratio\t")
	for _, line := range r.Rows {
		fmt.Fprintf(table, "%s\t%s\t", line.Policy, line.Answer)
		for _, b := range builders {
			fmt.Fprintf(table, "%s\t%.0f\t", interval(line.Nanoseconds[b.name]), line.Allocations[b.name])
		}
		fmt.Fprintf(table, "%s\t\n", interval(line.Ratio))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nNanoseconds for one question, median of %d rounds [95 %% interval]; allocations; ratio: the faster of "+
		"OPA %s and Cedar %s to Shai.\nAll engines agreed on all %d questions.\n", r.Rounds, r.Versions["opa"],
		r.Versions["cedar"], r.Questions)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func interval(e estimate) string {
	return fmt.Sprintf("%s [%s, %s]", figure.Digits(e.Value), figure.Digits(e.Low), figure.Digits(e.High))
}

// save writes policy.json, and policy.html with the chart.
func (r *results) save(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // results for everybody
		return fmt.Errorf("make the directory for results: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	chart, err := page.Render(r.report())
	if err != nil {
		return fmt.Errorf("draw results: %w", err)
	}
	for name, content := range map[string][]byte{"policy.json": append(text, '\n'), "policy.html": chart} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil { //nolint:gosec // for everybody
			return fmt.Errorf("write results: %w", err)
		}
	}
	return nil
}

func (r *results) report() figure.Report {
	cell := func(e estimate) figure.Cell { return figure.Interval(e.Value, &e.Low, &e.High) }
	chart := figure.Figure{ID: "policy-engines", Title: "May this user read this document?",
		Caption: "Time for one question, on a logarithmic scale. Whiskers: 95 % intervals.",
		Kind:    figure.Bars, X: figure.Axis{Label: "Policy"}, Y: figure.Axis{Label: "Time", Unit: "ns", Log: true}}
	for _, b := range builders {
		chart.Columns = append(chart.Columns, figure.Column{Title: b.title, Reference: b.name == "shai_decision"})
	}
	for _, line := range r.Rows {
		cells := make([]figure.Cell, 0, len(builders))
		for _, b := range builders {
			cells = append(cells, cell(line.Nanoseconds[b.name]))
		}
		chart.Rows = append(chart.Rows, figure.Row{Name: line.Policy + ", " + line.Answer, Cells: cells})
	}
	return figure.Report{Title: "Policy engines side by side",
		Subtitle: fmt.Sprintf("Shai, OPA %s and Cedar %s in one process, %s, %s", r.Versions["opa"], r.Versions["cedar"],
			runtime.Version(), runtime.GOARCH),
		Made: r.Made, Version: r.Go,
		Sections: []figure.Section{{ID: "policy", Title: "Decisions of policies",
			Text:    "The engines agreed on every question before they were measured.",
			Figures: []figure.Figure{chart}}}}
}
