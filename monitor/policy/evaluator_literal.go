// SPDX-License-Identifier: BSD-2-Clause

package policy

// The literals of programs that hold in at most one way, but for those about tuples.

func (e *Evaluator) holds(c *instruction) bool {
	switch {
	case c.op == opEq && c.arguments[0].open():
		return e.is(&c.arguments[0], e.value(&c.arguments[1]))
	case c.op == opEq && c.arguments[1].open():
		return e.is(&c.arguments[1], e.value(&c.arguments[0]))
	case c.op.relational():
		return e.relation(c.op, e.value(&c.arguments[0]), e.value(&c.arguments[1]))
	case c.op.arithmetic() || c.op == opConcat:
		return e.computation(c)
	case c.op == opType:
		name, ok := kindName(e.exact(e.value(&c.arguments[0])))
		return ok && e.is(&c.arguments[1], name)
	case c.op == opTime:
		now := Value{kind: kindNow}
		return !e.asker.environment.Now.IsZero() && (e.is(&c.arguments[0], now) ||
			e.relation(opEq, now, e.value(&c.arguments[0])))
	case c.op == opPrefix:
		address, prefix := e.value(&c.arguments[0]), e.value(&c.arguments[1])
		return address.concrete() && prefix.concrete() && within(address, prefix)
	case c.op == opInternal:
		return e.asker.environment.Target != nil && e.asker.environment.Target.Internal
	case c.op == opExists:
		id := e.value(&c.arguments[0])
		if id.kind != IntegerValue {
			return false
		}
		_, found := e.state.ConduitByID(id.number)
		return found
	}
	value, _ := e.asker.environment.sessionValue(c.op)
	if value.kind == Wildcard {
		value, _ = e.asker.environment.targetValue(c.op)
	}
	return e.is(&c.arguments[0], value)
}

func (e *Evaluator) relation(op operation, left, right Value) bool {
	switch {
	case left.concrete() && right.concrete():
		return relate(op, left, right)
	case left == right:
		return op == opEq || op == opLe || op == opGe
	case e.asker.environment.Now.IsZero():
		return false
	case left.kind == kindNow && right.concrete(), right.kind == kindNow && left.concrete():
		return relate(op, e.exact(left), e.exact(right))
	}
	return false
}

func (e *Evaluator) computation(c *instruction) bool {
	var given [3]Value
	for i := range given {
		if !c.arguments[i].open() {
			given[i] = e.exact(e.value(&c.arguments[i]))
		}
		if given[i].kind > TimeValue {
			return false
		}
	}
	values, ok := compute(c.op, given[0], given[1], given[2])
	if !ok || !e.budget.charge(len(values[0].text)) {
		return false
	}
	for i := range given {
		if c.arguments[i].open() && !e.is(&c.arguments[i], values[i]) {
			return false
		}
	}
	return true
}
