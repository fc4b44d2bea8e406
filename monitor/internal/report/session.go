// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"maps"
	"slices"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// session shows where the time of a session goes.
func session(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "session", Title: "Where a session's time goes",
		Text: "A session connects, logs in, and ends. Without enforcement everybody is served by the same processes; " +
			"under enforcement each session has a worker of its own, which is rolled back or discarded at its end.",
	}
	for i, measured := range in.Given.Sessions {
		prefix := "session"
		if i > 0 {
			prefix = fmt.Sprintf("session-%d", i+1)
		}
		section.Figures = append(section.Figures, phases(prefix, measured), processes(prefix, measured),
			perSecond(prefix, measured), singles(prefix, measured))
		if f, found := besideVersion(prefix, measured.Beside); found {
			section.Figures = append(section.Figures, f)
		}
	}
	for _, samples := range allSamples(in.Given) {
		if f, found := sliced(samples); found && len(in.Given.Sessions) == 0 {
			section.Figures = append(section.Figures, f)
		}
	}
	if len(section.Figures) == 0 {
		return section, &figure.Absent{What: section.Title,
			Remedy: "give out/bench/session.json of make bench-session, or samples.csv of a benchmark"}
	}
	if len(in.Given.Sessions) == 0 {
		return section, &figure.Absent{What: "What enforcement adds to a session, by phase",
			Remedy: "give out/bench/session.json of make bench-session"}
	}
	return section, nil
}

// allSamples are those of samples.csv, and those within results. The same ones, which a
// benchmark writes into both, are there once.
func allSamples(given sources.All) []sources.Samples {
	all := slices.Clone(given.Samples)
	for _, results := range given.Results {
		known := slices.ContainsFunc(all, func(s sources.Samples) bool {
			return slices.EqualFunc(s.Slices, results.Slices, sources.Slice.Equal)
		})
		if len(results.Slices) > 0 && !known {
			all = append(all, sources.Samples{Name: results.Name, Slices: results.Slices})
		}
	}
	return all
}

// phases shows what enforcement adds to a session, by what it is for.
func phases(prefix string, measured sources.Sessions) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-phases", Title: "What enforcement adds to a session, by phase",
		Caption: "Verify the login, which baseline does in the front end. Decide on what the session may read and write. " +
			"Isolate it: roll its worker back, or give it a process of its own.",
		Kind: figure.Stack, X: figure.Axis{Label: "kind of worker"},
		Y: figure.Axis{Label: "CPU time added", Unit: "µs"},
		Columns: []figure.Column{{Title: "verify the login", Colour: "parts-supervisor"},
			{Title: "decide", Colour: "parts-monitor"}, {Title: "isolate", Colour: "parts-worker"},
			{Title: "together, as measured", Hidden: true}},
	}
	if measured.Login == nil || measured.Deciding == nil {
		f.Notes = []string{"This measurement has no phases; make bench-session measures them."}
		return f
	}
	for _, kind := range []struct {
		name             string
		isolating, added *sources.Estimate
	}{
		{"rolled back", measured.IsolatingRolled, measured.AddedSession},
		{"a process for each session", measured.Isolating, measured.AddedProcess},
	} {
		if kind.isolating == nil || kind.added == nil {
			continue
		}
		f.Rows = append(f.Rows, figure.Row{Name: kind.name, Cells: []figure.Cell{
			optional(measured.Login), figure.Number(measured.Deciding.Value - measured.Login.Value),
			optional(kind.isolating), optional(kind.added)}})
	}
	if measured.IsolatingRolled != nil && measured.IsolatingRolled.Value < 0 {
		f.Notes = append(f.Notes, "A part below zero saves time: that worker takes less than the process that it replaces.")
	}
	return f
}

// parts are the processes of a pipeline, in the order in which they are stacked.
var parts = []string{"worker", "supervisor", "monitor", "store", "search"}

// processes shows the CPU time of a session by process.
func processes(prefix string, measured sources.Sessions) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-processes", Title: "CPU time of a session, by process",
		Caption: "Of everything that takes part in a session. process is mode shai with a process for each session; forked " +
			"is baseline with one, which nothing confines.",
		Kind: figure.Stack, X: figure.Axis{Label: "installation"}, Y: figure.Axis{Label: "CPU time", Unit: "µs"},
	}
	for _, part := range parts {
		f.Columns = append(f.Columns, figure.Column{Title: part, Colour: "parts-" + part})
	}
	for _, name := range sources.InOrder(measured.ByProcess) {
		row := figure.Row{Name: name}
		for _, part := range parts {
			cell := figure.None()
			if value, found := measured.ByProcess[name].CPU[part]; found {
				cell = figure.Number(value)
			}
			row.Cells = append(row.Cells, cell)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// perSecond shows how many sessions were served.
func perSecond(prefix string, measured sources.Sessions) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-rate", Title: "Sessions per second",
		Caption: "Sessions that only log in, each as soon as the one before has ended.",
		Kind:    figure.Bars, X: figure.Axis{Label: "installation"}, Y: figure.Axis{Label: "sessions", Unit: "1/s"},
		Columns: []figure.Column{{Title: "sessions per second", Colour: "modes-shai"}},
	}
	for _, name := range sources.InOrder(measured.PerSecond) {
		rate := measured.PerSecond[name]
		f.Rows = append(f.Rows, figure.Row{Name: name, Colour: "modes-" + name, Cells: []figure.Cell{optional(&rate)}})
		if measured.DriverShare[name] > saturated {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: the load generator was busy all the time and limited it.", name))
		}
	}
	return f
}

// singles is the table of everything else.
func singles(prefix string, measured sources.Sessions) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-costs", Title: "Costs of single steps",
		X:       figure.Axis{Label: "what"},
		Columns: []figure.Column{{Title: "CPU time, µs"}},
	}
	for _, line := range []struct {
		name  string
		value *sources.Estimate
	}{
		{"mode shai adds to a session whose worker is rolled back", measured.AddedSession},
		{"mode shai adds to a session with a process of its own", measured.AddedProcess},
		{"of both, to verify the login", measured.Login},
		{"mode shai adds to a query", measured.AddedQuery},
		{"an open for which the session asks, and whose answer is ready", measured.Interception},
		{"an interception of mode dynamic", measured.InterceptionEager},
		{"an interception of mode dynamic-lazy", measured.InterceptionLazily},
		{"what two equal installations differ by: a session", measured.ControlSession},
		{"what two equal installations differ by: a query", measured.ControlQuery},
	} {
		if line.value != nil {
			f.Rows = append(f.Rows, figure.Row{Name: line.name, Cells: []figure.Cell{optional(line.value)}})
		}
	}
	for _, held := range []struct {
		kind string
		live *sources.Live
	}{{"rolled back", measured.Live}, {"a process for each session", measured.LiveProcess}} {
		if held.live != nil && held.live.Live > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: %d sessions lived at the same time, with %s each; "+
				"%d of them, revoked with one request, had ended after %s ms.", held.kind, held.live.Live,
				memoryEach(held.live.Memory), held.live.Revoked, figure.Digits(held.live.RevokedMS)))
		}
	}
	if measured.Unsealed != nil {
		f.Notes = append(f.Notes, "Workers were not rolled back on this machine: "+*measured.Unsealed)
	}
	return f
}

// partsInOrder returns the names of processes, those of Sys-E as they are stacked.
func partsInOrder(names map[string]bool) []string {
	var order []string
	for _, part := range parts {
		if names[part] {
			order = append(order, part)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.Contains(parts, name) {
			order = append(order, name)
		}
	}
	return order
}

// memoryEach describes the memory of a session; it may be less than what others free.
func memoryEach(kibibytes float64) string {
	if kibibytes <= 0 {
		return "too little memory to measure"
	}
	return figure.Digits(kibibytes) + " KiB of memory"
}

// sliced shows the CPU time by process of the slices with the shortest sessions.
func sliced(samples sources.Samples) (figure.Figure, bool) {
	shortest := 0
	for _, slice := range samples.Slices {
		if slice.SessionLength > 0 && (shortest == 0 || slice.SessionLength < shortest) {
			shortest = slice.SessionLength
		}
	}
	type total struct {
		sessions float64
		parts    map[string]float64
	}
	totals := map[string]total{}
	names := map[string]bool{}
	for _, slice := range samples.Slices {
		if slice.SessionLength != shortest || shortest == 0 {
			continue
		}
		if _, known := totals[slice.Mode]; !known {
			totals[slice.Mode] = total{parts: map[string]float64{}}
		}
		sum := totals[slice.Mode]
		sum.sessions += slice.Sessions
		for part, seconds := range slice.ProcessSeconds {
			sum.parts[part] += seconds
			names[part] = true
		}
		totals[slice.Mode] = sum
	}
	f := figure.Figure{
		ID: "session-slices-" + slug(samples.Name), Title: "CPU time of a session, by process",
		Caption: fmt.Sprintf("Sessions of %s, with the CPU time of their queries: all slices of %s.",
			queries(shortest), samples.Name),
		Kind: figure.Stack, X: figure.Axis{Label: "mode"}, Y: figure.Axis{Label: "CPU time", Unit: "µs"},
	}
	order := partsInOrder(names)
	for _, part := range order {
		f.Columns = append(f.Columns, figure.Column{Title: part, Colour: "parts-" + part})
	}
	for _, mode := range sources.InOrder(totals) {
		row := figure.Row{Name: mode}
		for _, part := range order {
			row.Cells = append(row.Cells, figure.Number(totals[mode].parts[part]*1e6/totals[mode].sessions))
		}
		f.Rows = append(f.Rows, row)
	}
	return f, len(f.Rows) > 0 && len(order) > 0
}

func queries(length int) string {
	if length == 1 {
		return "1 query"
	}
	return figure.Digits(float64(length)) + " queries"
}
