// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// AsksForAddress reports whether a rule of the policy, or an exit of one, depends on the
// session's address. A decision on such a policy needs a session.
func (t *Template) AsksForAddress() bool {
	return bodiesAsk(t.read) || bodiesAsk(t.update) ||
		slices.ContainsFunc(t.obligations, loweredObligation.asksForAddress)
}

// AsksForAddress reports whether a policy with an obligation of the label depends on the session's
// address.
func (l Label) AsksForAddress() bool {
	return slices.ContainsFunc(l.duties, func(d duty) bool { return d.obligation.policy.Template().AsksForAddress() })
}

func (o loweredObligation) asksForAddress() bool {
	return slices.ContainsFunc(o.exits, func(e loweredExit) bool {
		return slices.ContainsFunc(e.condition.body, literal.asksForAddress) ||
			slices.ContainsFunc(e.behind, loweredObligation.asksForAddress)
	})
}

func bodiesAsk(clauses []lowered) bool {
	return slices.ContainsFunc(clauses, func(c lowered) bool {
		return slices.ContainsFunc(c.body,
			literal.asksForAddress)
	})
}

func (l literal) asksForAddress() bool {
	return l.op == opIP || l.content != nil && slices.ContainsFunc(l.content.condition, literal.asksForAddress)
}
