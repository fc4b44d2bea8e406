// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
)

// accessesOf finds the entry "indexer read documents".
func accessesOf(t *testing.T, report *Report, key string) Accesses {
	t.Helper()
	for _, a := range report.Accesses {
		if a.Task+" "+a.Access+" "+a.Conduits == key {
			return a
		}
	}
	t.Fatalf("the report has no %s", key)
	return Accesses{}
}

func TestReport(t *testing.T) {
	plan, c := village(t)
	report := run(t, plan, c).Report(now)
	for key, want := range map[string]Tally{
		"indexer read documents": {Expected: 27, Granted: 27},
		"indexer write index":    {Expected: 1, Granted: 1},
		"worker write queries":   {Expected: 4, Granted: 4},
		"worker read documents": {Expected: 4 * 27, Granted: readableByAll(t, plan, c),
			Refused: 4*27 - readableByAll(t, plan, c)},
	} {
		if got := accessesOf(t, report, key); got.Tally != want {
			t.Errorf("%s: %+v, want %+v", key, got.Tally, want)
		}
	}
	var total Tally
	for _, a := range report.Accesses {
		total.add(a.Tally)
		if a.Granted+a.Refused+a.Undecided != a.Expected {
			t.Errorf("%s %s %s: %+v does not add up", a.Task, a.Access, a.Conduits, a.Tally)
		}
	}
	if report.Total != total {
		t.Errorf("in all %+v, want %+v", report.Total, total)
	}
	if len(report.Warnings) != 0 {
		t.Errorf("a healthy pipeline has warnings: %+v", report.Warnings)
	}
	picture := report.Mermaid()
	if !strings.HasPrefix(picture, "flowchart LR\n") ||
		!strings.Contains(picture, `set_documents -->|"27 granted"| task_indexer`) {
		t.Errorf("the picture: %s", picture)
	}
}

func readableByAll(t *testing.T, plan *Plan, c *catalog.Catalog) uint64 {
	t.Helper()
	result, sum := run(t, plan, c), 0
	for _, one := range result.Instances() {
		if one.Instance.Task == "worker" {
			sum += len(readable(t, result, c, one.Instance))
		}
	}
	return uint64(sum)
}

// The causes are the policies that refuse most, with counts of their own.
func TestCausesOfRefusals(t *testing.T) {
	plan, c := village(t)
	worker := accessesOf(t, run(t, plan, c).Report(now), "worker read documents")
	var names []string
	for i, cause := range worker.RefusedBecause {
		names = append(names, cause.Policy)
		if i > 0 && cause.Count > worker.RefusedBecause[i-1].Count {
			t.Errorf("%s refuses more than %s before it", cause.Policy, names[i-1])
		}
		if !strings.Contains(cause.Reason, "may read it (") || !strings.HasPrefix(cause.Conduit, "/corpus/") ||
			!strings.HasPrefix(cause.Instance, "worker(") {
			t.Errorf("%+v", cause)
		}
	}
	// Each of four users is refused the two private documents of three others.
	if len(names) != mostCauses || names[0] != "private" || worker.RefusedBecause[0].Count != 4*3*2 {
		t.Errorf("%+v", worker.RefusedBecause)
	}
}

// What is refused for its exits alone is opened by the exit of the taint, not to everybody.
func TestExitsAreSuggestedBeforeReaders(t *testing.T) {
	plan, bundle := sysE(t)
	for i := range bundle.Policies {
		switch one := &bundle.Policies[i]; one.Name {
		case "private":
			one.Text = one.Text[:strings.Index(one.Text, "declassify")] +
				"declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }"
		case "index":
			one.Text = `policy index { update :- sKeyIs("task/indexer"). declassify :- isAsRestrictive(read, this.read) until cTypeIs("topics"). }`
		}
	}
	c := newCatalog(t, bundle)
	if _, _, err := c.Register([]string{"/corpus/private/alice/1.txt"}); err != nil {
		t.Fatal(err)
	}
	causes := accessesOf(t, run(t, plan, c).Report(now), "indexer read documents").RefusedBecause
	want := "policy private: add `declassify :- isAsRestrictive(read, this.read) until cTypeIs(\"topics\").`; " +
		"this holds for all conduits under the policy, with every owner, and under policies that include it"
	if len(causes) != 1 || causes[0].Suggestion != want {
		t.Errorf("%+v, want the suggestion %s", causes, want)
	}
}

// Only what keeps a task from its work is a warning: not a refusal among accesses that
// are granted, not what is undecided, and not what a policy on trial forbids.
func TestWarnings(t *testing.T) {
	const (
		others  = `policy index { update :- sKeyIs("task/index-follower"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`
		address = `policy index { update :- sIpIs("127.0.0.1"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`
	)
	for _, test := range []struct {
		name, text string
		mode       catalog.Mode
		tally      Tally // of the indexer's writes
		warning    string
	}{
		{"nothing may be written", others, catalog.Enforce, Tally{Expected: 1, Refused: 1},
			"indexer may write nothing of index: only task/index-follower "},
		{"on trial", others, catalog.Audit, Tally{Expected: 1, Refused: 1}, ""},
		{"on trial, and users are told", others, catalog.Warn, Tally{Expected: 1, Refused: 1}, ""},
		{"it depends on the address", address, catalog.Enforce, Tally{Expected: 1, Undecided: 1}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, bundle := sysE(t)
			bundle = changed(t, bundle, "index", test.text, test.mode)
			report := run(t, plan, newCatalog(t, bundle)).Report(now)
			writes := accessesOf(t, report, "indexer write index")
			if writes.Tally != test.tally {
				t.Errorf("%+v, want %+v", writes.Tally, test.tally)
			}
			causes, mode := slices.Concat(writes.RefusedBecause, writes.UndecidedBecause), test.mode
			if mode == catalog.Enforce {
				mode = ""
			}
			if len(causes) != 1 || causes[0].Policy != "index" || causes[0].Instance != "indexer" ||
				causes[0].Mode != mode {
				t.Errorf("causes: %+v", causes)
			}
			switch {
			case test.warning == "" && len(report.Warnings) > 0:
				t.Errorf("warnings: %+v", report.Warnings)
			case test.warning != "" && (len(report.Warnings) != 1 ||
				!strings.HasPrefix(report.Warnings[0].Message, test.warning) || report.Warnings[0].Suggestion == ""):
				t.Errorf("warnings: %+v, want one that begins with %q and suggests a change", report.Warnings,
					test.warning)
			}
		})
	}
}

// changed is the bundle with another text and mode of one policy.
func changed(t *testing.T, bundle catalog.Bundle, name, text string, mode catalog.Mode) catalog.Bundle {
	t.Helper()
	at := slices.IndexFunc(bundle.Policies, func(p catalog.PolicyText) bool { return p.Name == name })
	if at < 0 {
		t.Fatalf("there is no policy %s", name)
	}
	bundle.Hash, bundle.Policies = "changed", slices.Clone(bundle.Policies)
	bundle.Policies[at].Text, bundle.Policies[at].Mode = text, mode
	return bundle
}

// An instance whose taint cannot be bound does not start: one warning for all of a task.
func TestWarnsOfInstancesThatCannotStart(t *testing.T) {
	plan, c := village(t)
	plan.task("worker").Taint.Arguments = nil
	report := run(t, plan, c).Report(now)
	if len(report.Warnings) != 1 {
		t.Fatalf("warnings: %+v", report.Warnings)
	}
	warning := report.Warnings[0]
	if warning.Task != "worker" || warning.Instances != 4 ||
		!strings.HasPrefix(warning.Message, "worker(alice, de) cannot start: ") {
		t.Errorf("%+v", warning)
	}
	if got := accessesOf(t, report, "worker read documents"); got.Tally != (Tally{}) {
		t.Errorf("instances that cannot start are counted: %+v", got.Tally)
	}
}

// Each suggestion, applied to the bundle, lets its flow through.
func TestSuggestionsAreTrue(t *testing.T) {
	plan, bundle := sysE(t)
	for i := range bundle.Policies {
		if bundle.Policies[i].Name == "private" {
			// A forgotten exit: the indexer may no longer read private documents.
			text := bundle.Policies[i].Text
			bundle.Policies[i].Text = text[:strings.Index(text, "declassify")] + "}"
		}
	}
	c := newCatalog(t, bundle)
	if _, _, err := c.Register([]string{"/corpus/private/alice/1.txt"}); err != nil {
		t.Fatal(err)
	}
	causes := accessesOf(t, run(t, plan, c).Report(now), "indexer read documents").RefusedBecause
	if len(causes) != 1 || causes[0].Policy != "private" ||
		!strings.Contains(causes[0].Reason, "(private, owner alice)") {
		t.Fatalf("%+v", causes)
	}
	_, clause, ok := strings.Cut(causes[0].Suggestion, "add `")
	if !ok {
		t.Fatalf("suggestion %q adds nothing", causes[0].Suggestion)
	}
	text, _ := c.State().PolicyText("private")
	clause, _, _ = strings.Cut(clause, "`")
	if _, err := c.Apply(changed(t, bundle, "private", text[:len(text)-1]+clause+"}",
		catalog.Enforce)); err != nil {
		t.Fatal(err)
	}
	if !readable(t, run(t, plan, c), c, Instance{Task: "indexer"})["/corpus/private/alice/1.txt"] {
		t.Errorf("suggestion %q does not help", causes[0].Suggestion)
	}
}
