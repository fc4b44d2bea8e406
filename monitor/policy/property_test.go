// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawPolicy(t *rapid.T, read []string, rest string) *Policy {
	template, err := CompileAccepted("random", []byte("policy random {\n"+ruleText("read", read)+rest+"\n}"))
	if err != nil {
		t.Fatalf("compile: %v\n%s%s", err, ruleText("read", read), rest)
	}
	p, err := template.bindValues()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func drawState(t *rapid.T, label string) ([]Fact, State) {
	facts := randomFacts().Draw(t, label)
	return facts, StateOf(baseOf(facts), NewConduitTable())
}

func allHold(conditions []Condition, state State, environment Environment) bool {
	for _, condition := range conditions {
		if !condition.Holds(state, environment) {
			return false
		}
	}
	return true
}

// neighbours are states near facts: the same, and with one fact more or less.
func neighbours(t *rapid.T, facts []Fact) [][]Fact {
	states := [][]Fact{facts}
	for i := range facts {
		states = append(states, slices.Delete(slices.Clone(facts), i, i+1))
	}
	for _, more := range rapid.SliceOfN(placedFact(), 0, 6).Draw(t, "more facts") {
		states = append(states, append(slices.Clone(facts), more))
	}
	return append(states, randomFacts().Draw(t, "other facts"))
}

// Evaluation agrees with the oracle, and what is allowed stays allowed wherever its
// conditions hold.
func TestEvaluationAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.SliceOfN(bodyText(), 1, 3).Draw(t, "read"), "")
		rule := p.Read(rapid.SampledFrom(subjects).Draw(t, "this"))
		facts, state := drawState(t, "facts")
		for _, environment := range flows() {
			decision := evaluate(rule, state, environment)
			if want := (oracle{facts: facts, environment: environment}).rule(rule); decision.Allowed != want {
				t.Fatalf("%+v %+v: %v, the oracle says %v: %s", environment.Session, environment.Now, decision.Allowed,
					want, decision.Reason)
			}
			if !decision.Allowed {
				continue
			}
			for _, other := range neighbours(t, facts) {
				for _, flow := range flows() {
					flow.Target, flow.Update = environment.Target, environment.Update // each write is decided anew
					if allHold(decision.Conditions, StateOf(baseOf(other), NewConduitTable()), flow) &&
						!(oracle{facts: other, environment: flow}).rule(rule) {
						t.Fatalf("allowed for %+v under %v, which hold in %v for %+v at %v, where it is not",
							environment.Session, decision.Conditions, other, flow.Session, flow.Now)
					}
				}
			}
			break // one allowed flow per rule keeps the test fast
		}
	})
}

// The central promise: whenever A ⊒ B is answered with conditions C, no state and
// no flow that satisfies C lets A's reader in and keeps B's out.
func TestRuleComparisonIsSound(t *testing.T) {
	claimed, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		first, second := rulePair(t)
		a := drawPolicy(t, first, "").Read(rapid.SampledFrom(subjects).Draw(t, "first this"))
		b := drawPolicy(t, second, "").Read(rapid.SampledFrom(subjects).Draw(t, "second this"))
		facts, state := drawState(t, "facts")
		decidedAt := Environment{Now: rapid.SampledFrom(instants).Draw(t, "now")}
		ok, conditions := ruleIsAtLeast(a, b, state, decidedAt)
		compared++
		if !ok {
			return
		}
		claimed++
		if !allHold(conditions, state, decidedAt) {
			t.Fatalf("conditions %v do not hold where the comparison was made", conditions)
		}
		if slices.ContainsFunc(conditions, Condition.Prediction) {
			t.Fatalf("a comparison of rules predicts a session: %v", conditions)
		}
		for _, other := range neighbours(t, facts) {
			for _, flow := range flows() {
				if !allHold(conditions, StateOf(baseOf(other), NewConduitTable()), flow) {
					continue
				}
				if (oracle{facts: other, environment: flow}).rule(a) &&
					!(oracle{facts: other, environment: flow}).rule(b) {
					t.Fatalf("claimed\n%s⊒\n%sunder %v, but %+v of kind %s at %v reads only the first in %v",
						ruleText("read", first), ruleText("read", second), conditions, flow.Session, flow.Target.Kind,
						flow.Now, other)
				}
			}
		}
	})
	if !t.Failed() && claimed*20 < compared {
		t.Errorf("only %d of %d comparisons held: the test has become too weak", claimed, compared)
	}
}

// Labels: if L1 ⊒ L2 under conditions that hold, whatever may leave under L1 may
// leave under L2.
func TestLabelComparisonIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := rulePair(t)
		update := ruleText("update", rapid.SliceOfN(bodyText(), 0, 1).Draw(t, "update"))
		exits := exitText().Draw(t, "first exits")
		otherExits := exits
		if rapid.Bool().Draw(t, "other exits?") {
			otherExits = exitText().Draw(t, "second exits")
		}
		l1 := drawPolicy(t, first, update+exits).Label("x")
		l2 := drawPolicy(t, second, update+otherExits).Label("x")
		facts, state := drawState(t, "facts")
		decidedAt := Environment{Now: rapid.SampledFrom(instants).Draw(t, "now")}
		if ok, conditions := labelIsAtLeast(l1, l1.Join(l1), state, decidedAt); !ok || len(conditions) > 0 {
			t.Fatalf("the label is not at least as restrictive as itself: %v %v", ok, conditions)
		}
		ok, conditions := labelIsAtLeast(l1, l2, state, decidedAt)
		if decision := mayRead(l1, l2, state, decidedAt); decision.Allowed != ok {
			t.Fatalf("Decide says %v, LabelAtLeast %v", decision.Allowed, ok)
		}
		if !ok {
			return
		}
		for _, other := range neighbours(t, facts) {
			there := StateOf(baseOf(other), NewConduitTable())
			for _, flow := range flows() {
				if allHold(conditions, there, flow) && mayLeave(l1, *flow.Target, there, flow).Allowed {
					if second := mayLeave(l2, *flow.Target, there, flow); !second.Allowed {
						t.Fatalf("%s\n⊒\n%s\nunder %v, but only the first lets %+v read: %s", l1, l2, conditions,
							flow.Session, second.Reason)
					}
				}
			}
		}
	})
}

// Data in a conduit stays protected: if a taint without exits may write a conduit, then
// everybody who may read the conduit, or data that a task derives from it, may read the
// data that the taint protects.
func TestWritesKeepObligations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner, outer := rulePair(t)
		taint := drawPolicy(t, outer, "").Label("x")
		target := Conduit{Name: "y", Kind: PipeConduit,
			Policy: drawPolicy(t, inner, "update :- true.\n"+exitText().Draw(t, "exits"))}
		facts, state := drawState(t, "facts")
		now := rapid.SampledFrom(instants).Draw(t, "now")
		decision := mayWrite(taint, target, state, Environment{Now: now})
		if !decision.Allowed {
			return
		}
		for _, other := range neighbours(t, facts) {
			there := StateOf(baseOf(other), NewConduitTable())
			for _, flow := range flows() {
				if !allHold(decision.Conditions, there, flow) {
					continue
				}
				readers := evaluate(target.Policy.Read("y"), there, flow).Allowed ||
					mayLeave(target.Label(), *flow.Target, there, flow).Allowed
				if readers && !mayLeave(taint, *flow.Target, there, flow).Allowed {
					t.Fatalf("%s may be written under %v, but shows %+v what %s keeps from it", target.Policy,
						decision.Conditions, flow.Session, taint)
				}
			}
		}
	})
}

// Candidates leaves out nothing that Decide would allow.
func TestCandidatesAreComplete(t *testing.T) {
	texts := []string{
		`policy p(q) { read :- sKeyIs(q). }`,
		`policy p(q) { read :- sKeyIs(K), concat(F, "l/", q), F says f(K). }`,
		`policy p(q) { read :- sKeyIs(q). read :- sKeyIs(K), concat(F, "l/", q), F says f(M), concat(G, "l/", M), G says f(K). }`,
		`policy p(q) { read :- sKeyIs(K), "p" says g(K, q), sRegionIs(R), concat(L, "l/", R), each in L says f(D) { neq(D, this) }. }`,
		`policy p(q) { read :- sKeyIs(K), q says f(K). }`,
		`policy p(q) { read :- "p" says g(q, q), sRegionIs(_). }`,
		`policy p(q) { read :- sRegionIs(R), neq(R, q). }`,
		`policy p(q) { read :- sKeyIs(q). read :- sKeyIs(K), "p" says f(K), "l/a" says g(K, this). }`,
		`policy p(q) { read :- sKeyIs(K), "p" says g(K, q), "l/a" says f(this). }`,
		`policy p(q) { read :- sKeyIs(K), concat(F, this, q), F says f(K). }`,
		`policy p(q) { read :- sKeyIs(K), this says g(K, q). }`,
	}
	rapid.Check(t, func(t *rapid.T) {
		template, err := CompileAccepted("random", []byte(rapid.SampledFrom(texts).Draw(t, "template")))
		if err != nil {
			t.Fatal(err)
		}
		// The last ones are covered case by case, for each tuple.
		taint := drawPolicy(t, rapid.SliceOfN(rapid.OneOf(bodyText(), rapid.SampledFrom([]string{
			`sKeyIs(K), "l/a" says f(K)`, `sKeyIs(K), "p" says g(K, _)`, `sKeyIs(K), "l/b" says f(K), sRegionIs("r")`,
		})), 1, 2).Draw(t, "taint"), "").Label("task")
		_, state := drawState(t, "facts")
		environment := Environment{Now: noon}
		about := rapid.SampledFrom(slices.Concat([]string{"x", "p", "l/a"}, people)).Draw(t, "conduit")
		candidates, complete, _ := template.Candidates(taint, state, environment)
		if !slices.IsSortedFunc(candidates, slices.Compare[[]string]) {
			t.Fatalf("candidates %v are not sorted", candidates)
		}
		if !complete {
			return
		}
		for _, argument := range slices.Concat(people, places, regions, subjects) {
			p, err := template.bindValues(argument)
			if err != nil {
				t.Fatal(err)
			}
			if mayRead(taint, p.Label(about), state, environment).Allowed &&
				!slices.ContainsFunc(candidates, func(c []string) bool { return c[0] == argument }) {
				t.Fatalf("%s may be read, but is not among %v", p, candidates)
			}
		}
	})
}

func drawFile(t *rapid.T) string {
	var text strings.Builder
	for i := range rapid.IntRange(1, 2).Draw(t, "policies") {
		fmt.Fprintf(&text, "# about %d\npolicy p%d(q, end: time) {\n", i, i)
		text.WriteString(ruleText("read", rapid.SliceOfN(bodyText(), 0, 3).Draw(t, "read")) + "# more\n")
		text.WriteString(ruleText("update", rapid.SliceOfN(bodyText(), 0, 2).Draw(t, "update")))
		text.WriteString(exitText().Draw(t, "exits") + "\n}\n")
	}
	return text.String()
}

// withoutPositions strips what Format does not promise to keep.
func withoutPositions(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			withoutPositions(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			withoutPositions(value.Index(i))
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[Position]() {
			reflect.NewAt(value.Type(), value.Addr().UnsafePointer()).Elem().SetZero()
			return
		}
		for i := range value.NumField() {
			withoutPositions(value.Field(i))
		}
	}
}

func checkRoundTrip(t rapid.TB, text []byte) {
	file, err := Parse("round", text)
	if err != nil {
		t.Fatal(err)
	}
	formatted := file.Format()
	again, err := Parse("round", formatted)
	if err != nil {
		t.Fatalf("%v\nin the formatted text\n%s", err, formatted)
	}
	withoutPositions(reflect.ValueOf(file))
	withoutPositions(reflect.ValueOf(again))
	if !reflect.DeepEqual(file, again) {
		t.Fatalf("the formatted text means something else:\n%s\nof\n%s", formatted, text)
	}
	if twice := again.Format(); string(twice) != string(formatted) {
		t.Fatalf("formatting twice differs:\n%s\n%s", formatted, twice)
	}
}

func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRoundTrip(t, []byte(drawFile(t))) })
}

var (
	variable = regexp.MustCompile(`\b[VWXEN]\b`)
	renamed  = map[string]string{"V": "Zeta", "W": "V", "X": "W", "E": "Each", "N": "M"}
)

// The canonical form knows neither the order of clauses nor variables' names.
func TestCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(bodyText(), 1, 4).Draw(t, "bodies")
		rest := ruleText("update", rapid.SliceOfN(bodyText(), 0, 2).Draw(t, "update")) + exitText().Draw(t, "exits")
		original := drawPolicy(t, bodies, rest)
		rename := func(text string) string {
			return variable.ReplaceAllStringFunc(text, func(name string) string { return renamed[name] })
		}
		for i, body := range bodies {
			bodies[i] = rename(body)
		}
		other := drawPolicy(t, append(rapid.Permutation(bodies).Draw(t, "order"), bodies[0]), rename(rest))
		if original.ID() != other.ID() {
			t.Fatalf("reordering clauses and renaming variables changed the identity:\n%s", ruleText("read", bodies))
		}
		different := drawPolicy(t, append(bodies, `sKeyIs("somebody else")`), rest)
		unconditional := slices.ContainsFunc(original.rules[readRule].clauses,
			func(c clause) bool { return len(c.body) == 0 })
		if !unconditional && original.ID() == different.ID() {
			t.Fatal("another clause did not change the identity")
		}
	})
}

// Results do not depend on the order in which facts were added.
func TestDecisionsIgnoreHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := rulePair(t)
		a, b := drawPolicy(t, first, "").Read("x"), drawPolicy(t, second, "").Read("x")
		facts := randomFacts().Draw(t, "facts")
		shuffled := slices.Clone(facts)
		rand.New(rand.NewPCG(uint64(len(facts)), 7)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		environment := Environment{Now: noon}
		ok1, conditions1 := ruleIsAtLeast(a, b, StateOf(baseOf(facts), NewConduitTable()), environment)
		ok2, conditions2 := ruleIsAtLeast(a, b, StateOf(baseOf(shuffled), NewConduitTable()), environment)
		if ok1 != ok2 || !slices.Equal(conditions1, conditions2) {
			t.Fatalf("%v %v against %v %v", ok1, conditions1, ok2, conditions2)
		}
	})
}
