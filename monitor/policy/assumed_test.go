// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const (
	untilDescriptor = " declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor)."
	untilLater      = " declassify :- isAsRestrictive(read, this.read) until timeIs(T), ge(T, 2030-01-01T00:00:00Z)."
	untilRemains    = ` update :- sKeyIs("z"). declassify :- isAsRestrictive(read, this.read) until (cKindIs(descriptor), isAsRestrictive(read, this.update)).`
	untilResults    = ` declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor), cNameIs(N), concat(N, "r/", _).`
	untilNamed      = " declassify :- isAsRestrictive(read, this.read) until cNameIs(this)."
	never           = " declassify :- isAsRestrictive(read, this.read)."
)

// taints are those that Assume takes, and some that it does not.
var taints = []string{
	`read :- sKeyIs("a").`, `read :- sKeyIs("b"), sRegionIs("r").`, `read :- sRegionIs("s").`, ``,
	`read :- sKeyIs("a"), sKeyIs("b").`, `read :- sKeyIs("a"). read :- sKeyIs("b").`, `read :- sKeyIs("c"), "p" says f("a").`,
}

// covers asks an evaluator, and the prover for what it should have said.
func covers(state State, taint, data *Policy) (quick bool, conditions []Condition, slow Decision) {
	label := data.Label("x")
	assumed, demanded := Assume(state, taint.Label("task")), new(Demands).Of(label)
	conditions, quick = NewEvaluator(state).Covers(&assumed, &demanded, nil)
	return quick, sortConditions(conditions), AtLeast(taint.Label("task"), label, state, Environment{Now: noon, Bulk: true})
}

// What is shown without the prover is what it shows, and rests on the same.
func TestCoversAgreesWithProver(t *testing.T) {
	shown := map[bool]int{} // by whether something had to be looked up
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // few are shown, and fewer rest on facts
			exits := rapid.SampledFrom([]string{untilDescriptor, untilLater, never, untilRemains, untilResults,
				untilDescriptor + untilLater})
			taint := mustBind(t, rapid.SampledFrom(taints).Draw(t, "taint")+exits.Draw(t, "the taint's exit"))
			bodies := rapid.SliceOfN(rapid.OneOf(bodyText(), rapid.SampledFrom([]string{
				`sKeyIs(K), "p" says f(K)`, `sKeyIs(K), concat(L, "l/", K), L says f("a")`, `sRegionIs(R), concat(L, "l/", R), each in L says f(D) { neq(D, this) }`,
				`"p" says g("a", "b"), sKeyIs("a")`, `sKeyIs(K), "p" says f(K), "p" says g(K, _)`, `sKeyIs(K), vType(K, T), eq(T, "string")`,
			})), 1, 3).Draw(t, "read")
			data := drawPolicy(t, bodies, exits.Draw(t, "the data's exit"))
			facts, state := drawState(t, "facts")
			for _, state := range []State{state, StateOf(indexed(t, facts), NewConduitTable())} {
				quick, conditions, slow := covers(state, taint, data)
				if !quick {
					continue
				}
				shown[len(conditions) > 0]++
				if !slow.Allowed || !slices.Equal(conditions, slow.Conditions) {
					t.Fatalf("shown, on %v; the prover says %v, on %v\n%s\n%s", conditionTexts(conditions), slow.Allowed,
						conditionTexts(slow.Conditions), taint.canonical(), ruleText("read", bodies))
				}
			}
		}
	})
	if !t.Failed() && (shown[false] == 0 || shown[true] == 0) {
		t.Errorf("shown %v: the test has become too weak", shown)
	}
}

// What analyses ask for most is shown without the prover; the rest is left to it.
func TestCovers(t *testing.T) {
	blocked := `sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }`
	worker := `read :- sKeyIs("alice"), sRegionIs("de").`
	friends := `read :- sKeyIs("bob"), ` + blocked + `. read :- sKeyIs(K), concat(F, "friends/", "bob"), F says friend(K), ` + blocked + `.`
	facts := []Fact{mustFact(t, `friends/bob says friend ["alice"]`), mustFact(t, `blacklist/de says blocked ["y"]`),
		mustFact(t, `clock says t [{"time":"2030-01-01T00:00:00Z"}]`)}
	tests := []struct {
		name, taint, data string
		shown             bool
	}{
		{"a friend", worker + untilDescriptor, friends + untilDescriptor, true},
		{"a stranger", `read :- sKeyIs("eve"), sRegionIs("de").` + untilDescriptor, friends + untilDescriptor, false},
		{"no region", `read :- sKeyIs("alice").` + untilDescriptor, friends + untilDescriptor, false},
		{"blocked", worker + untilDescriptor, `read :- "blacklist/de" says blocked("y"), each in "blacklist/de" says blocked(D) { neq(D, "y") }.` +
			untilDescriptor, false},
		{"nobody reads", untilDescriptor, friends + untilDescriptor, true},
		{"no exit of the taint", worker + never, friends + untilDescriptor, true},
		{"an exit that the data have not got", worker + untilDescriptor, friends + never, false},
		{"an exit that asks for the name beside another", worker + untilDescriptor + untilNamed, friends + untilDescriptor, false},
		{"another exit", worker + untilLater, friends + untilDescriptor, false},
		{"a narrower exit", worker + untilResults, friends + untilDescriptor, true},
		{"a narrower exit than one of several", worker + untilResults, friends + untilLater + untilDescriptor, true},
		{"a wider exit", worker + untilDescriptor, friends + untilResults, false},
		{"one of two exits is another", worker + untilResults + untilLater, friends + untilDescriptor, false},
		{"a narrower exit, beside one that asks for the name", worker + untilResults,
			friends + untilDescriptor + ` declassify :- isAsRestrictive(read, this.read) until cNameIs(this).`, false},
		{"an exit that facts open", worker + untilDescriptor,
			friends + ` declassify :- isAsRestrictive(read, this.read) until "friends/bob" says friend("alice").`, false},
		{"something remains behind the exit", worker + untilDescriptor, friends + untilRemains, false},
		{"an exit that asks for the name", worker + untilNamed, friends + untilNamed, false},
		{"two readers", `read :- sKeyIs("alice"). read :- sKeyIs("bob").` + never, `read :- sKeyIs("bob").` + never, false},
		{"facts in the taint", `read :- sKeyIs("alice"), "p" says f("a").` + never, `read :- sKeyIs("alice").` + never, false},
		{"employees read what they have logged", worker + never, `read :- sKeyIs(K), "employees" says employee(K), "log" says access(K, this, _). ` +
			friends + never, true},
		{"an employee's log", worker + never, `read :- sKeyIs(K), "friends/bob" says friend(K), "log" says access(K, this, _). ` +
			friends + never, false},
		{"the clock", worker + never, `read :- timeIs(T), lt(T, 2030-01-01T00:00:00Z), sKeyIs("alice").` + never, false},
		{"any tuple", worker + never, `read :- sKeyIs("alice"), "friends/bob" says friend(_).` + never, false},
		{"a list without a name", worker + never, `read :- sKeyIs("alice"), each in "friends/bob" says friend(F) { eq(F, "alice") }.` + never, false},
		{"whether a document is there", worker + never, `read :- sKeyIs("alice"), cIdExists(1).` + never, false},
		{"an entry at its place", worker + never, `read :- sKeyIs("alice"), "friends/bob"@3 says friend("alice").` + never, false},
		{"what is written", worker + never, `read :- cTypeIs("topics"), sKeyIs("alice").` + never, false},
		{"another policy's rule", worker + never, `read :- hasPol(1, P), isAsRestrictive(P.read, this.read), sKeyIs("alice").` + never, false},
	}
	for _, test := range tests {
		conduits := NewConduitTable(Conduit{ID: 1, Name: "/1", Policy: mustLibrary(t, "private", "alice")})
		for _, state := range []State{StateOf(baseOf(facts), conduits), StateOf(indexed(t, facts), conduits)} {
			quick, conditions, slow := covers(state, mustBind(t, test.taint), mustBind(t, test.data))
			if quick != test.shown {
				t.Errorf("%s: shown is %v", test.name, quick)
			}
			if quick && (!slow.Allowed || !slices.Equal(conditions, slow.Conditions)) {
				t.Errorf("%s: on %v; the prover says %v, on %v", test.name, conditionTexts(conditions), slow.Allowed, conditionTexts(slow.Conditions))
			}
		}
	}
}

// Labels of several obligations are the prover's.
func TestCoversLeavesJoinedLabels(t *testing.T) {
	state := StateOf(NewFactBase(), NewConduitTable())
	alice, bob := mustLibrary(t, "private", "alice").Label("x"), mustLibrary(t, "private", "bob").Label("y")
	evaluator, all := NewEvaluator(state), new(Demands).Of(alice.Join(bob))
	for _, user := range []string{"alice", "bob"} {
		one := Assume(state, mustBind(t, `read :- sKeyIs("`+user+`").`+never).Label("z"))
		if _, shown := evaluator.Covers(&one, &all, nil); shown {
			t.Errorf("a label of two obligations is taken for that of %s", user)
		}
	}
	if _, shown := evaluator.Covers(new(Assumed), new(Demanded), nil); shown {
		t.Error("nothing covers nothing")
	}
}

// What is remembered of one label's exits is not taken for those of another.
func TestDemandsOfOtherExits(t *testing.T) {
	named := ` declassify :- isAsRestrictive(read, this.read) until cNameIs(this).`
	var together Demands
	for range 2 {
		for _, exits := range []string{untilDescriptor, untilLater, never, untilRemains, untilResults, named,
			untilDescriptor + untilLater, untilDescriptor + named, untilLater + untilRemains} {
			label := mustBind(t, `read :- sKeyIs("a").`+exits).Label("x")
			got, want := together.Of(label), new(Demands).Of(label)
			if got.ends != want.ends || got.closed != want.closed {
				t.Errorf("%s: other exits are remembered", exits)
			}
		}
	}
}
