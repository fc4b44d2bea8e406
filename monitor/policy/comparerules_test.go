// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCompareRulesFindsTheClauseAndACase(t *testing.T) {
	for _, test := range []struct {
		name, first, second string
		implied             []bool
		session             Session // of the witness of the last clause; none if empty
		facts               int
	}{
		{name: "the same", first: `read :- sKeyIs("alice").`, second: `read :- sKeyIs("alice").`, implied: []bool{true}},
		{name: "fewer clauses", first: `read :- sKeyIs("alice").`,
			second: `read :- sKeyIs("bob"). read :- sKeyIs("alice").`, implied: []bool{true}},
		{name: "a friend", first: `read :- sKeyIs(K), "friends/alice" says friend(K).`,
			second: `read :- sKeyIs("alice").`, implied: []bool{false}, session: Session{Principal: "somebody"}, facts: 1},
		{name: "a blacklist is missing", first: `read :- sRegionIs(R).`,
			second:  `read :- sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }.`,
			implied: []bool{false}, session: Session{Region: "somewhere"}, facts: 1},
		{name: "a blacklist is there", second: `read :- sRegionIs(R).`,
			first:   `read :- sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }.`,
			implied: []bool{true}},
		{name: "an end that comes later", first: `read :- sKeyIs("a"), timeIs(T), lt(T, 2028-01-01T00:00:00Z).`,
			second:  `read :- sKeyIs("a"), timeIs(T), lt(T, 2027-01-01T00:00:00Z).`,
			implied: []bool{false}, session: Session{Principal: "a"}},
		{name: "an end that comes earlier", first: `read :- sKeyIs("a"), timeIs(T), lt(T, 2026-01-01T00:00:00Z).`,
			second: `read :- sKeyIs("a"), timeIs(T), lt(T, 2027-01-01T00:00:00Z).`, implied: []bool{true}},
		{name: "nobody", first: `read :- sKeyIs("a").`, second: `update :- true.`, implied: []bool{false},
			session: Session{Principal: "a"}},
		// A list that is empty now is no proof: the answer is about every state.
		{name: "an empty list", first: `read :- sKeyIs(K), "friends" says friend(K).`,
			second: `read :- sKeyIs("a"), each in "x" says y(Z) { eq(Z, 1) }.`, implied: []bool{false},
			session: Session{Principal: "somebody"}, facts: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, second := mustBind(t, test.first).Read("/x"), mustBind(t, test.second).Read("/x")
			got := CompareRules(first, second, nil)
			if len(got) != len(test.implied) {
				t.Fatalf("%d clauses, want %d", len(got), len(test.implied))
			}
			for i, one := range got {
				if one.Implied != test.implied[i] {
					t.Errorf("%s: implied %v (%s)", one.Text, one.Implied, one.Nearest)
				}
				if one.Implied {
					continue
				}
				if one.Witness == nil {
					t.Errorf("%s: no witness", one.Text)
				} else if one.Witness.Session != test.session || len(one.Witness.Facts) != test.facts {
					t.Errorf("%s: witness %+v", one.Text, one.Witness)
				}
			}
		})
	}
}

// With a state, the answer may rest on its facts, and says so.
func TestCompareRulesInAState(t *testing.T) {
	friends := mustBind(t, `read :- sKeyIs(K), "friends/alice" says friend(K).`).Read("/x")
	bob := mustBind(t, `read :- sKeyIs("bob").`).Read("/x")
	got := CompareRules(friends, bob, stateOf(t, `friends/alice says friend ["bob"]`))
	if len(got) != 1 || !got[0].Implied || len(got[0].Conditions) != 1 {
		t.Errorf("%+v", got)
	}
	if got := CompareRules(friends, bob, nil); got[0].Implied {
		t.Error("it is shown without the state")
	}
}

// A witness refutes what the comparison must then not claim, and both rules agree with it.
func TestWitnessesAreReal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawPolicy(t, rapid.SliceOfN(bodyText(), 1, 3).Draw(t, "first"), "")
		second := drawPolicy(t, rapid.SliceOfN(bodyText(), 1, 3).Draw(t, "second"), "")
		for _, pair := range [][2]Rule{{first.Read("x"), second.Read("x")}, {second.Read("x"), first.Read("x")}} {
			for _, one := range CompareRules(pair[0], pair[1], nil) {
				if one.Witness == nil {
					continue
				}
				if one.Implied {
					t.Fatalf("%s is implied and has a witness", one.Text)
				}
				base := NewFactBase()
				for _, fact := range one.Witness.Facts {
					if _, err := base.Add(fact); err != nil {
						t.Fatal(err)
					}
				}
				environment := Environment{Session: &one.Witness.Session, Now: one.Witness.Now,
					Target: &one.Witness.Target, Update: &Update{NewLength: one.Witness.NewLength}}
				state := StateOf(base, NewConduitTable())
				if !evaluate(pair[0], state, environment).Allowed || evaluate(pair[1], state, environment).Allowed {
					t.Fatalf("%s against %s: witness %+v", one.Text, pair[1], one.Witness)
				}
			}
		}
	})
}

// An update is of the policy's own conduit: a case in which it has another name would be none.
func TestWitnessesOfUpdatesAreOfTheOwnConduit(t *testing.T) {
	second := mustBind(t, `update :- sKeyIs("b").`)
	for text, expected := range map[string]bool{`update :- cNameIs("y").`: false, `update :- cNameIs("x").`: true,
		`update :- cNameIs(N), concat(N, "x", _).`: true} {
		found := CompareRules(mustBind(t, text).Update("x"), second.Update("x"), nil)
		if len(found) != 1 || found[0].Implied || (found[0].Witness != nil) != expected {
			t.Errorf("%s: %+v", text, found)
		} else if expected && found[0].Witness.Target.Name != "x" {
			t.Errorf("%s: the case is about %s", text, found[0].Witness.Target.Name)
		}
	}
}

// Without removes one clause, and what it alone allowed.
func TestWithoutAClause(t *testing.T) {
	template, err := CompileText("t.pol", []byte(`read :- sKeyIs("a").
read :- sKeyIs("b").
update :- sKeyIs("a").
declassify :- isAsRestrictive(read, this.read), isAsRestrictive(read, this.update)
              until (cKindIs(descriptor), isAsRestrictive(read, this.read) until cIsInternal()).
`))
	if err != nil {
		t.Fatal(err)
	}
	clauses := template.Clauses()
	var rules []string
	for _, clause := range clauses {
		rules = append(rules, clause.Rule)
	}
	if got, want := len(clauses), 5; got != want {
		t.Fatalf("%d clauses, want %d: %v", got, want, clauses)
	}
	for i, clause := range clauses {
		if less := template.Without(clause).Clauses(); len(less) >= len(clauses) {
			t.Errorf("without %v (%s): %v", clause, rules[i], less)
		}
	}
	if len(template.Clauses()) != len(clauses) {
		t.Error("the template itself has changed")
	}
	reads := func(of *Template, who string) bool {
		p, err := of.Bind(nil)
		if err != nil {
			t.Fatal(err)
		}
		return evaluate(p.Read("x"), nothing, Environment{Session: session(who, "")}).Allowed
	}
	less := template.Without(clauses[0])
	if reads(less, "a") || !reads(less, "b") || !reads(template, "a") {
		t.Error("another clause was removed")
	}
}

// What follows only from the absence of facts is not said to follow from nothing.
func TestNearestNamesTheStateThatWouldDo(t *testing.T) {
	first := mustBind(t, `read :- each in "l"@0..9 says f(D) { neq(D, "z") }.`)
	second := mustBind(t, `read :- each in "l" says f(D) { neq(D, "z") }.`)
	compared := CompareRules(first.Read("x"), second.Read("x"), nil)
	if got := compared[0].Nearest; !strings.HasPrefix(got, `it follows only as long as "l" does not say f(`) {
		t.Error(got)
	}
}

// A session has one name, so a case with two is none.
func TestNobodyHasTwoNames(t *testing.T) {
	first := mustBind(t, `read :- sKeyIs("alice"), sKeyIs("bob").`)
	compared := CompareRules(first.Read("x"), mustBind(t, `read :- sKeyIs("carol").`).Read("x"), nil)
	if compared[0].Implied || compared[0].Witness != nil {
		t.Errorf("%+v", compared[0])
	}
}
