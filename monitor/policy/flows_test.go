// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// writes are what may be written; nil: the monitor has not read it.
var writes = []*Update{
	nil,
	{NewLength: 2, Facts: []Fact{{Relation: "f", Arguments: []Value{String("a")}, Positioned: true, Offset: 1}}},
	{NewLength: 3, Facts: []Fact{{Relation: "f", Arguments: []Value{String("b")}, Positioned: true, Offset: 1},
		{Relation: "f", Arguments: []Value{String("a")}, Positioned: true, Offset: 2}}},
	{},
	{NewLength: 1, Facts: []Fact{{Relation: "f", Arguments: []Value{Integer(2)}},
		{Relation: "g", Arguments: []Value{String("a"), String("b")}}}},
}

// flows are all sessions, targets and clocks of the small vocabulary.
func flows() []Environment {
	var all []Environment
	for _, principal := range append([]string{""}, people...) {
		for _, region := range append([]string{""}, regions...) {
			for i, now := range instants {
				address := netip.AddrFrom4([4]byte{10, byte(i), 0, 1})
				kind := []ConduitKind{ConnectionConduit, PipeConduit, DescriptorConduit}[(i+len(all))%3]
				all = append(all, Environment{
					Session: &Session{Principal: principal, Region: region, IP: address},
					Now:     now.Add(-time.Second * time.Duration(len(all)%2)),
					Update:  writes[len(all)%len(writes)],
					Target: &Conduit{ID: int64(len(all) % 3), Name: []string{"egress", "x"}[len(all)%2], Kind: kind,
						Internal: len(all)%5 == 0, Type: []string{"", "access-log"}[len(all)/2%2],
						Length: int64(len(all) % 3), Measured: len(all)%4 > 0},
				})
			}
		}
	}
	return all
}

// askedFor draws what a clause of the rule asks for, facts and a write: with the same value wherever it has
// the same variable, at the bounds of its ranges, and now and then with one value that differs. Random
// facts alone are seldom what makes a rule hold that ought not to.
func askedFor(t *rapid.T, rule Rule) (facts []Fact, update *Update) {
	clauses := rule.compiled().clauses
	if len(clauses) == 0 {
		return nil, nil
	}
	asks := &clauses[rapid.IntRange(0, len(clauses)-1).Draw(t, "asking clause")]
	bindings := make([]Value, asks.variables)
	value := func(term Value) Value {
		drawn := randomFact().Draw(t, "other").Arguments[0]
		switch {
		case rapid.IntRange(0, 7).Draw(t, "differs?") == 0:
			return drawn
		case term.kind == kindThis:
			return String(rule.this)
		case term.kind != kindVariable:
			return term
		case bindings[term.number].kind == Wildcard:
			bindings[term.number] = drawn
		}
		return bindings[term.number]
	}
	update = &Update{NewLength: int64(rapid.IntRange(0, 2).Draw(t, "new length"))}
	for i := range asks.body {
		l := &asks.body[i]
		if l.content == nil {
			continue
		}
		fact := Fact{Conduit: value(l.content.conduit).Text(), Relation: l.content.relation}
		for _, argument := range l.arguments {
			fact.Arguments = append(fact.Arguments, value(argument))
		}
		if l.content.positioned {
			bounds := []Value{value(l.content.offset)}
			if l.content.isRange() {
				bounds = append(bounds, value(l.content.rangeEnd))
			}
			fact.Positioned, fact.Offset = true, rapid.SampledFrom(bounds).Draw(t, "bound").Number()
		}
		switch {
		case l.op == opWillsay || l.op == opEachWillsay:
			update.Facts = append(update.Facts, fact)
		case fact.check() == nil:
			facts = append(facts, fact)
		}
	}
	return facts, update
}

// What stands beside the restrictions that remain is a condition of the exit, in brackets with them or not.
func TestAnExitHoldsOnlyWithAllThatStandsBeforeAnInnerUntil(t *testing.T) {
	const policy = `read :- sKeyIs("a"). update :- sKeyIs("b"). declassify :- isAsRestrictive(read, this.read) until `
	for _, exit := range []string{
		`(cKindIs(pipe), isAsRestrictive(read, this.update) until cIsInternal()).`,
		`((cKindIs(pipe), isAsRestrictive(read, this.update)) until cIsInternal()).`,
		`(cKindIs(pipe), (isAsRestrictive(read, this.update) until cIsInternal())).`,
	} {
		label := mustBind(t, policy+exit).Label("x")
		for _, test := range []struct {
			target  Conduit
			reader  string
			allowed bool
		}{
			{Conduit{Kind: PipeConduit}, "a", true},
			{Conduit{Kind: PipeConduit}, "b", true},
			{Conduit{Kind: PipeConduit}, "c", false},
			{Conduit{Kind: PipeConduit, Internal: true}, "c", true},
			{Conduit{Kind: DescriptorConduit}, "a", true},
			{Conduit{Kind: DescriptorConduit}, "b", false},
			{Conduit{Kind: DescriptorConduit, Internal: true}, "c", false},
		} {
			got := mayLeave(label, test.target, stateOf(t), Environment{Now: noon, Session: session(test.reader, "")})
			if got.Allowed != test.allowed {
				t.Errorf("until %s by a %s (internal: %v) to %s: %v, want %v: %s", exit, test.target.Kind, test.target.Internal,
					test.reader, got.Allowed, test.allowed, got.Reason)
			}
		}
	}
}
