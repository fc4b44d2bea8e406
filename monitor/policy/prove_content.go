// SPDX-License-Identifier: BSD-2-Clause

package policy

// proveContent shows that a tuple is in a conduit, or will be after the update.
func (p *prover) proveContent(body []literal, i int, done func() bool) (matched, proved bool) {
	if p.comparing {
		if matched, proved = p.proveAssumed(body, i, done); proved {
			return true, true
		}
	}
	var found bool
	switch {
	case body[i].op == opSays:
		found, proved = p.proveFact(body, i, done)
	case !p.comparing:
		found, proved = p.proveUpdate(body, i, done)
	}
	return matched || found, proved
}

// pattern returns the pattern of a literal's tuples. ok is false if a frozen value makes
// a lookup impossible. The arguments are on the scratch stack; the caller restores its
// height.
func (p *prover) pattern(l *literal) (pattern Pattern, complete, ok bool) {
	conduit := p.exact(p.value(l.content.conduit))
	complete = true
	switch {
	case conduit.kind == Wildcard && p.anyConduit:
		complete = false
	case conduit.kind != StringValue || conduit.text == "":
		return Pattern{}, false, false
	}
	pattern = Pattern{Conduit: conduit.text, Relation: l.content.relation, Positioned: l.content.positioned}
	if pattern.Positioned {
		pattern.Offset = p.exact(p.value(l.content.offset))
		if pattern.Offset.kind != IntegerValue && pattern.Offset.kind != Wildcard {
			return Pattern{}, false, false
		}
		complete = pattern.Offset.kind == IntegerValue
	}
	from := len(p.scratch)
	for _, argument := range l.arguments {
		value := p.exact(p.value(argument))
		if value.kind > TimeValue {
			return Pattern{}, false, false
		}
		complete = complete && value.kind != Wildcard
		p.scratch = append(p.scratch, value)
	}
	pattern.Arguments = p.scratch[from:len(p.scratch):len(p.scratch)]
	return pattern, complete, true
}

func (p *prover) proveFact(body []literal, i int, done func() bool) (matched, proved bool) {
	height := len(p.scratch)
	defer func() { p.scratch = p.scratch[:height] }()
	start := p.mark()
	pattern, complete, ok := p.pattern(&body[i])
	if !ok {
		p.undo(start)
		return false, false
	}
	if complete {
		if !p.has(pattern) {
			p.undo(start)
			return false, false
		}
		p.require(present(pattern.Conduit, pattern.Relation, pattern.Arguments, pattern.Positioned,
			pattern.Offset.number))
		if p.prove(body, i+1, done) {
			return true, true
		}
		p.undo(start)
		return true, false
	}
	p.lookup(pattern, func(fact Fact) bool {
		each := p.mark()
		if !p.takeFact(&body[i], fact) {
			return true
		}
		matched = true
		p.require(present(fact.Conduit, fact.Relation, fact.Arguments, fact.Positioned, fact.Offset))
		if p.prove(body, i+1, done) {
			proved = true
			return false
		}
		p.undo(each)
		return true
	})
	if !proved {
		p.undo(start)
	}
	return matched, proved
}

func present(conduit, relation string, arguments []Value, positioned bool, offset int64) Condition {
	condition := Condition{Kind: FactPresent, Conduit: conduit, Relation: relation, Tuple: NewTuple(arguments...)}
	if positioned {
		condition.Kind, condition.Number = FactPresentAt, offset
	}
	return condition
}

// takeFact unifies a literal's offset and arguments with a fact's. If this fails, it
// changes nothing. The clock counts as this instant.
func (p *prover) takeFact(l *literal, fact Fact) bool {
	start := len(p.trail)
	ok := !p.anyConduit || p.take(l.content.conduit, String(fact.Conduit))
	if l.content.positioned && !l.content.isRange() {
		ok = ok && p.take(l.content.offset, Integer(fact.Offset))
	}
	for i, argument := range l.arguments {
		ok = ok && p.take(argument, fact.Arguments[i])
	}
	if !ok {
		p.unbind(start)
	}
	return ok
}

func (p *prover) take(term, value Value) bool {
	if resolved := p.value(term); resolved.kind == kindNow {
		return p.exact(resolved) == value
	}
	return p.unify(term, value)
}

// updates calls yield with the tuples of the current update, if the literal is about the
// conduit that is written. It reports whether it is.
func (p *prover) updates(l *literal, yield func(Fact) bool) bool {
	target, update := p.environment.Target, p.environment.Update
	if target == nil || update == nil || p.value(l.content.conduit) != String(target.Name) {
		return false
	}
	for _, fact := range update.Facts {
		if !yield(fact) {
			break
		}
	}
	return true
}

// sameShape reports whether a fact could match a literal: by the relation, its arity, and
// an offset if the literal has one.
func sameShape(l *literal, fact Fact) bool {
	return fact.Relation == l.content.relation && len(fact.Arguments) == len(l.arguments) &&
		(fact.Positioned || !l.content.positioned)
}

func (p *prover) proveUpdate(body []literal, i int, done func() bool) (matched, proved bool) {
	p.updates(&body[i], func(fact Fact) bool {
		if !p.step() {
			return false
		}
		start := p.mark()
		if !sameShape(&body[i], fact) || !p.takeFact(&body[i], fact) {
			p.undo(start)
			return true
		}
		matched = true
		if p.prove(body, i+1, done) {
			proved = true
			return false
		}
		p.undo(start)
		return true
	})
	return matched, proved
}
