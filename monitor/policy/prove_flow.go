// SPDX-License-Identifier: BSD-2-Clause

package policy

// proveFlow shows literals about the session, the target and conduits. matched
// reports whether the literal itself held, proved whether the rest did too.
func (p *prover) proveFlow(body []literal, i int, done func() bool) (matched, proved bool) {
	l := &body[i]
	if p.comparing {
		if matched, proved = p.proveAssumed(body, i, done); proved {
			return true, true
		}
	}
	start := p.mark()
	found := false
	switch {
	case l.op == opHasPolicy:
		found = p.hasPolicy(l)
	case l.op == opExists:
		found = p.exists(l)
	case p.comparing:
		return matched, false
	case l.op == opInternal:
		found = p.environment.Target != nil && p.environment.Target.Internal
	case l.op == opKey:
		return p.proveKey(body, i, done)
	default:
		found = p.flowValue(l)
	}
	if found && p.prove(body, i+1, done) {
		return true, true
	}
	p.undo(start)
	return matched || found, false
}

// proveAssumed tries every hypothesis that is equal to the literal.
func (p *prover) proveAssumed(body []literal, i int, done func() bool) (matched, proved bool) {
	for h := range p.hypotheses {
		for j := range p.hypotheses[h].body {
			start := p.mark()
			if !p.matches(&body[i], &p.hypotheses[h], &p.hypotheses[h].body[j]) {
				continue
			}
			matched = true
			if p.prove(body, i+1, done) {
				return true, true
			}
			p.undo(start)
		}
	}
	return matched, false
}

// proveKey tries the principal's name and its key: sKeyIs holds for both.
func (p *prover) proveKey(body []literal, i int, done func() bool) (matched, proved bool) {
	session := p.environment.Session
	if session == nil {
		return false, false
	}
	for _, identity := range [2]string{session.Principal, session.Key} {
		start := p.mark()
		if identity == "" || !p.unify(body[i].arguments[0], String(identity)) {
			continue
		}
		matched = true
		p.require(Condition{Kind: PrincipalIs, Value: identity})
		if p.prove(body, i+1, done) {
			return true, true
		}
		p.undo(start)
	}
	return matched, false
}

// flowValue unifies the argument of a session or target predicate with its value.
func (p *prover) flowValue(l *literal) bool {
	value, condition := p.environment.sessionValue(l.op)
	if value.kind == Wildcard {
		value, condition = p.environment.targetValue(l.op)
	}
	if !p.unify(l.arguments[0], value) {
		return false
	}
	if condition.Kind != "" {
		p.require(condition)
	}
	return true
}

func (e *Environment) sessionValue(op operation) (Value, Condition) {
	session := e.Session
	switch {
	case session == nil:
	case op == opIP && session.IP.IsValid():
		address := session.IP.Unmap().WithZone("").String()
		return String(address), Condition{Kind: AddressIs, Value: address}
	case op == opRegion && session.Region != "":
		return String(session.Region), Condition{Kind: RegionIs, Value: session.Region}
	}
	return Value{}, Condition{}
}

// targetValue returns a property of the target. Only the length needs a condition: a
// conduit's name, number, kind and declared type never change.
func (e *Environment) targetValue(op operation) (Value, Condition) {
	target := e.Target
	if target == nil {
		return Value{}, Condition{}
	}
	switch {
	case op == opName && target.Name != "" && !target.Directory:
		return String(target.Name), Condition{}
	case op == opID && target.ID != 0 && !target.Directory:
		return Integer(target.ID), Condition{}
	case op == opKind && target.Kind != UnknownConduit:
		return String(target.Kind.String()), Condition{}
	case op == opContentType && target.Type != "":
		return String(target.Type), Condition{}
	case op == opLength && target.Measured:
		return Integer(target.Length), Condition{Kind: ConduitLengthIs, Conduit: target.Name, Number: target.Length}
	case op == opNewLength && e.Update != nil:
		return Integer(e.Update.NewLength), Condition{}
	}
	return Value{}, Condition{}
}

func (p *prover) exists(l *literal) bool {
	id := p.value(l.arguments[0])
	if id.kind != IntegerValue {
		return false
	}
	if _, found := p.state.ConduitByID(id.number); !found {
		return false
	}
	p.require(Condition{Kind: ConduitExists, Number: id.number})
	return true
}

func (p *prover) hasPolicy(l *literal) bool {
	id := p.value(l.arguments[0])
	if id.kind != IntegerValue {
		return false
	}
	conduit, found := p.state.ConduitByID(id.number)
	if !found {
		return false
	}
	owner := boundPolicy{conduit.Policy, conduit.Name}
	if owner.policy == nil {
		owner.policy = nobody
	}
	if !p.unify(l.arguments[1], p.policyValue(owner)) {
		return false
	}
	p.require(Condition{Kind: ConduitPolicyIs, Number: id.number, Digest: owner.policy.id.String()})
	return true
}

// policyValue numbers a policy so that a variable can hold it; equal policies on
// the same conduit have the same number.
func (p *prover) policyValue(owner boundPolicy) Value {
	for i, known := range p.policies {
		if known.policy.id == owner.policy.id && known.this == owner.this {
			return Value{kind: kindPolicy, number: int64(i)}
		}
	}
	p.policies = append(p.policies, owner)
	return Value{kind: kindPolicy, number: int64(len(p.policies) - 1)}
}

// subject is a rule to which isAsRestrictive refers: a known one, the open target of a
// comparison, or one of a frozen policy.
type subject struct {
	policy *Policy
	this   string
	frozen Value
	target bool
}

func (p *prover) subject(base Value, policy *Policy, this string) (subject, bool) {
	switch base.kind {
	case Wildcard:
		target := p.environment.Target
		switch {
		case p.comparing:
			return subject{target: true}, true
		case target == nil:
			return subject{}, false
		case target.Policy == nil:
			return subject{policy: nobody, this: target.Name}, true
		}
		return subject{policy: target.Policy, this: target.Name}, true
	case kindThis:
		return subject{policy: policy, this: this}, true
	case kindPolicy:
		known := p.policies[base.number]
		return subject{policy: known.policy, this: known.this}, true
	case kindFrozen:
		return subject{frozen: base}, true
	}
	return subject{}, false
}

func (s subject) same(other subject) bool {
	if s.policy == nil || other.policy == nil {
		return s == other
	}
	return s.policy.id == other.policy.id && (s.this == other.this || !s.policy.usesIt)
}

// atLeast decides isAsRestrictive: by a hypothesis that says so, or by a comparison of
// two known rules.
func (p *prover) atLeast(l *literal) bool {
	var sides [2]subject
	for i, side := range l.references {
		var ok bool
		base := side.base
		if base.kind == kindVariable {
			base = p.value(base)
		}
		if sides[i], ok = p.subject(base, p.owner.owner(), p.owner.this); !ok {
			return false
		}
	}
	if p.assumedAtLeast(l, sides) {
		return true
	}
	if sides[0].policy == nil || sides[1].policy == nil || p.budget.depth >= MaxDepth {
		return false
	}
	return p.nested(func(inner *prover) bool {
		if l.references[0].rule == declassifyRule {
			return inner.labelAtLeast(sides[0].policy.Label(sides[0].this), sides[1].policy.Label(sides[1].this))
		}
		return inner.ruleAtLeast(Rule{sides[0].policy, l.references[0].rule, sides[0].this},
			Rule{sides[1].policy, l.references[1].rule, sides[1].this})
	})
}

func (p *prover) assumedAtLeast(l *literal, sides [2]subject) bool {
	for i := range p.hypotheses {
		h := &p.hypotheses[i]
		for j := range h.body {
			assumed := &h.body[j]
			if assumed.op != opAtLeast {
				continue
			}
			same := true
			for k, side := range assumed.references {
				base := side.base
				if base.kind == kindVariable {
					base = h.value(base)
				}
				other, ok := p.subject(base, h.policy, h.this)
				same = same && ok && side.rule == l.references[k].rule && sides[k].same(other)
			}
			if same {
				return true
			}
		}
	}
	return false
}

// nested runs a comparison inside a decision. It uses the same budget, and its conditions
// are added to the decision's.
func (p *prover) nested(compare func(inner *prover) bool) bool {
	inner := newProver(p.state, &p.environment)
	defer inner.release()
	inner.budget = p.budget
	p.budget.depth++
	defer func() { p.budget.depth-- }()
	if !compare(inner) {
		return false
	}
	p.conditions = append(p.conditions, inner.conditions...)
	return true
}
