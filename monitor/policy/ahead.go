// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// AsksAboutAccess reports whether a rule of the policy, or an exit of one, asks what is
// known only when an access happens: the session's address, or a conduit's length. A
// decision about such a policy cannot be taken ahead of time.
func (t *Template) AsksAboutAccess() bool {
	asks := func(clauses []lowered) bool {
		return slices.ContainsFunc(clauses, func(c lowered) bool { return slices.ContainsFunc(c.body, asksAboutAccess) })
	}
	return asks(t.read) || asks(t.update) || slices.ContainsFunc(t.obligations, loweredObligation.asksAboutAccess)
}

func (o loweredObligation) asksAboutAccess() bool {
	return slices.ContainsFunc(o.exits, func(e loweredExit) bool {
		return slices.ContainsFunc(e.condition.body, asksAboutAccess) || slices.ContainsFunc(e.behind, loweredObligation.asksAboutAccess)
	})
}

func asksAboutAccess(l literal) bool {
	switch l.op {
	case opIP, opLength, opNewLength:
		return true
	}
	return l.content != nil && slices.ContainsFunc(l.content.condition, asksAboutAccess)
}
