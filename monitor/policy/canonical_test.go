// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// symmetricBody draws a conjunction in which many literals look alike: small graphs of
// facts over few variables, equal parts that have nothing in common, and each with several
// conditions. Literals hold variables as @0, @1, ….
func symmetricBody(t *rapid.T) []string {
	variables := rapid.IntRange(2, 7).Draw(t, "variables")
	variable := func(label string) string {
		return fmt.Sprintf("@%d", rapid.IntRange(0, variables-1).Draw(t, label))
	}
	literals := make([]string, 0, 12)
	for range rapid.IntRange(1, 8).Draw(t, "literals") {
		one, two := variable("one"), variable("two")
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0, 1, 2, 3:
			literals = append(literals, fmt.Sprintf(`"l" says g(%s, %s)`, one, two))
		case 4:
			literals = append(literals, fmt.Sprintf(`"l" says f(%s)`, one), fmt.Sprintf(`neq(%s, %s)`, one, two))
		case 5:
			literals = append(literals, fmt.Sprintf(`each in "l" says g(E, F) { neq(E, %s), neq(F, %s), "m" says f(E) }`,
				one, two))
		case 6:
			literals = append(literals, "sKeyIs("+one+")")
		case 7:
			literals = append(literals, fmt.Sprintf("timeIs(%s)", one), fmt.Sprintf("eq(%s, %s)", two, one))
		case 8:
			literals = append(literals, "cNameIs("+one+")", "cNameIs("+
				rapid.SampledFrom([]string{"this", `"x"`, two}).Draw(t, "name")+")")
		default:
			literals = append(literals, fmt.Sprintf(`concat(%s, "l", %s)`, one, two))
		}
	}
	for i := range variables {
		literals = append(literals, fmt.Sprintf(`"l" says f(@%d)`, i))
	}
	return literals
}

// spelled puts names into literals, and mixes the literals and those inside an each.
func spelled(t *rapid.T, literals []string, label string) string {
	names := rapid.Permutation(strings.Split("ABCDGHIJ", "")).Draw(t, label+" names")
	literals = slices.Clone(literals)
	for i := range literals {
		for j, name := range names {
			literals[i] = strings.ReplaceAll(literals[i], fmt.Sprintf("@%d", j), name)
		}
		if pattern, condition, isEach := strings.Cut(literals[i], " { "); isEach {
			inner := strings.Split(strings.TrimSuffix(condition, " }"), "), ")
			for j := range inner {
				inner[j] = strings.TrimSuffix(inner[j], ")") + ")"
			}
			literals[i] = pattern + " { " + strings.Join(rapid.Permutation(inner).Draw(t, label+" inner"), ", ") + " }"
		}
	}
	return strings.Join(rapid.Permutation(literals).Draw(t, label+" order"), ", ")
}

func identity(t rapid.TB, bodies ...string) ID {
	template, err := CompileAccepted("random", []byte(ruleText("read", bodies)))
	if err != nil {
		t.Fatalf("%v in %s", err, bodies)
	}
	p, err := template.bindValues()
	if err != nil {
		t.Fatal(err)
	}
	return p.ID()
}

// Neither the order of clauses and literals nor the names of variables are part of a
// policy's identity, however alike its literals are.
func TestIdentityIgnoresOrderAndNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var clauses [][]string
		for range rapid.IntRange(1, 2).Draw(t, "clauses") {
			clauses = append(clauses, symmetricBody(t))
		}
		first := make([]string, len(clauses))
		for i := range clauses {
			first[i] = spelled(t, clauses[i], "first")
		}
		want := identity(t, first...)
		for range 30 { // pairs
			second := make([]string, len(clauses))
			for i := range clauses {
				second[i] = spelled(t, clauses[i], "second")
			}
			if identity(t, rapid.Permutation(second).Draw(t, "order")...) != want {
				t.Fatalf("one policy, two identities:\n%s\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
			}
		}
	})
}

// Clauses as symmetric as they can be: their variables have to be tried one after the
// other, and what is tried stays within bounds.
func TestIdentityOfSymmetricClauses(t *testing.T) {
	cycle := func(name string, length int) (literals []string) {
		for i := range length {
			literals = append(literals, fmt.Sprintf(`"l" says g(%s%d, %s%d)`, name, i, name, (i+1)%length))
		}
		return literals
	}
	var pairs, star, grid []string
	for i := range 20 {
		pairs = append(pairs, fmt.Sprintf(`"l" says g(V%d, W%d)`, i, i), fmt.Sprintf(`"m" says g(W%d, V%d)`, i, i))
		star = append(star, fmt.Sprintf(`"l" says g(V, W%d)`, i), fmt.Sprintf(`"m" says f(W%d)`, i))
	}
	for i := range 4 {
		for j := range 4 {
			grid = append(grid, fmt.Sprintf(`"l" says g(V%d%d, V%d%d)`, i, j, i, (j+1)%4),
				fmt.Sprintf(`"l" says g(V%d%d, V%d%d)`, i, j, (i+1)%4, j))
		}
	}
	for name, literals := range map[string][]string{
		"a cycle": cycle("V", 24), "two cycles": append(cycle("V", 12), cycle("W", 12)...),
		"equal cycles and another": append(append(cycle("V", 6), cycle("W", 6)...), cycle("X", 12)...),
		"pairs":                    pairs, "a star": star, "a torus": grid,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				mixed := rapid.Permutation(literals).Draw(t, "order")
				if identity(t, strings.Join(mixed, ", ")) != identity(t, strings.Join(literals, ", ")) {
					t.Fatalf("another identity in the order %s", mixed)
				}
			})
		})
	}
	if identity(t, strings.Join(append(cycle("V", 12), cycle("W", 12)...), ", ")) ==
		identity(t, strings.Join(cycle("V", 24), ", ")) {
		t.Error("two cycles have the identity of one")
	}
}

// Normalisation and canonical order keep the meaning: a clause as written and the bound
// one admit the same sessions.
func TestBoundClausesKeepTheirMeaning(t *testing.T) {
	admitted := 0
	rapid.Check(t, func(t *rapid.T) {
		body := bodyText().Draw(t, "body")
		template, err := CompileAccepted("random", []byte("read :- "+body+"."))
		if err != nil {
			t.Fatal(err)
		}
		p, err := template.bindValues()
		if err != nil {
			t.Fatal(err)
		}
		plan := newPlanner(template.read[0].names, false)
		ordered, stuck := plan.order(slices.Clone(template.read[0].body))
		if stuck != nil {
			t.Fatal("stuck")
		}
		asWritten := *p
		asWritten.rules[readRule] = &rule{clauses: []clause{plan.finish(ordered, Position{})}}
		_, state := drawState(t, "facts")
		for _, environment := range flows() {
			got := evaluate(p.Read("x"), state, environment).Allowed
			if want := evaluate(asWritten.Read("x"), state, environment).Allowed; got != want {
				t.Fatalf("%s: %v, as written %v", body, got, want)
			}
			if got {
				admitted++
			}
		}
	})
	if admitted == 0 {
		t.Error("nobody was ever admitted: the test has become too weak")
	}
}

// A rule that speaks of the policy's own rules has another meaning in each policy.
func TestLabelsKnowTheRulesTheyReferTo(t *testing.T) {
	tests := []struct{ name, first, second string }{
		{"in the rule", `read :- isAsRestrictive(read, this.update). update :- sKeyIs("a").`,
			`read :- isAsRestrictive(read, this.update). update :- sKeyIs("b").`},
		{"in an exit", `read :- sKeyIs("a"). update :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until isAsRestrictive(read, this.update).`,
			`read :- sKeyIs("a"). update :- true. declassify :- isAsRestrictive(read, this.read) until isAsRestrictive(read, this.update).`},
		{"behind an exit", `read :- sKeyIs("a"). update :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.update) until (cIsInternal(), isAsRestrictive(read, this.update) until isAsRestrictive(read, this.read)).`,
			`read :- true. update :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.update) until (cIsInternal(), isAsRestrictive(read, this.update) until isAsRestrictive(read, this.read)).`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			first, second := mustBind(t, test.first).Label("x"), mustBind(t, test.second).Label("x")
			environment := Environment{Now: noon}
			if ok, _ := labelIsAtLeast(second, first, stateOf(t), environment); ok {
				t.Error("a label was taken for another one of the same text")
			}
			if ok, _ := labelIsAtLeast(first, first, stateOf(t), environment); !ok {
				t.Error("a label is not at least as restrictive as itself")
			}
			if first.Key() == second.Key() || first.Join(second).Len() != 2 {
				t.Error("different labels have one key")
			}
		})
	}
}

// Without a clock, nothing that asks for it holds. With one, it does.
func TestTimeNeedsAClock(t *testing.T) {
	for _, body := range []string{
		`timeIs(_)`, `timeIs(T)`, `timeIs(T), timeIs(U), eq(T, U)`, `timeIs(T), le(T, T)`, `timeIs(T), neq(T, "noon")`,
		`timeIs(T), each in "log" says f(E) { lt(E, T) }`, `each in "l" says f(E) { timeIs(_) }`,
		`timeIs(T), gt(T, 2026-01-01T00:00:00Z)`,
	} {
		rule := mustBind(t, "read :- "+body+".").Read("x")
		state := stateOf(t, `l says f ["a"]`)
		if evaluate(rule, state, Environment{}).Allowed {
			t.Errorf("%s holds without a clock", body)
		}
		decision := evaluate(rule, state, Environment{Now: noon})
		if !decision.Allowed {
			t.Errorf("%s does not hold: %s", body, decision.Reason)
		}
		if allHold(decision.Conditions, state, Environment{}) {
			t.Errorf("the conditions %v of %s hold without a clock", decision.Conditions, body)
		}
		always := mustBind(t, "read :- true.").Read("x")
		if ok, _ := ruleIsAtLeast(always, rule, state, Environment{}); ok {
			t.Errorf("%s follows from nothing, without a clock", body)
		}
		if ok, conditions := ruleIsAtLeast(rule, rule, state, Environment{}); !ok || len(conditions) > 0 {
			t.Errorf("%s does not follow from itself: %v", body, conditions)
		}
	}
	until := mustBind(t, `read :- timeIs(T), lt(T, 2027-01-01T00:00:00Z).`).Read("x")
	if ok, conditions := ruleIsAtLeast(until, mustBind(t, `read :- timeIs(_).`).Read("x"), stateOf(t),
		Environment{}); !ok || len(conditions) > 0 {
		t.Errorf("who may read until an end may read by a clock: %v %v", ok, conditions)
	}
}
