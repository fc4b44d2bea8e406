// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"strings"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// method says how, where and with which programs it was measured.
func method(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "method", Title: "Method and machine",
		Text: "Slices of load in all modes follow each other in random order, so that a drift of the machine hits them " +
			"alike. A figure is the median over the rounds of what is compared within a round; its interval comes from a " +
			"bootstrap over the rounds. CPU time is the kernel's count for all processes of the pipeline, its supervisors, " +
			"the monitor and the store; the load generator is on processors of its own and is not counted.",
	}
	f := figure.Figure{
		ID: "method-runs", Title: "What this report is made of", X: figure.Axis{Label: "source"},
		Columns: []figure.Column{{Title: "what", Text: true}, {Title: "machine", Text: true}},
	}
	add := func(name, what, machine string) {
		f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{figure.Words(what), figure.Words(machine)}})
	}
	for _, results := range in.Given.Results {
		size := results.Size
		add("results "+results.Name, fmt.Sprintf("%s, slices of %s s, %d users at a time, seed %d; modes %s", sizeOf(size),
			figure.Digits(size.SliceSeconds), size.ConcurrentUsers, results.Seed, strings.Join(size.Modes, ", ")),
			memoryOf(results.Machine))
		f.Notes = append(f.Notes, results.Notes...)
	}
	for _, measured := range in.Given.Sessions {
		add("sessions", fmt.Sprintf("%s, slices of %s s, %d users at a time, seed %d", sizeOf(measured.Size),
			figure.Digits(measured.Size.SliceSeconds), measured.Size.ConcurrentUsers, measured.Size.Seed),
			memoryOf(measured.Machine))
	}
	for _, load := range in.Given.Loads {
		add("scenario "+load.Scenario, describedLoad(load), "")
	}
	for _, samples := range in.Given.Samples {
		add(samples.Name, fmt.Sprintf("%d slices", len(samples.Slices)), "")
	}
	if count := len(in.Given.Analyses); count > 0 {
		add("AnalysisRuns", fmt.Sprint(count), "")
	}
	if in.Given.Recorded {
		add("audit records", fmt.Sprintf("%d refusals", len(in.Given.Denials)), "")
	}
	if r := in.Range; r != nil {
		add("Prometheus "+r.Server, fmt.Sprintf("%s to %s, a point each %s", r.From.UTC().Format(instant),
			r.To.UTC().Format(instant), r.Step), "")
	}
	if len(f.Rows) > 0 {
		section.Figures = []figure.Figure{f}
	}
	return section, nil
}

func memoryOf(machine sources.Machine) string {
	return fmt.Sprintf("%s; %s MB of memory", machineOf(machine), figure.Digits(float64(machine.MemoryMegabytes)))
}

// downloads are the files that were given, as they were given.
func downloads(given sources.All) []figure.Download {
	var files []figure.Download
	for i, results := range given.Results {
		title := "results " + results.Name
		if len(results.Slices) > 0 {
			title += fmt.Sprintf(" with raw samples of %d slices", len(results.Slices))
		}
		files = append(files, figure.Download{Name: fmt.Sprintf("results-%d.json", i+1), Title: title,
			Type: "application/json", Content: results.Text})
	}
	for i, measured := range given.Sessions {
		files = append(files, figure.Download{Name: fmt.Sprintf("session-%d.json", i+1),
			Title: "sessions", Type: "application/json", Content: measured.Text})
	}
	for i, load := range given.Loads {
		files = append(files, figure.Download{Name: fmt.Sprintf("scenario-%d.json", i+1),
			Title: "scenario " + load.Scenario, Type: "application/json", Content: load.Text})
	}
	for i, samples := range given.Samples {
		files = append(files, figure.Download{Name: fmt.Sprintf("samples-%d.csv", i+1),
			Title: "raw samples " + samples.Name, Type: "text/csv", Content: samples.Text})
	}
	return files
}
