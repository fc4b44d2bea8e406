// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"testing"
)

// manyPairs says r(i, i+1, 0) of many i.
func manyPairs(t testing.TB, count int) *FactBase {
	t.Helper()
	base := NewFactBase()
	for i := range count {
		if _, err := base.Add(Fact{Conduit: "big", Relation: "r",
			Arguments: []Value{Integer(int64(i)), Integer(int64(i + 1)), Integer(0)}}); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// Facts that a decision looks at count, whether or not they match: without enough steps it ends
// with an error, and what it has not seen is not taken for absent.
func TestFactsThatDoNotMatchCount(t *testing.T) {
	state := StateOf(manyPairs(t, 1000), NewConduitTable())
	for text, holds := range map[string]bool{
		`read :- "big" says r(X, X, _).`:                      false,
		`read :- each in "big" says r(X, X, _) { eq(X, 1) }.`: true,
	} {
		rule := mustBind(t, "policy p { "+text+" }").Read("c")
		if got := evaluate(rule, state, Environment{}); got.Allowed != holds || got.Err != nil {
			t.Errorf("%s: allowed %v, %v", text, got.Allowed, got.Err)
		}
		if got := evaluate(rule, state, Environment{Steps: 500}); got.Allowed || !errors.Is(got.Err, ErrTooManySteps) {
			t.Errorf("%s with 500 steps: allowed %v, %v", text, got.Allowed, got.Err)
		}
	}
}
