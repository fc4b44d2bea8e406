// SPDX-License-Identifier: BSD-2-Clause

package policy

// computation decides arithmetic and concat.
func (p *prover) computation(l *literal) bool {
	x, y, z := p.value(l.arguments[0]), p.value(l.arguments[1]), p.value(l.arguments[2])
	if p.comparing && (x.kind >= kindNow || y.kind >= kindNow || z.kind >= kindNow) && p.assumed(l) {
		return true
	}
	x, y, z = p.exact(x), p.exact(y), p.exact(z)
	if x.kind > TimeValue || y.kind > TimeValue || z.kind > TimeValue {
		return false
	}
	values, ok := compute(l.op, x, y, z)
	if !ok || !p.budget.charge(len(values[0].text)) {
		return false
	}
	for i, argument := range l.arguments {
		if argument = p.value(argument); argument.kind != Wildcard {
			continue
		}
		if !p.unify(l.arguments[i], values[i]) {
			return false
		}
	}
	return true
}

// relation decides a relation between two values.
func (p *prover) relation(op operation, left, right Value) bool {
	switch {
	case left.concrete() && right.concrete():
		return relate(op, left, right)
	case left == right:
		return op == opEq || op == opLe || op == opGe
	case left.kind == kindPolicy && right.kind == kindPolicy:
		return op == opNeq
	}
	if p.assumedRelation(op, left, right) {
		return true
	}
	switch {
	case left.kind == kindNow && right.concrete():
		return p.clock(op, right)
	case right.kind == kindNow && left.concrete():
		return p.clock(mirrored(op), left)
	}
	return false
}

// assumedRelation derives a relation from one assumed relation.
func (p *prover) assumedRelation(op operation, left, right Value) bool {
	for i := range p.hypotheses {
		h := &p.hypotheses[i]
		for j := range h.body {
			assumed := &h.body[j]
			if !assumed.op.relational() {
				continue
			}
			first, second := h.value(assumed.arguments[0]), h.value(assumed.arguments[1])
			if follows(assumed.op, first, second, op, left, right) ||
				follows(mirrored(assumed.op), second, first, op, left, right) {
				return true
			}
		}
	}
	return false
}

func follows(premise operation, first, second Value, op operation, left, right Value) bool {
	switch {
	case first == right && second == left:
		premise = mirrored(premise)
		fallthrough
	case first == left && second == right:
		return implies(premise, op)
	case first == left:
		return second.concrete() && second.kind == right.kind && impliesBound(premise, second, op, right)
	case first == right:
		// The constant is on the left, so mirror the relation.
		return second.concrete() && second.kind == left.kind && impliesBound(premise, second, mirrored(op), left)
	}
	return false
}

// clock decides a relation between now and a constant. It adds a condition for the time
// until which the decision holds.
func (p *prover) clock(op operation, limit Value) bool {
	now := Time(p.environment.Now)
	if p.environment.Now.IsZero() {
		return false
	}
	if !relate(op, now, limit) {
		p.holdsLater(op, now, limit)
		return false
	}
	if limit.kind != TimeValue {
		p.requireFrom(Time(earliest)) // neq with another kind holds at any time, if there is one
		return true
	}
	after := Value{kind: TimeValue, number: limit.number + 1}
	switch op {
	case opLt:
		p.requireBefore(limit)
	case opLe:
		p.requireBefore(after)
	case opGt:
		p.requireFrom(after)
	case opGe:
		p.requireFrom(limit)
	case opEq:
		p.requireFrom(limit)
		p.requireBefore(after)
	case opNeq:
		if now.number < limit.number {
			p.requireBefore(limit)
		} else {
			p.requireFrom(after)
		}
	}
	return true
}

// holdsLater notes when a relation between now and a limit, which does not hold, will.
func (p *prover) holdsLater(op operation, now, limit Value) {
	if limit.kind != TimeValue {
		return
	}
	from := limit
	switch op {
	case opGt, opNeq:
		from.number++
	case opGe, opEq:
	default:
		return
	}
	if from.number > now.number && (p.budget.next.kind == Wildcard || from.number < p.budget.next.number) {
		p.budget.next = from
	}
}

// prefix decides ipPrefix; an assumed narrower prefix implies a wider one.
func (p *prover) prefix(l *literal) bool {
	address, prefix := p.value(l.arguments[0]), p.value(l.arguments[1])
	if address.concrete() && prefix.concrete() {
		return within(address, prefix)
	}
	for i := range p.hypotheses {
		h := &p.hypotheses[i]
		for j := range h.body {
			assumed := &h.body[j]
			if assumed.op != opPrefix || h.value(assumed.arguments[0]) != address {
				continue
			}
			narrower := h.value(assumed.arguments[1])
			if narrower == prefix || narrower.concrete() && prefix.concrete() && within(narrower, prefix) {
				return true
			}
		}
	}
	return false
}
