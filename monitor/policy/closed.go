// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"sync"
	"unique"
)

// closedCondition is an exit's condition without parameters. All policies that a template is bound
// to share it: there can be many of them, and a comparison then finds it in the processor's caches.
type closedCondition struct {
	condition *rule // of one clause; nil if it can never hold
	meaning   meaning
}

// meaning tells a condition from all with another meaning. The zero meaning says nothing. It is of
// conditions only that have no parameters and mention neither `this` nor a rule of it, like
// this.read: their canonical bytes say all that they mean.
type meaning struct{ bytes unique.Handle[string] }

// isSame reports whether two conditions certainly mean the same.
func (m meaning) isSame(other meaning) bool { return m != meaning{} && m == other }

// closed returns what binds the clause once; nil if it has parameters.
func (c lowered) closed() func() closedCondition {
	if slices.ContainsFunc(c.body, func(l literal) bool { return l.mentions(kindParameter) }) {
		return nil
	}
	return sync.OnceValue(func() (shared closedCondition) {
		bound, satisfiable := c.bind(nil)
		if !satisfiable {
			return shared
		}
		shared.condition = &rule{clauses: []clause{bound}}
		if !bound.mentionsThis() {
			shared.meaning = meaning{unique.Make(string(bound.appendTo(nil)))}
		}
		return shared
	})
}

// bind returns the exit's condition for these values of the parameters; nil if it can never hold.
func (e *loweredExit) bind(values []Value) (*rule, meaning) {
	if e.closed != nil {
		shared := e.closed()
		return shared.condition, shared.meaning
	}
	bound, satisfiable := e.condition.bind(values)
	if !satisfiable {
		return nil, meaning{}
	}
	return &rule{clauses: []clause{bound}}, meaning{}
}
