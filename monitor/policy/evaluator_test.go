// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asked gives the answer of a new evaluator.
func asked(state State, rule Rule, environment Environment) (bool, error) {
	evaluator := NewEvaluator(state)
	return evaluator.Holds(rule, evaluator.Prepare(environment))
}

// indexed returns the same facts in an index, which evaluators ask by number.
func indexed(t rapid.TB, facts []Fact) *FactIndex {
	index, _, _, err := new(FactIndex).Changed(nil, facts)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// The evaluator gives the answers of the prover: for random rules, states, sessions,
// targets, with and without a clock.
func TestEvaluatorAgreesWithProver(t *testing.T) {
	answers := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(bodyText(), 1, 3).Draw(t, "read")
		p := drawPolicy(t, bodies, "")
		facts, state := drawState(t, "facts")
		evaluator := NewEvaluator(state)
		byNumber := NewEvaluator(StateOf(indexed(t, facts), NewConduitTable()))
		for i, environment := range flows() {
			if i%7 == 0 {
				environment.Now = time.Time{}
			}
			if i%5 == 0 {
				environment.Session.Key = rapid.SampledFrom(people).Draw(t, "key")
			}
			for _, this := range subjects {
				want := evaluate(p.Read(this), state, environment)
				got, err := evaluator.Holds(p.Read(this), evaluator.Prepare(environment))
				if got != want.Allowed || err != nil {
					t.Fatalf("%+v at %v: %v, %v; the prover says %v: %s\n%s", environment.Session, environment.Now, got, err,
						want.Allowed, want.Reason, ruleText("read", bodies))
				}
				answers[got]++
				again, err := byNumber.Holds(p.Read(this), byNumber.Prepare(environment))
				if again != got || err != nil {
					t.Fatalf("%+v: %v, %v by the numbers of an index, and %v without\n%s in %v", environment.Session, again, err,
						got, ruleText("read", bodies), facts)
				}
			}
		}
	})
	if !t.Failed() && (answers[true] == 0 || answers[false] == 0) {
		t.Errorf("answers %v: the test has become too weak", answers)
	}
}

// What random bodies have none of: rules about policies and content, which the prover
// answers, and the same with a missing session or target.
func TestEvaluatorAgreesOnTheRest(t *testing.T) {
	alice := mustLibrary(t, "private", "alice")
	conduits := NewConduitTable(Conduit{ID: 5, Name: "/5", Policy: alice}, Conduit{ID: 6, Name: "/6"})
	said := []Fact{mustFact(t, `l says f [5]`), mustFact(t, `l says f ["alice"]`), mustFact(t, `l@3 says f ["bob"]`)}
	state := StateOf(baseOf(said), conduits)
	target := Conduit{Name: "/5", ID: 5, Kind: FileConduit, Type: "topics", Length: 7, Policy: alice}
	for _, body := range []string{
		`"l" says f(I), cIdExists(I)`, `cIdExists(7)`, `"l" says f(I), hasPol(I, P), isAsRestrictive(P.read, this.read)`,
		`cIdIs(5), cTypeIs("topics"), cCurrLenIs(7)`, `cNewLenIs(9)`, `"/5" willsay f(_)`, `cIsInternal()`,
		`each in "/5" willsay f(_) { true }`, `"l"@3 says f(B), sKeyIs(B)`, `each in "l"@O says f(B) { lt(O, 4) }`,
		`sIpIs(_)`, `sRegionIs(_)`, `sKeyIs(_)`, `cNameIs(this)`, `timeIs(_)`, `"l" says f(this)`,
		`concat(L, "", ""), each in L says f(E) { neq(E, "x") }`, `concat(L, "", ""), L says f("x")`,
		`timeIs(T), each in "l" says f(E) { neq(E, T) }`, `timeIs(T), each in "m" says f(E) { neq(E, T) }`,
	} {
		rule := mustBind(t, "read :- "+body+".").Read("/5")
		for i, environment := range []Environment{
			{}, {Now: noon, Session: session("bob", "de")}, {Now: noon, Session: session("alice", ""), Target: &target},
			{Target: &target, Update: &Update{NewLength: 9, Facts: []Fact{mustFact(t, `x says f [1]`)}}},
		} {
			want := evaluate(rule, state, environment)
			for _, facts := range []Facts{state, indexed(t, said)} {
				if got, err := asked(StateOf(facts, conduits), rule, environment); got != want.Allowed || err != nil {
					t.Errorf("%s, environment %d: %v, %v; the prover says %v", body, i, got, err, want.Allowed)
				}
			}
		}
	}
}

// An evaluator that has run out of steps denies, says so, and can be used again.
func TestEvaluatorIsBounded(t *testing.T) {
	base := NewFactBase()
	for i := range 300 {
		if _, err := base.Add(Fact{Conduit: "l", Relation: "f", Arguments: []Value{Integer(int64(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	evaluator := NewEvaluator(StateOf(base, NewConduitTable()))
	for _, body := range []string{
		`"l" says f(A), "l" says f(B), add(C, A, B), "l" says g(C)`,
		`each in "l" says f(A) { "l" says f(B), "l" says f(C), add(D, B, C), lt(D, 0) }`,
		`"l" says f(A), "l" says f(B), each in "l" says f(C) { lt(C, 0), lt(A, B) }`,
		`"l" says f(A), "l" says f(B), "l" says f(C), mul(D, A, B), "l" says g(C, D)`,
	} {
		rule := mustBind(t, "read :- "+body+".").Read("x")
		got, err := evaluator.Holds(rule, evaluator.Prepare(Environment{}))
		if got || !errors.Is(err, ErrTooManySteps) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	if got, err := evaluator.Holds(mustBind(t, `read :- "l" says f(A), gt(A, 298).`).Read("x"), evaluator.Prepare(Environment{})); !got || err != nil {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// The rules of most documents cost no allocation, whatever the answer.
func TestEvaluatorAllocatesNothing(t *testing.T) {
	var facts []Fact
	for i := range 10_000 {
		facts = append(facts,
			Fact{Conduit: "friends/bob", Relation: "friend", Arguments: []Value{String(fmt.Sprintf("user%05d", i))}},
			Fact{Conduit: "blacklist", Relation: "user", Arguments: []Value{String(fmt.Sprintf("user%05d", i))}})
	}
	evaluator := NewEvaluator(StateOf(indexed(t, facts), NewConduitTable()))
	tests := []struct {
		name    string
		policy  *Policy
		readers map[string]bool
	}{
		{"private", mustLibrary(t, "private", "bob"), map[string]bool{"bob": true, "eve": false}},
		{"friends", mustLibrary(t, "friends", "bob"), map[string]bool{"user09999": true, "eve": false}},
		{"blacklist", mustBind(t, `read :- sKeyIs(K), each in "blacklist" says user(U) { neq(U, K) }.`),
			map[string]bool{"user00000": false, "eve": true}},
	}
	for _, test := range tests {
		for reader, allowed := range test.readers {
			environment := Environment{Session: session(reader, "de"), Now: noon}
			rule, prepared := test.policy.Read("/doc"), evaluator.Prepare(environment)
			ask := func() {
				if got, err := evaluator.Holds(rule, prepared); got != allowed || err != nil {
					t.Errorf("%s, %s: %v, %v", test.name, reader, got, err)
				}
			}
			for range 10_000 { // until the tables of members pay
				ask()
			}
			if allocations := testing.AllocsPerRun(100, ask); allocations > 0 {
				t.Errorf("%s, %s: %v allocations", test.name, reader, allocations)
			}
		}
	}
}

// benchmarkHolds asks whether a reader satisfies a read rule.
func BenchmarkHolds(b *testing.B) {
	var facts []Fact
	add := func(conduit, relation, argument string) {
		facts = append(facts, Fact{Conduit: conduit, Relation: relation, Arguments: []Value{String(argument)}})
	}
	for i := range 100 {
		add("friends/bob", "friend", fmt.Sprintf("user%05d", i))
		for j := range 100 {
			add(fmt.Sprintf("friends/user%05d", i), "friend", fmt.Sprintf("user%05d", 1000+i*100+j))
		}
	}
	for i := range 2250 {
		add("blacklist", "user", fmt.Sprintf("user%05d", i))
	}
	index, _, _, err := new(FactIndex).Changed(nil, facts)
	if err != nil {
		b.Fatal(err)
	}
	evaluator := NewEvaluator(StateOf(index, NewConduitTable()))
	blacklist := mustBind(b, `read :- sKeyIs(K), each in "blacklist" says user(U) { neq(U, K) }.`)
	for _, test := range []struct {
		name, reader string
		policy       *Policy
		allowed      bool
	}{
		{"private/allowed", "bob", mustLibrary(b, "private", "bob"), true},
		{"private/denied", "eve", mustLibrary(b, "private", "bob"), false},
		{"friends/allowed", "user00042", mustLibrary(b, "friends", "bob"), true},
		{"friends/denied", "eve", mustLibrary(b, "friends", "bob"), false},
		{"friends-of-friends/allowed", "user05050", mustLibrary(b, "friends-of-friends", "bob"), true},
		{"friends-of-friends/denied", "eve", mustLibrary(b, "friends-of-friends", "bob"), false},
		{"blacklist/allowed", "eve", blacklist, true},
		{"blacklist/denied", "user00042", blacklist, false},
	} {
		b.Run(strings.ReplaceAll(test.name, " ", "-"), func(b *testing.B) {
			environment := Environment{Session: session(test.reader, "de"), Now: noon}
			rule, prepared := test.policy.Read("/doc"), evaluator.Prepare(environment)
			b.ReportAllocs()
			for b.Loop() {
				if got, err := evaluator.Holds(rule, prepared); got != test.allowed || err != nil {
					b.Fatal("wrong answer")
				}
			}
		})
	}
}
