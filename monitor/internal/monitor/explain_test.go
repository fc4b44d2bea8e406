// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/wire"
)

// An explanation begins with what a person would say, and offers what one fact can mend.
func TestExplanationsSayWhyAndWhatToDo(t *testing.T) {
	m, _ := bareMonitor(t)
	for _, test := range []struct{ principal, document, sentence, remedy string }{
		{"alice", "/diary/alice/1.txt", `worker(alice, de) may read it (diary(owner: "alice"))`, ""},
		{"bob", "/diary/alice/1.txt", `worker(bob, de) may read it (diary(owner: "alice"))`, ""},
		{"carol", "/diary/alice/1.txt", `only alice, or whoever "friends/alice" lists as friend may read it (diary, owner alice); "friends/alice" does not list carol as friend`,
			"shai facts add friends/alice friend carol"},
		{"o'hara", "/diary/alice/1.txt", `only alice, or whoever "friends/alice" lists as friend may read it (diary, owner alice); "friends/alice" does not list o'hara as friend`,
			`shai facts add friends/alice friend 'o'\''hara'`},
		{"carol", "/dropbox/1.txt", "only admin may read it (dropbox); carol is not admin", ""},
	} {
		got, err := m.Explain(t.Context(), api.Question{Principal: test.principal, Region: "de",
			Conduit: test.document})
		if err != nil {
			t.Fatal(err)
		}
		if got.Sentence != test.sentence || got.Remedy != test.remedy {
			t.Errorf("%s and %s: %s\n%s; want\n%s\n%s", test.principal, test.document, got.Sentence, got.Remedy,
				test.sentence, test.remedy)
		}
	}
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{apiFact("friends/alice", "friend",
		"carol")}}); err != nil {
		t.Fatal(err)
	}
	got, err := m.Explain(t.Context(), api.Question{Principal: "carol", Region: "de", Conduit: "/diary/alice/1.txt"})
	if err != nil || !got.Allowed {
		t.Errorf("with the remedy: %+v, %v", got, err)
	}
}

// What a task can do is not denied without a word: a question names neither the address that a user
// connects from nor what is written.
func TestExplanationsSayWhatTheyLeaveOut(t *testing.T) {
	options := bareOptions(t)
	rules := &triedRules{}
	for _, one := range []struct {
		text  string
		holds bool
	}{
		{`sIpIs("192.0.2.1")`, true}, {`sIpIs("192.0.2.2")`, false}, {"cNewLenIs(5)", true}, {`sKeyIs("nobody")`, false},
		{`cNameIs(C), each in C willsay f(X) { lt(X, 8) }`, true},
	} {
		rules.add(t, "notes", one.text, one.holds)
	}
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	applyBare(t, m, rules.manifest(rules.all))
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	for _, rule := range rules.all {
		wrote := bob.writes(rule.conduit, "f(7)\n", 0) == ""
		found, err := m.Explain(t.Context(), api.Question{Principal: "bob", Region: "de", Conduit: rule.conduit,
			Access: "write"})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(found.Provisos, "\n")
		if wrote != rule.holds || wrote && !found.Allowed && told == "" {
			t.Errorf("%s: written: %v; explained: %v, %q", rule.text, wrote, found.Allowed, told)
		}
		if asks := strings.Contains(rule.text, "sIpIs"); asks != strings.Contains(told, "address") {
			t.Errorf("%s: %q", rule.text, told)
		}
		if !strings.Contains(told, "what is written") {
			t.Errorf("%s, of a typed conduit: %q", rule.text, told)
		}
	}
}

// Nor is it left out that a pipeline's mode lets happen what its policies forbid.
func TestExplanationsSayWhatTheModeLetsHappen(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	question := api.Question{Principal: "bob", Region: "de", Conduit: "/dropbox/1.txt"}
	says := func(want string) {
		t.Helper()
		found, err := m.Explain(t.Context(), question)
		if told := strings.Join(found.Provisos, "\n"); err != nil || found.Allowed || !strings.Contains(told, want) ||
			want == "" && told != "" {
			t.Errorf("%+v, %v; want %q", found, err, want)
		}
		readers, err := m.Readers(t.Context(), api.ReadersRequest{Conduit: question.Conduit, Limit: 10})
		if err != nil || !strings.Contains(readers.Unlisted, want) || want == "" && readers.Unlisted != "" {
			t.Errorf("%+v, %v; want %q", readers, err, want)
		}
	}
	says("")
	if _, err := m.SetMode(t.Context(), "bare", "audit"); err != nil {
		t.Fatal(err)
	}
	const lets = "in mode audit, in which what is forbidden is recorded, and happens"
	says(lets)
	bob := typedSessions(t, m, wire.ModeAudit, "bob")[0]
	if !bob.opens(m, question.Conduit) {
		t.Error("in mode audit, what is forbidden does not happen")
	}
	open := api.Question{Principal: "bob", Region: "de", Conduit: "/open/1.txt"}
	if found, err := m.Explain(t.Context(), open); err != nil || !found.Allowed || len(found.Provisos) > 0 {
		t.Errorf("of what is allowed: %+v, %v", found, err)
	}

	text := strings.Replace(pipelinetest.Bare, "mode: shai", "mode: audit", 1)
	project, err := offline.Load(t.Context(), []manifest.Source{{Name: "bare.yaml", Text: text}},
		offline.Options{Define: pipelinetest.Define(t), Conduits: []string{question.Conduit}})
	if err != nil {
		t.Fatal(err)
	}
	defer project.Close()
	found, err := project.Explain(question, time.Now())
	if told := strings.Join(found.Provisos, "\n"); err != nil || !strings.Contains(told, lets) {
		t.Errorf("without a monitor: %+v, %v", found, err)
	}
	readers, err := project.Who(t.Context(), api.ReadersRequest{Conduit: question.Conduit, Limit: 10}, time.Now())
	if err != nil || !strings.Contains(readers.Unlisted, lets) {
		t.Errorf("without a monitor: %+v, %v", readers, err)
	}
}
