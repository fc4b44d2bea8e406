// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
)

func TestReport(t *testing.T) {
	plan, c := village(t)
	report := run(t, plan, c).Report(now)
	byKey := make(map[string]Coverage)
	for _, coverage := range report.Coverage {
		byKey[coverage.Task+" "+coverage.Access+" "+coverage.Conduits] = coverage
	}
	if got := byKey["indexer read documents"]; got.Expected != 27 || got.Validated != 27 {
		t.Errorf("indexer: %+v", got)
	}
	if got := byKey["worker read documents"]; got.Expected != 4*27 || got.Validated == 0 || got.Validated == got.Expected {
		t.Errorf("worker: %+v", got)
	}
	if got := byKey["worker write queries"]; got.Expected != 4 || got.Validated != 4 {
		t.Errorf("worker writes queries: %+v", got)
	}
	if got := byKey["indexer write index"]; got.Expected != 1 || got.Validated != 1 {
		t.Errorf("indexer writes the index: %+v", got)
	}
	total := uint64(0)
	for _, coverage := range report.Coverage {
		total += coverage.Expected - coverage.Validated
	}
	if report.BlockedTotal != total || len(report.Blocked) == 0 {
		t.Errorf("blocked %d, want %d; %d examples", report.BlockedTotal, total, len(report.Blocked))
	}
	text, picture := report.Text(), report.Mermaid()
	for _, want := range []string{"worker", "documents", "because", "private(owner:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if !strings.HasPrefix(picture, "flowchart LR\n") || !strings.Contains(picture, `set_documents -->|"100.0 %"| task_indexer`) {
		t.Errorf("the picture: %s", picture)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	t.Log(text)
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
	for _, blocked := range run(t, plan, c).Report(now).Blocked {
		if blocked.Instance != "indexer" {
			continue
		}
		_, clause, ok := strings.Cut(blocked.Suggestion, "add `")
		if !ok || blocked.Policy != `private(owner: "alice")` || blocked.Obligation == "" {
			t.Fatalf("%+v", blocked)
		}
		applied := bundle
		applied.Hash = "changed"
		applied.Policies = append([]catalog.PolicyText(nil), bundle.Policies...)
		for i := range applied.Policies {
			if applied.Policies[i].Name == "private" {
				text := applied.Policies[i].Text
				applied.Policies[i].Text = text[:len(text)-1] + strings.TrimSuffix(clause, "`") + "}"
			}
		}
		if _, err := c.Apply(applied); err != nil {
			t.Fatal(err)
		}
		if !readable(t, run(t, plan, c), c, Instance{Task: "indexer"})["/corpus/private/alice/1.txt"] {
			t.Errorf("suggestion %q does not help", blocked.Suggestion)
		}
		return
	}
	t.Error("the indexer is not blocked")
}
