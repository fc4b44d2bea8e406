// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whoever is on a list of 100,000 is denied after a few steps, as is admitted who is not;
// and the denial names the fact.
func TestExclusionTakesTheIndex(t *testing.T) {
	base := NewFactBase()
	for i := range 100_000 {
		for _, fact := range []Fact{
			{Conduit: "blacklist", Relation: "user", Arguments: []Value{String(fmt.Sprintf("user%05d", i))}},
			{Conduit: "blacklist/de", Relation: "blocked", Arguments: []Value{String(fmt.Sprintf("/doc/%05d", i))}},
		} {
			if _, err := base.Add(fact); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := StateOf(base, NewConduitTable())
	library, _ := LibraryTemplate("region-blacklist")
	tests := []struct {
		name                            string
		policy                          *Policy
		document                        string
		listed, other, document2, wants string
	}{
		{"by name", mustBind(t, `read :- sKeyIs(K), each in "blacklist" says user(U) { neq(U, K) }.`), "/d",
			"user01234", "nobody", "/d", `"blacklist" says user("user01234")`},
		{"by name, the other way round", mustBind(t, `read :- sKeyIs(K), each in "blacklist" says user(U) { neq(K, U) }.`),
			"/d", "user01234", "nobody", "/d", `"blacklist" says user("user01234")`},
		{"by another condition, too", mustBind(t,
			`read :- sKeyIs(K), each in "blacklist" says user(U) { neq(U, "root"), neq(U, K) }.`), "/d",
			"user01234", "nobody", "/d", `"blacklist" says user("user01234")`},
		{"absence", mustBind(t, `read :- sKeyIs(K), each in "blacklist" says user(K) { eq(1, 2) }.`), "/d",
			"user01234", "nobody", "/d", `"blacklist" says user("user01234")`},
		{"by region", mustBindTemplate(t, library), "/doc/01234", "user01234", "user01234", "/doc/x",
			`"blacklist/de" says blocked("/doc/01234")`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			environment := Environment{Session: session(test.listed, "de"), Steps: 20, Explain: true}
			denied := evaluate(test.policy.Read(test.document), state, environment)
			if denied.Allowed || denied.Err != nil || !strings.Contains(denied.Reason, test.wants+" breaks") ||
				denied.Remedy == nil || denied.Remedy.Add || denied.Remedy.Fact.String() != test.wants {
				t.Errorf("%+v; want a denial for %s", denied, test.wants)
			}
			environment.Session = session(test.other, "de")
			if allowed := evaluate(test.policy.Read(test.document2), state, environment); !allowed.Allowed {
				t.Errorf("%+v", allowed)
			}
			environment.Explain, environment.Bulk = false, true
			for reader, document := range map[string]string{test.listed: test.document, test.other: test.document2} {
				environment.Session = session(reader, "de")
				if allocations := testing.AllocsPerRun(100, func() {
					evaluate(test.policy.Read(document), state, environment)
				}); allocations > 10 {
					t.Errorf("%s reads %s: %v allocations", reader, document, allocations)
				}
			}
		})
	}
}

// A list with offsets excludes, too, and says where the entry stands.
func TestExclusionByPositionedFacts(t *testing.T) {
	p := mustBind(t, `read :- sKeyIs(K), each in "banned"@_ says user(U) { neq(U, K) }.`)
	state := stateOf(t, `banned@3 says user ["a"]`, `banned@7 says user ["b"]`)
	decision := evaluate(p.Read("x"), state, Environment{Session: session("b", "")})
	if decision.Allowed || !strings.Contains(decision.Reason, `"banned"@7 says user("b") breaks the condition`) {
		t.Errorf("%+v", decision)
	}
	environment := Environment{Session: session("c", "")}
	if decision := evaluate(p.Read("x"), state, environment); !decision.Allowed ||
		!allHold(decision.Conditions, state, environment) || decision.Conditions[0].Kind != FactAbsent {
		t.Errorf("%+v", decision)
	}
}

// An exclusion decides as a walk over the tuples would.
func TestExclusionAgreesWithOracle(t *testing.T) {
	decided := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		inner := make([]string, rapid.IntRange(1, 3).Draw(t, "literals"))
		for i := range inner {
			side := rapid.SampledFrom([]string{"E", "F", "K", "this", `"a"`, "1"})
			relation := rapid.SampledFrom([]string{"neq", "neq", "neq", "eq", "lt"}).Draw(t, "relation")
			inner[i] = fmt.Sprintf("%s(%s, %s)", relation, side.Draw(t, "left"), side.Draw(t, "right"))
		}
		pattern := rapid.SampledFrom([]string{"f(E)", "g(E, F)", "g(E, E)", "g(F, E)", "g(K, E)", "g(this, E)",
			"h(E, F, F)", "h(F, F, E)"}).Draw(t, "pattern")
		text := `sKeyIs(K), each in "p" says ` + pattern + " { " + strings.Join(inner, ", ") + " }"
		template, err := CompileText("random", []byte("read :- "+text+"."))
		if err != nil {
			t.Skip(err)
		}
		p, err := template.bindValues()
		if err != nil {
			t.Fatal(err)
		}
		facts := randomFacts().Draw(t, "facts")
		for range rapid.IntRange(0, 4).Draw(t, "triples") {
			value := rapid.SampledFrom([]Value{String("a"), String("b"), String("x"), Integer(1)})
			facts = append(facts, Fact{Conduit: "p", Relation: "h", Arguments: []Value{value.Draw(t, "first"),
				value.Draw(t, "second"), value.Draw(t, "third")}})
		}
		state := StateOf(baseOf(facts), NewConduitTable())
		for _, environment := range flows() {
			got := evaluate(p.Read("x"), state, environment)
			if want := (oracle{facts: facts, environment: environment}).rule(p.Read("x")); got.Allowed != want {
				t.Fatalf("%s: %v, the oracle says %v: %s", text, got.Allowed, want, got.Reason)
			}
			if holds, err := asked(StateOf(indexed(t, facts), NewConduitTable()), p.Read("x"), environment); holds != got.Allowed || err != nil {
				t.Fatalf("%s: the evaluator says %v, %v; the prover %v", text, holds, err, got.Allowed)
			}
			if environment.Session.Principal != "" {
				decided[got.Allowed]++
			}
		}
	})
	if !t.Failed() && (decided[true] == 0 || decided[false] == 0) {
		t.Errorf("decided %v: the test has become too weak", decided)
	}
}
