// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/report/figure"
)

// Coverage is what an analysis has found about one pipeline.
type Coverage struct {
	Plan    *analysis.Plan
	Found   *analysis.Report
	Missing []string // what the analysis did not know
	Made    time.Time
	Version string
}

// ComposeCoverage makes a report of which flows the policies allow, and of what would open the
// others.
func ComposeCoverage(in Coverage) figure.Report {
	total := in.Found.Total
	made := figure.Report{
		Title: "What the policies of " + in.Plan.Pipeline + " allow",
		Subtitle: fmt.Sprintf("%s conduits of %s classes, %s instances of tasks", whole(in.Found.Conduits),
			whole(in.Found.Classes), whole(in.Found.Instances)),
		Made: in.Made, Version: in.Version,
		Highlights: []figure.Highlight{
			{Value: whole(total.Granted), Label: "expected accesses are granted",
				Remark: "of " + whole(total.Expected)},
			{Value: whole(total.Refused), Label: "are refused by policies", Good: total.Refused > 0},
			{Value: whole(total.Undecided), Label: "are decided when they happen"},
		},
		Sections: []figure.Section{{ID: "flow", Title: "Where data may flow",
			Text: "Tasks, the conduits that they are expected to use, and how many of the expected accesses the policies " +
				"allow: all (a full line), some, or none (a dashed line). An access is one of one instance to one conduit.",
			Figures: []figure.Figure{coverageGraph(in)}}},
	}
	if blocked := blockedFlows(in.Found); len(blocked.Rows) > 0 {
		made.Sections = append(made.Sections, figure.Section{ID: "blocked", Title: "What is not granted, and why",
			Text: "Policies exist to refuse accesses: a refusal is no fault by itself. The change is the smallest of those that " +
				"were tried with which the example would be allowed. You decide whether it should.",
			Figures: []figure.Figure{blocked}})
	}
	for _, warning := range in.Found.Warnings {
		made.Absent = append(made.Absent, figure.Absent{What: warning.Message,
			Remedy: cmp.Or(warning.Suggestion, "correct the task's manifest, or the policies")})
	}
	for _, missing := range in.Missing {
		what, remedy, _ := strings.Cut(missing, ": ")
		made.Absent = append(made.Absent, figure.Absent{What: what, Remedy: remedy})
	}
	return made
}

func whole(number uint64) string { return figure.Digits(float64(number)) }

// coverageGraph draws tasks and sets of conduits, and has a row for each of the accesses.
func coverageGraph(in Coverage) figure.Figure {
	f := figure.Figure{ID: "flow-" + slug(in.Plan.Pipeline), Title: "Pipeline " + in.Plan.Pipeline,
		X: figure.Axis{Label: "access"},
		Columns: []figure.Column{{Title: "expected"}, {Title: "granted"}, {Title: "refused"}, {Title: "undecided"},
			{Title: "instances"}}}
	found := flows{at: map[string]int{}}
	for _, one := range in.Plan.Tasks {
		remark := ""
		if len(one.Parameters) > 0 {
			remark = "one for each " + strings.Join(one.Parameters, ", ")
		}
		found.node(task+one.Name, figure.Node{Name: one.Name, Kind: task, Remark: remark})
	}
	for _, set := range in.Plan.Sets {
		remark := ""
		if set.Ingress {
			remark = "data comes in"
		}
		if set.Egress {
			remark = "data goes out"
		}
		found.node("conduit"+set.Name, figure.Node{Name: set.Name, Kind: set.Kind.String(), Remark: remark})
	}
	for _, a := range in.Found.Accesses {
		from, to, verb := "conduit"+a.Conduits, task+a.Task, "reads"
		if a.Access == "write" {
			from, to, verb = to, from, "writes"
		}
		f.Rows = append(f.Rows, figure.Row{Name: a.Task + " " + verb + " " + a.Conduits, Cells: []figure.Cell{
			figure.Number(float64(a.Expected)), figure.Number(float64(a.Granted)), figure.Number(float64(a.Refused)),
			figure.Number(float64(a.Undecided)), figure.Number(float64(a.Instances))}})
		before := len(found.edges)
		found.arrow(from, to)
		for i := before; i < len(found.edges); i++ {
			found.edges[i].State, found.edges[i].Label = stateOf(a.Tally), labelOf(a.Tally)
		}
	}
	if len(found.nodes) > legible {
		f.Notes = append(f.Notes, fmt.Sprintf("Not drawn: nobody can read a drawing of %d tasks and conduits.",
			len(found.nodes)))
		return f
	}
	slices.SortStableFunc(found.edges, func(a, b figure.Edge) int {
		return cmp.Or(strings.Compare(found.keys[a.From], found.keys[b.From]),
			strings.Compare(found.keys[a.To], found.keys[b.To]))
	})
	f.Graph = layOut(found.nodes, found.edges)
	return f
}

func stateOf(t analysis.Tally) figure.EdgeState {
	switch {
	case t.Granted == 0:
		return figure.Blocked
	case t.Granted < t.Expected:
		return figure.Partial
	}
	return figure.Open
}

func labelOf(t analysis.Tally) string {
	if t.Granted == t.Expected {
		return whole(t.Expected)
	}
	return whole(t.Granted) + " of " + whole(t.Expected)
}

// blockedFlows has a row for each policy because of which accesses are not granted.
func blockedFlows(found *analysis.Report) figure.Figure {
	f := figure.Figure{ID: "not-granted", Title: "Accesses that are not granted, by policy", X: figure.Axis{Label: "access"},
		Columns: []figure.Column{{Title: "number"}, {Title: "policy", Text: true}, {Title: "example", Text: true},
			{Title: "why", Text: true}, {Title: "it would be allowed with", Text: true}}}
	for _, a := range found.Accesses {
		for _, cause := range slices.Concat(a.RefusedBecause, a.UndecidedBecause) {
			cells := []figure.Cell{
				figure.Number(float64(cause.Count)), figure.Words(cmp.Or(cause.Policy, "none")),
				figure.Words(cause.Instance + ": " + cause.Conduit), figure.Words(cause.Reason),
				figure.Words(cmp.Or(cause.Suggestion, "–"))}
			f.Rows = append(f.Rows, figure.Row{Name: a.Task + ": " + a.Access + " of " + a.Conduits, Cells: cells})
		}
	}
	return f
}
