// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// each shows that a condition holds for every tuple: by a hypothesis that implies it, by
// the absence of tuples that would violate it, or one by one.
func (p *prover) each(l *literal) bool {
	start := p.mark()
	if p.comparing && p.eachAssumed(l) {
		return true
	}
	p.undo(start)
	if l.op == opEachWillsay {
		return !p.comparing && p.eachUpdate(l)
	}
	height := len(p.scratch)
	defer func() { p.scratch = p.scratch[:height] }()
	if pattern, _, ok := p.pattern(l); ok {
		verdict := p.exclusion(l, pattern)
		if verdict == settled || verdict == undecided && p.eachFact(l, pattern) {
			return true
		}
		p.undo(start)
		return false
	}
	p.undo(start)
	p.scratch = p.scratch[:height]
	return p.noneAtAll(l)
}

// noneAtAll is for an each with frozen arguments: if the conduit has no tuple for any
// value in their place, the condition holds for all of them.
func (p *prover) noneAtAll(l *literal) bool {
	conduit := p.value(l.content.conduit)
	if conduit.kind != StringValue || conduit.text == "" {
		return false
	}
	pattern := Pattern{Conduit: conduit.text, Relation: l.content.relation}
	for _, argument := range l.arguments {
		p.scratch = append(p.scratch, known(p.value(argument)))
	}
	pattern.Arguments = p.scratch[len(p.scratch)-len(l.arguments):]
	return p.absent(pattern)
}

func (p *prover) absent(pattern Pattern) bool {
	if p.has(pattern) || p.budget.err != nil {
		return false
	}
	p.require(Condition{Kind: FactAbsent, Conduit: pattern.Conduit, Relation: pattern.Relation,
		Tuple: NewTuple(pattern.Arguments...)})
	return true
}

// exclusion decides `each in C says t(X, …) { neq(X, v), … }` by a search for t(v, …): one
// indexed lookup, however long the list is, whether v is on it or not. It is undecided if
// more than that has to be known about the tuples.
func (p *prover) exclusion(l *literal, pattern Pattern) verdict {
	if l.content.isRange() || len(l.content.condition) == 0 {
		return undecided
	}
	start := p.mark()
	result := settled
	for i := range l.content.condition {
		switch p.excludes(l, pattern, &l.content.condition[i]) {
		case refuted:
			p.undo(start)
			return refuted
		case undecided:
			result = undecided
		}
	}
	if result == undecided {
		p.undo(start)
	}
	return result
}

// excludes decides whether one literal of the condition holds for every tuple.
func (p *prover) excludes(l *literal, pattern Pattern, inner *literal) verdict {
	if !inner.op.relational() {
		return undecided
	}
	left, right := inner.arguments[0], inner.arguments[1]
	first, second := p.value(left), p.value(right)
	switch {
	case inner.op == opNeq && l.binds(left) && second.concrete():
		return p.without(l, p.narrowed(l, pattern, left, second))
	case inner.op == opNeq && l.binds(right) && first.concrete():
		return p.without(l, p.narrowed(l, pattern, right, first))
	case !first.concrete() || !second.concrete():
		return undecided
	case relate(inner.op, first, second):
		return settled
	}
	return p.without(l, pattern)
}

// binds reports whether a term is a variable of the each's pattern.
func (l *literal) binds(term Value) bool {
	return term.kind == kindVariable && int(term.number) >= l.content.localFrom &&
		int(term.number) < l.content.patternTo
}

// narrowed puts a value in the place of a variable. The arguments are on the scratch stack.
func (p *prover) narrowed(l *literal, pattern Pattern, variable, value Value) Pattern {
	from := len(p.scratch)
	p.scratch = append(p.scratch, pattern.Arguments...)
	pattern.Arguments = p.scratch[from:len(p.scratch):len(p.scratch)]
	for i, argument := range l.arguments {
		if argument == variable {
			pattern.Arguments[i] = value
		}
	}
	if pattern.Positioned && l.content.offset == variable {
		pattern.Offset = value
	}
	return pattern
}

// without decides whether no tuple of the each matches the pattern. It is undecided if
// there are others that match it.
func (p *prover) without(l *literal, pattern Pattern) verdict {
	if pattern.isExact() {
		if p.has(pattern) {
			p.breaks(l, Fact{Conduit: pattern.Conduit, Relation: pattern.Relation, Arguments: pattern.Arguments,
				Positioned: pattern.Positioned, Offset: pattern.Offset.number})
			return refuted
		}
	} else if p.broken(l, pattern) {
		return refuted
	}
	pattern.Positioned, pattern.Offset = false, Value{}
	if p.absent(pattern) {
		return settled
	}
	return undecided
}

// broken searches for a tuple of the each that matches the pattern.
func (p *prover) broken(l *literal, pattern Pattern) (found bool) {
	p.lookup(pattern, func(fact Fact) bool {
		trail := len(p.trail)
		if found = p.takeFact(l, fact); found {
			p.unbind(trail)
			p.breaks(l, fact)
		}
		return !found
	})
	return found && p.budget.err == nil
}

// breaks remembers the tuple for which an each does not hold.
func (p *prover) breaks(l *literal, fact Fact) {
	if p.nesting > 0 {
		return
	}
	arguments := append(p.breaking.fact.Arguments[:0], fact.Arguments...)
	p.breaking.each, p.breaking.fact = l, fact
	p.breaking.fact.Arguments = arguments
}

// eachFact walks the tuples and shows the condition for each.
func (p *prover) eachFact(l *literal, pattern Pattern) bool {
	from, to, ok := p.bounds(l)
	if !ok {
		return false
	}
	pattern.Offset = Value{} // the digest is over all offsets; meets leaves out tuples that do not match
	all := true
	p.lookup(pattern, func(fact Fact) bool {
		if l.content.isRange() && (fact.Offset < from || fact.Offset >= to) {
			return true
		}
		all = p.meets(l, fact, false)
		return all
	})
	if !all || p.budget.err != nil {
		return false
	}
	digest := newDigest()
	p.state.Lookup(pattern, func(fact Fact) bool { // as many as before: they need not be counted again
		digest.add(fact)
		return p.budget.charge(len(digest.packed))
	})
	if p.budget.err != nil {
		return false
	}
	switch {
	case digest.count == 0 && !pattern.Positioned:
		return p.absent(pattern)
	case pattern.Positioned:
		p.require(Condition{Kind: FactsUnchangedAt, Conduit: pattern.Conduit, Relation: pattern.Relation,
			Tuple: NewTuple(pattern.Arguments...), Digest: digest.String()})
	default:
		p.require(Condition{Kind: FactsUnchanged, Conduit: pattern.Conduit, Relation: pattern.Relation,
			Tuple: NewTuple(pattern.Arguments...), Digest: digest.String()})
	}
	return true
}

// bounds resolves the range of an each. Without a range, it covers everything.
func (p *prover) bounds(l *literal) (from, to int64, ok bool) {
	if !l.content.isRange() {
		return 0, 0, true
	}
	first, last := p.exact(p.value(l.content.offset)), p.exact(p.value(l.content.rangeEnd))
	return first.number, last.number, first.kind == IntegerValue && last.kind == IntegerValue
}

// meets shows an each's condition for one tuple. A tuple that does not match the pattern
// meets it unless strict is set.
func (p *prover) meets(l *literal, fact Fact, strict bool) bool {
	start := len(p.trail)
	defer func() { p.unbind(start) }()
	if !p.takeFact(l, fact) {
		return !strict
	}
	p.nesting++
	met := p.prove(l.content.condition, 0, nil)
	p.nesting--
	if !met {
		p.breaks(l, fact)
	}
	return met
}

// eachUpdate is strict: the update may only contain tuples that the pattern admits, since
// otherwise it could contain anything besides.
func (p *prover) eachUpdate(l *literal) bool {
	from, to, ok := p.bounds(l)
	if !ok {
		return false
	}
	all := true
	speaksOfTarget := p.updates(l, func(fact Fact) bool {
		if l.content.isRange() && fact.Positioned && (fact.Offset < from || fact.Offset >= to) {
			return true
		}
		all = p.step() && sameShape(l, fact) && p.meets(l, fact, true)
		return all
	})
	return speaksOfTarget && all
}

// eachAssumed searches for a hypothesis of the same form that covers at least the same
// tuples, and whose condition implies the literal's.
func (p *prover) eachAssumed(l *literal) bool {
	for h := range p.hypotheses {
		for j := range p.hypotheses[h].body {
			assumed := &p.hypotheses[h].body[j]
			if assumed.op != l.op || assumed.content.relation != l.content.relation ||
				len(assumed.arguments) != len(l.arguments) {
				continue
			}
			start := p.mark()
			if p.eachFollows(l, &p.hypotheses[h], assumed) {
				return true
			}
			p.undo(start)
		}
	}
	return false
}

// eachFollows takes one arbitrary tuple of the literal's (its variables frozen), checks
// that the assumed each covers it too, and shows the condition from the assumed one.
func (p *prover) eachFollows(l *literal, h *hypothesis, assumed *literal) bool {
	if p.value(l.content.conduit) != h.value(assumed.content.conduit) || !p.coversPlaces(l, h, assumed) {
		return false
	}
	trail := len(p.trail)
	hypotheses := len(p.hypotheses)
	defer func() {
		p.unbind(trail)
		p.hypotheses = p.hypotheses[:hypotheses]
	}()
	bindings := append([]Value(nil), h.bindings...)
	local := func(variable Value) bool {
		return variable.kind == kindVariable && int(variable.number) >= assumed.content.localFrom &&
			int(variable.number) < assumed.content.localTo
	}
	for i := assumed.content.localFrom; i < assumed.content.localTo; i++ {
		bindings[i] = Value{}
	}
	for i, argument := range l.arguments {
		value := p.value(argument)
		free := value.kind == Wildcard
		if free {
			value = p.freeze()
			p.unify(argument, value)
		}
		term := assumed.arguments[i]
		if local(term) && bindings[term.number].kind == Wildcard {
			if l.op == opEachWillsay && !free {
				return false // the assumed each allows tuples that this one forbids
			}
			bindings[term.number] = value
		} else if (local(term) && bindings[term.number] != value) || (!local(term) && h.value(term) != value) {
			return false
		}
	}
	for i := assumed.content.localFrom; i < assumed.content.localTo; i++ {
		if bindings[i].kind == Wildcard {
			bindings[i] = p.freeze()
		}
	}
	p.hypotheses = append(p.hypotheses, hypothesis{assumed.content.condition, bindings, h.this, h.policy})
	p.nesting++
	defer func() { p.nesting-- }()
	return p.prove(l.content.condition, 0, nil)
}

func (p *prover) freeze() Value {
	if p.frozen < MaxVariables {
		p.frozen = MaxVariables
	}
	p.frozen++
	return Value{kind: kindFrozen, number: p.frozen - 1}
}

// coversPlaces reports whether the assumed each covers all offsets that the literal
// covers.
func (p *prover) coversPlaces(l *literal, h *hypothesis, assumed *literal) bool {
	if !assumed.content.positioned {
		return !l.content.positioned || l.op == opEach && l.content.isRange()
	}
	return l.content.isRange() && assumed.content.isRange() &&
		p.value(l.content.offset) == h.value(assumed.content.offset) &&
		p.value(l.content.rangeEnd) == h.value(assumed.content.rangeEnd)
}

// digest identifies a set of facts in the order of Lookup.
type digest struct {
	hash   hash.Hash
	count  int
	packed []byte // of the last fact
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

func (d *digest) add(fact Fact) {
	d.count++
	var length [16]byte
	d.packed = appendTuple(d.packed[:0], fact.Arguments)
	binary.BigEndian.PutUint64(length[:8], uint64(len(d.packed)))
	binary.BigEndian.PutUint64(length[8:], uint64(fact.Offset)) //nolint:gosec // only its bits count
	d.hash.Write(length[:])
	d.hash.Write(d.packed)
}

func (d *digest) String() string { return hex.EncodeToString(d.hash.Sum(nil)) }
