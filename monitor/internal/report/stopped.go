// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// stopped shows what enforcement prevents.
func stopped(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "stopped", Title: "What enforcement stops",
		Text: "Most of what policies forbid is refused ahead of time: the analysis leaves it out of a task's rights, and " +
			"the kernel refuses it. The rest is refused when it is asked for, and recorded in the audit log.",
	}
	if in.Given.Verification != nil {
		section.Figures = append(section.Figures, leak(*in.Given.Verification))
	}
	if newest := newestAnalyses(in.Given.Analyses); len(newest) > 0 {
		section.Figures = append(section.Figures, ahead(newest)...)
	}
	if in.Given.Recorded {
		section.Figures = append(section.Figures, refusals(in.Given.Denials)...)
	}
	if len(section.Figures) == 0 {
		return section, &figure.Absent{What: section.Title,
			Remedy: "give AnalysisRuns (kubectl get analysisruns -o json), audit records (shai audit --denied -o json) or both"}
	}
	if !in.Given.Recorded {
		return section, &figure.Absent{What: "The latest refusals, each with who, what and why",
			Remedy: "give audit records: shai audit --denied -o json"}
	}
	return section, nil
}

// leak shows the attempt to leak a document through a broken search engine.
func leak(found sources.Verification) figure.Figure {
	f := figure.Figure{
		ID: "stopped-leak", Title: "A leak that was tried",
		Caption: "A search engine that ignores who may read what, asked as a user for another user's private document.",
		X:       figure.Axis{Label: "mode"},
		Columns: []figure.Column{{Title: "what happened", Text: true}},
	}
	baselineWords := "nothing leaked: the attempt proves nothing"
	if found.Leak.Baseline.Leaked {
		baselineWords = found.Leak.Document + " leaked"
	}
	record := found.Leak.Audit
	shaiWords := fmt.Sprintf("stopped: %s of %s by %s refused, by policy %s", record.Operation, record.Conduit,
		record.Instance, policyName(record.Policy))
	if found.Leak.Shai.Leaked {
		shaiWords = found.Leak.Document + " leaked"
	}
	f.Rows = []figure.Row{
		{Name: "baseline", Cells: []figure.Cell{figure.Words(baselineWords)}},
		{Name: "shai", Cells: []figure.Cell{figure.Words(shaiWords)}},
	}
	return f
}

// newestAnalyses returns for each pipeline the newest analysis that has decided something.
func newestAnalyses(runs []sources.AnalysisRun) map[string]sources.AnalysisStatus {
	newest := map[string]sources.AnalysisStatus{}
	for _, run := range runs {
		known, found := newest[run.Spec.Pipeline]
		if run.Status.Expected > 0 && (!found || run.Status.StartTime.After(known.StartTime)) {
			newest[run.Spec.Pipeline] = run.Status
		}
	}
	return newest
}

// ahead shows what the analyses of the pipelines decided.
func ahead(newest map[string]sources.AnalysisStatus) []figure.Figure {
	policies := map[string]float64{}
	accesses := figure.Figure{
		ID: "stopped-ahead", Title: "What the analysis decided ahead of time",
		Caption: "Expected accesses: pairs of a task's instance and a conduit. Granted ones need no monitor.",
		X:       figure.Axis{Label: "pipeline, task, access"},
		Columns: []figure.Column{{Title: "granted"}, {Title: "refused"}, {Title: "left to the monitor"}},
	}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		status := newest[name]
		accesses.Rows = append(accesses.Rows, figure.Row{Name: name + ", everything", Cells: []figure.Cell{
			figure.Number(float64(status.Granted)), figure.Number(float64(status.Refused)),
			figure.Number(float64(status.Undecided))}})
		for _, access := range status.Accesses {
			accesses.Rows = append(accesses.Rows, figure.Row{
				Name: fmt.Sprintf("%s, %s %ss %s", name, access.Task, access.Access, access.Conduits),
				Cells: []figure.Cell{figure.Number(float64(access.Granted)), figure.Number(float64(access.Refused)),
					figure.Number(float64(access.Undecided))}})
			for _, cause := range access.RefusedBecause {
				policies[cmp.Or(cause.Policy, "(no policy)")] += float64(cause.Count)
			}
		}
	}
	accesses.Rows = limited(accesses.Rows, &accesses.Notes)
	figures := []figure.Figure{accesses}
	if len(policies) > 0 {
		figures = append([]figure.Figure{counts("stopped-policies", "Refused ahead of time, by policy",
			"Accesses that the analysis refused. Policies are meant to: a user's private documents are nobody else's.",
			"policy", policies)}, figures...)
	}
	return figures
}

// counts draws a bar for each name, the largest first.
func counts(id, title, caption, what string, by map[string]float64) figure.Figure {
	f := figure.Figure{
		ID: id, Title: title, Caption: caption,
		Kind: figure.Bars, X: figure.Axis{Label: what}, Y: figure.Axis{Label: "accesses refused"},
		Columns: []figure.Column{{Title: "refused", Colour: "results-refused"}},
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{figure.Number(by[name])}})
	}
	f.Rows = limited(f.Rows, &f.Notes)
	return f
}

// most is the largest number of rows of a table that has one for each of many names.
const most = 40

// limited keeps the first rows, and says how many there are.
func limited[Row any](rows []Row, notes *[]string) []Row {
	if len(rows) <= most {
		return rows
	}
	*notes = append(*notes, fmt.Sprintf("The first %d of %d rows.", most, len(rows)))
	return rows[:most]
}

// policyName leaves out the arguments of a policy: private(owner: "bob").
func policyName(policy string) string {
	name, _, _ := strings.Cut(policy, "(")
	return name
}

// times is the number of refusals that a record stands for. One of repeated refusals does
// not count the first, which has a record of its own.
func times(record audit.Record) float64 { return float64(max(1, record.Repeated, record.Omitted)) }

// newestFirst orders records of several logs.
func newestFirst(records []audit.Record) []audit.Record {
	return slices.SortedStableFunc(slices.Values(records), func(a, b audit.Record) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Sequence, a.Sequence))
	})
}

// refusals shows the denials of the audit log.
func refusals(records []audit.Record) []figure.Figure {
	by := map[string]float64{}
	latest := figure.Figure{
		ID: "stopped-latest", Title: "The latest refusals", Caption: "From the audit log, the newest first.",
		X: figure.Axis{Label: "time"},
		Columns: []figure.Column{{Title: "times"}, {Title: "who", Text: true}, {Title: "what", Text: true},
			{Title: "policy", Text: true}, {Title: "why", Text: true}},
	}
	for _, record := range newestFirst(records) {
		by[cmp.Or(policyName(record.Policy), "(no policy)")] += times(record)
		if len(latest.Rows) < most {
			latest.Rows = append(latest.Rows, figure.Row{Name: record.Time.UTC().Format(instant), Cells: []figure.Cell{
				figure.Number(times(record)), figure.Words(cmp.Or(record.Instance, record.Task, record.Principal)),
				figure.Words(strings.TrimSpace(record.Operation + " " + record.Conduit)),
				figure.Words(record.Policy), figure.Words(record.Reason)}})
		}
	}
	if len(records) == 0 {
		latest.Notes = []string{"The audit records that were given have no refusal."}
		return []figure.Figure{latest}
	}
	if len(records) > most {
		latest.Notes = append(latest.Notes, fmt.Sprintf("The first %d of %d records.", most, len(records)))
	}
	return []figure.Figure{counts("stopped-denials", "Refused when asked for, by policy",
		"Refusals in the audit log that was given, with those that a record stands for.", "policy", by), latest}
}
