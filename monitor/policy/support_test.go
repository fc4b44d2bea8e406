// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noon is the clock of tests that do not say otherwise.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// mustBind compiles a text with one policy and binds it.
func mustBind(t rapid.TB, text string, values ...string) *Policy {
	t.Helper()
	template, err := CompileAccepted("test.pol", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mustBindTemplate(t, template, values...)
}

func mustBindTemplate(t rapid.TB, template *Template, values ...string) *Policy {
	t.Helper()
	p, err := template.bindValues(values...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustLibrary(t testing.TB, name string, values ...string) *Policy {
	t.Helper()
	template, found := LibraryTemplate(name)
	if !found {
		t.Fatalf("the library has no policy %s", name)
	}
	return mustBindTemplate(t, template, values...)
}

// mustFact reads `conduit says relation ["value", 1, {"time":…}]`, with an optional
// @offset behind the conduit.
func mustFact(t testing.TB, text string) Fact {
	t.Helper()
	place, said, ok := strings.Cut(text, " says ")
	relation, list, spaced := strings.Cut(said, " ")
	if !ok || !spaced {
		t.Fatalf("fact %q: want `conduit says relation [values]`", text)
	}
	fact := Fact{Conduit: place, Relation: relation}
	if err := json.Unmarshal([]byte(list), &fact.Arguments); err != nil {
		t.Fatalf("fact %q: %v", text, err)
	}
	if conduit, offset, positioned := strings.Cut(place, "@"); positioned {
		fact.Conduit, fact.Positioned = conduit, true
		if err := json.Unmarshal([]byte(offset), &fact.Offset); err != nil {
			t.Fatalf("fact %q: %v", text, err)
		}
	}
	return fact
}

func mustFacts(t testing.TB, texts ...string) *FactBase {
	t.Helper()
	base := NewFactBase()
	for _, text := range texts {
		if _, err := base.Add(mustFact(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func stateOf(t testing.TB, facts ...string) State {
	t.Helper()
	return StateOf(mustFacts(t, facts...), NewConduitTable())
}

func session(principal, region string) *Session {
	return &Session{Principal: principal, Region: region}
}

func conditionTexts(conditions []Condition) []string {
	var texts []string
	for _, condition := range conditions {
		texts = append(texts, condition.String())
	}
	return texts
}

// checkConditions asserts what every allowed decision promises: its conditions hold
// in the state it was made in.
func checkConditions(t testing.TB, decision Decision, state State, environment Environment) {
	t.Helper()
	for _, condition := range decision.Conditions {
		if !condition.Holds(state, environment) {
			t.Errorf("condition %s of an allowed decision does not hold where it was made", condition)
		}
	}
	if !decision.Allowed && (len(decision.Conditions) > 0 || decision.Reason == "") {
		t.Errorf("a denial has conditions %v and reason %q; want none, and a reason", decision.Conditions,
			decision.Reason)
	}
}

// evaluate decides one rule for the environment's session and target.
func evaluate(rule Rule, state State, environment Environment) Decision {
	return decide(state, &environment, rule.name.String(), func(p *prover) string {
		p.ask(rule.owner(), func() bool { return p.evaluate(rule) }, func() denial {
			return denial{"the " + rule.String() + " does not hold", ""}
		})
		return "the " + rule.String() + " holds"
	})
}

// ruleIsAtLeast reports whether r1 is at least as restrictive as r2: whenever r1
// lets someone read, so does r2. ok is only claimed under the returned conditions.
func ruleIsAtLeast(r1, r2 Rule, state State, environment Environment) (ok bool, conditions []Condition) {
	p := newProver(state, &environment)
	defer p.release()
	if !p.ruleAtLeast(r1, r2) || p.budget.err != nil {
		return false, nil
	}
	return true, p.takeConditions()
}

// labelIsAtLeast reports whether everything l2 demands is demanded by l1.
func labelIsAtLeast(l1, l2 Label, state State, environment Environment) (ok bool, conditions []Condition) {
	p := newProver(state, &environment)
	defer p.release()
	if !p.labelAtLeast(l1, l2) || p.budget.err != nil {
		return false, nil
	}
	return true, p.takeConditions()
}

// libraryText returns the source of a standard policy.
func libraryText(name string) ([]byte, bool) {
	text, err := libraryTexts.ReadFile("library/" + name + ".pol")
	return text, err == nil
}
