// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Rules of the tests here have one or two literals about tuples, their places and writes, and the facts and
// the write are what they ask for, or nearly: so many a case lies on a bound. Larger rules, as other
// properties draw them, seldom hold because of one bound alone.

// tuplesText draws such a rule.
func tuplesText(t *rapid.T) string {
	for {
		literals := rapid.SliceOfN(rapid.OneOf(writeText(), literalText()), 1, 2).Draw(t, "literals")
		text := strings.Join(literals, ", ")
		if _, err := CompileAccepted("random", []byte("read :- "+text+".")); err == nil {
			return text
		}
	}
}

// nearlyAsked calls yield with some states and flows that the rule asks for, or nearly.
func nearlyAsked(t *rapid.T, rule Rule, yield func(facts []Fact, flow Environment)) {
	for range 3 {
		facts, update := askedFor(t, rule)
		all := flows()
		first := rapid.IntRange(0, 6).Draw(t, "first flow")
		for i := first; i < len(all); i += 7 {
			all[i].Update = update
			yield(facts, all[i])
		}
	}
}

func TestEvaluationAtBoundsAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			text := tuplesText(t)
			rule := drawPolicy(t, []string{text}, "").Read("x")
			nearlyAsked(t, rule, func(facts []Fact, flow Environment) {
				decision := evaluate(rule, StateOf(baseOf(facts), NewConduitTable()), flow)
				if want := (oracle{facts: facts, environment: flow}).rule(rule); decision.Allowed != want {
					t.Fatalf("%s: %v, the oracle says %v, of %v for %+v writing %+v to %s: %s", text, decision.Allowed,
						want, facts, flow.Session, flow.Update, flow.Target.Name, decision.Reason)
				}
			})
		}
	})
}

// What follows whatever the facts are (it rests on no condition) does so at the bounds, too.
func TestComparisonAtBoundsIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			text := tuplesText(t)
			changed := weakened(text).Draw(t, "weakened")
			first, second := drawPolicy(t, []string{text}, "").Read("x"), drawPolicy(t, []string{changed}, "").Read("x")
			if ok, conditions := ruleIsAtLeast(first, second, nothing, Environment{}); !ok || len(conditions) > 0 {
				continue
			}
			nearlyAsked(t, first, func(facts []Fact, flow Environment) {
				where := oracle{facts: facts, environment: flow}
				if where.rule(first) && !where.rule(second) {
					t.Fatalf("claimed %s ⊒ %s, but %+v writing %+v to %s is allowed only by the first in %v", text, changed,
						flow.Session, flow.Update, flow.Target.Name, facts)
				}
			})
		}
	})
}
