// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// asWritten is said of a predicate that is quoted as the policy writes it.
const asWritten = "as written"

// wordsOf has a rule with each predicate: whom the rule admits, as denials say it, and why the
// predicate refuses alice; "" where a denial says no more than whom the rule admits.
var wordsOf = [operations]struct{ body, admits, refuses string }{
	opAdd:         {`"c" says t(M, N), add(M, N, 2)`, asWritten, ""},
	opSub:         {`"c" says t(M, N), sub(M, N, 2)`, asWritten, ""},
	opMul:         {`"c" says t(M, N), mul(M, N, 2)`, asWritten, ""},
	opDiv:         {`"c" says t(M, N), div(M, N, 2)`, asWritten, ""},
	opRem:         {`"c" says t(M, N), rem(M, N, 2)`, asWritten, ""},
	opConcat:      {`"c" says t(M, N), concat(M, N, "b")`, `anybody, where "c" says t(<N>b, N)`, ""},
	opType:        {`"c" says t(N), vType(N, string)`, asWritten, ""},
	opEq:          {`timeIs(T), eq(T, 2026-01-01T00:00:00Z)`, "anybody at 2026-01-01T00:00:00Z", ""},
	opNeq:         {`timeIs(T), neq(T, 2026-01-01T00:00:00Z)`, "anybody except at 2026-01-01T00:00:00Z", ""},
	opLt:          {`timeIs(T), lt(T, 2026-01-01T00:00:00Z)`, "anybody before 2026-01-01T00:00:00Z", "that time is over"},
	opLe:          {`timeIs(T), le(T, 2026-01-01T00:00:00Z)`, "anybody until 2026-01-01T00:00:00Z", "that time is over"},
	opGt:          {`timeIs(T), gt(T, 2026-01-01T00:00:00Z)`, "anybody after 2026-01-01T00:00:00Z", "that time has not come"},
	opGe:          {`timeIs(T), ge(T, 2026-01-01T00:00:00Z)`, "anybody from 2026-01-01T00:00:00Z", "that time has not come"},
	opKey:         {`sKeyIs("bob")`, "bob", "alice is not bob"},
	opIP:          {`sIpIs("10.0.0.1")`, "anybody from address 10.0.0.1", "the session's address is another one"},
	opPrefix:      {`sIpIs(I), ipPrefix(I, "10.0.0.0/8")`, "anybody from an address in 10.0.0.0/8", "the session's address is another one"},
	opRegion:      {`sRegionIs("de")`, "anybody in region de", "alice is not known to be in region de"},
	opTime:        {`timeIs(2026-01-01T00:00:00Z)`, "anybody at 2026-01-01T00:00:00Z", ""},
	opName:        {`cNameIs("results")`, `anybody through the conduit "results"`, "this is another conduit"},
	opID:          {`cIdIs(7)`, asWritten, "this is another conduit"},
	opExists:      {`cIdExists(7)`, asWritten, ""},
	opKind:        {`cKindIs(file)`, "anybody through a conduit of kind file", "this is another conduit"},
	opLength:      {`cCurrLenIs(7)`, asWritten, ""},
	opNewLength:   {`cNewLenIs(7)`, asWritten, ""},
	opInternal:    {`cIsInternal()`, "anybody between the pipeline's tasks", "this is another conduit"},
	opHasPolicy:   {`hasPol(1, P)`, asWritten, ""},
	opContentType: {`cTypeIs("t")`, "anybody through a conduit of type t", "this is another conduit"},
	opAtLeast:     {`isAsRestrictive(read, this.read)`, asWritten, ""},
	opSays:        {`"c" says t("bob")`, `anybody, where "c" lists bob as t`, `"c" does not list bob as t`},
	opWillsay:     {`"c" willsay t("bob")`, asWritten, ""},
	opEach:        {`each in "c" says t(X) { neq(X, "bob") }`, `anybody, unless "c" lists bob as t`, `"c" lists bob as t`},
	opEachWillsay: {`each in "c" willsay t(X) { neq(X, "bob") }`, asWritten, ""},
}

// Each list of words has a default or is empty for a predicate that it does not know. A new
// predicate fails here until somebody has read what people are told of it.
func TestEveryPredicateHasItsWords(t *testing.T) {
	for op := opInvalid + 1; op < operations; op++ {
		want := wordsOf[op]
		t.Run(signatures[op].name, func(t *testing.T) {
			if want.body == "" || advices[op] == "" {
				t.Fatalf("%s has no words: add it to advices (explain.go), to add (sentence.go) and mismatch (denial.go) "+
					"unless their defaults are right, and to wordsOf (words_test.go)", signatures[op].name)
			}
			c := &mustBind(t, "read :- "+want.body+".").Read("it").compiled().clauses[0]
			i := slices.IndexFunc(c.body, func(l literal) bool { return l.op == op })
			l := &c.body[max(i, 0)] // timeIs is compiled to eq
			d := describe(c, "it")
			admits := d.whom()
			if strings.HasSuffix(admits, ", where "+l.text(d.show)) {
				admits = asWritten
			}
			if refuses := refusal(l, c); admits != want.admits || refuses != want.refuses {
				t.Errorf("the words of `%s` are\n%q, %q, want\n%q, %q", want.body, admits, refuses, want.admits, want.refuses)
			}
		})
	}
}

// refusal says why a literal of a clause refuses alice.
func refusal(l *literal, c *clause) string {
	p := &prover{failure: failure{literal: l, clause: c, bindings: make([]Value, c.variables)}}
	return p.mismatch("alice", "")
}

// Only a comparison with the clock, on either side, speaks of time.
func TestOnlyComparisonsWithTheClockSpeakOfTime(t *testing.T) {
	tests := map[string]string{
		`timeIs(T), lt(T, 2026-01-01T00:00:00Z)`: "that time is over",
		`timeIs(T), ge(2026-01-01T00:00:00Z, T)`: "that time is over",
		`timeIs(T), ge(T, 2026-01-01T00:00:00Z)`: "that time has not come",
		`timeIs(T), lt(2026-01-01T00:00:00Z, T)`: "that time has not come",
		`"c" says age(N), lt(N, 18)`:             "",
		`"c" says age(N), ge(N, 18)`:             "",
	}
	for body, want := range tests {
		c := &mustBind(t, "read :- "+body+".").Read("it").compiled().clauses[0]
		if said := refusal(&c.body[len(c.body)-1], c); said != want {
			t.Errorf("%s: %q, want %q", body, said, want)
		}
	}
}

// The prover has a way to show each predicate, where the session and the target are known and where
// they are left open. Without one it ends the program.
func TestEveryPredicateIsDecided(t *testing.T) {
	facts := baseOf([]Fact{{Conduit: "c", Relation: "t", Arguments: []Value{String("alice")}},
		{Conduit: "c", Relation: "t", Arguments: []Value{Integer(3), Integer(1)}}})
	alice := &Session{Principal: "alice", Region: "de", IP: netip.MustParseAddr("10.0.0.1")}
	for op := opInvalid + 1; op < operations; op++ {
		t.Run(signatures[op].name, func(t *testing.T) {
			p := mustBind(t, "read :- "+wordsOf[op].body+".\nupdate :- "+wordsOf[op].body+".")
			conduit := Conduit{Name: "it", Kind: FileConduit, Policy: p}
			defer func() {
				if problem := recover(); problem != nil {
					t.Errorf("give %s a case in prove or holds (prover.go): %v", signatures[op].name, problem)
				}
			}()
			for _, what := range []Operation{Read, Write} {
				Decide(what, Label{}, conduit, StateOf(facts, NewConduitTable()),
					Environment{Session: alice, Now: noon})
			}
		})
	}
}
