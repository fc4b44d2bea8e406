// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// Reach is a group of flows: of sessions, and of conduits that have a policy. A change of a
// fact can alter decisions about the flows in its reaches only. A Wildcard means any value.
type Reach struct {
	Arguments []Value // of the policy, in the order of its parameters
	// Asks reports that the rule asks who the session's principal is, and Principal whom it
	// accepts.
	Asks      bool
	Principal Value
	Region    Value // of the session
	This      Value // the name of the conduit
}

// maxReachSteps limits the search for reaches. A search that is cut off reaches everything.
const maxReachSteps = 1 << 14

// everything is the reach of what cannot be narrowed down.
func (t *Template) everything() Reach { return Reach{Arguments: make([]Value, len(t.parameters))} }

// ReadsReached returns the flows from conduits of the policy, to taints that
// [Template.PredictedSession] describes, that a change of a fact can open. An added fact can
// satisfy a literal that asks for it, a removed one an each. To find the sessions and
// arguments, it solves the clauses from that literal, leaving out what only restricts further.
func (t *Template) ReadsReached(fact Fact, added bool, facts Facts) []Reach {
	s := t.search(facts)
	s.obligations(t.obligations, func(clause lowered, sessions bool) { s.fromFact(clause, fact, added, sessions) })
	return s.result()
}

// UpdatesReached is ReadsReached for the update rule, which has to hold for the session itself.
func (t *Template) UpdatesReached(fact Fact, added bool, facts Facts) []Reach {
	s := t.search(facts)
	for _, clause := range t.update {
		s.fromFact(clause, fact, added, true)
	}
	return s.result()
}

// Readers returns the flows that can be allowed from conduits with these arguments, in the
// order of the parameters, to such taints.
func (t *Template) Readers(arguments []Value, facts Facts) []Reach {
	if len(t.obligations) == 0 {
		return []Reach{t.everything()}
	}
	// Every obligation has to be covered, so those that can cover the first one include
	// those that can cover all.
	s := t.search(facts)
	clauses := t.read
	if t.obligations[0].rule == updateRule {
		clauses = t.update
	}
	for _, clause := range clauses {
		s.begin(clause, true)
		for i, argument := range arguments {
			s.bindings[s.from+i] = argument
		}
		s.solve(s.literals(clause.body))
	}
	return s.result()
}

// search collects reaches. It binds what is certain: a variable stays unbound as long as it
// may have any value, and a literal that has too many of these holds.
type search struct {
	template *Template
	facts    Facts
	steps    int
	found    []Reach

	clause   lowered
	sessions bool    // what the clause says of the session is about the flow's
	bindings []Value // of the clause's variables, then of the parameters, then of `this`
	from     int     // of the first parameter
	trail    []int
}

func (t *Template) search(facts Facts) *search {
	return &search{template: t, facts: facts, steps: maxReachSteps}
}

func (s *search) result() []Reach {
	if s.steps <= 0 {
		return []Reach{s.template.everything()}
	}
	slices.SortFunc(s.found, Reach.compare)
	return slices.CompactFunc(s.found, func(a, b Reach) bool { return a.compare(b) == 0 })
}

func (r Reach) compare(other Reach) int {
	asks := func(r Reach) Value {
		if r.Asks {
			return Integer(1)
		}
		return Value{}
	}
	return slices.CompareFunc(append([]Value{asks(r), r.Principal, r.Region, r.This}, r.Arguments...),
		append([]Value{asks(other), other.Principal, other.Region, other.This}, other.Arguments...), Value.Compare)
}

// obligations visits the clauses that decide on derived data. What an exit says of a session
// is about another flow.
func (s *search) obligations(obligations []loweredObligation, visit func(clause lowered, sessions bool)) {
	for _, o := range obligations {
		clauses := s.template.read
		if o.rule == updateRule {
			clauses = s.template.update
		}
		for _, clause := range clauses {
			visit(clause, true)
		}
		for _, exit := range o.exits {
			visit(exit.condition, false)
			s.obligations(exit.behind, visit)
		}
	}
}

func (s *search) begin(clause lowered, sessions bool) {
	s.clause, s.sessions, s.from, s.trail = clause, sessions, len(clause.names), s.trail[:0]
	s.bindings = make([]Value, s.from+len(s.template.parameters)+1)
}

// fromFact solves the clause from each literal that the change of the fact can satisfy.
func (s *search) fromFact(clause lowered, fact Fact, added, sessions bool) {
	var uses Uses
	uses.add(clause.body)
	if uses.Compares && (uses.Conduits || uses.Concern(fact)) {
		s.found = append(s.found, s.template.everything())
		return
	}
	s.inBody(clause, clause.body, fact, added, sessions)
}

func (s *search) inBody(clause lowered, body []literal, fact Fact, added, sessions bool) {
	for i := range body {
		l := &body[i]
		if l.content == nil {
			continue
		}
		wanted := opEach
		if added {
			wanted = opSays
		}
		if l.op == wanted && l.content.relation == fact.Relation && len(l.arguments) == len(fact.Arguments) {
			s.begin(clause, sessions)
			if s.take(l, fact) {
				s.violated(l)
			}
		}
		s.inBody(clause, l.content.condition, fact, added, sessions)
	}
}

// violated solves the clause for an each that the removed tuple has violated: its conditions
// say that some values differ, and one of them was equal. Without such conditions nothing is
// known but the tuple. So it is, too, if the pattern has values that a comparison may leave
// open: then it fails because of any tuple.
func (s *search) violated(l *literal) {
	precise := l.op == opEach && len(l.content.condition) > 0
	for _, argument := range l.arguments {
		local := argument.kind == kindVariable && int(argument.number) >= l.content.localFrom
		precise = precise && (local || argument.concrete() || argument.kind == kindParameter)
	}
	for i := range l.content.condition {
		precise = precise && l.content.condition[i].op == opNeq
	}
	if !precise {
		s.solve(s.literals(s.clause.body))
		return
	}
	for i := range l.content.condition {
		inner := &l.content.condition[i]
		start := len(s.trail)
		if s.equal(inner.arguments[0], inner.arguments[1]) {
			s.solve(s.literals(s.clause.body))
		}
		s.undo(start)
	}
}

func (s *search) literals(body []literal) []*literal {
	list := make([]*literal, len(body))
	for i := range body {
		list[i] = &body[i]
	}
	return list
}

// slot returns where a term's value is kept; ok is false for a constant.
func (s *search) slot(term Value) (slot int, ok bool) {
	switch term.kind {
	case kindVariable:
		return int(term.number), true
	case kindParameter:
		return s.from + int(term.number), true
	case kindThis:
		return len(s.bindings) - 1, true
	}
	return 0, false
}

func (s *search) value(term Value) Value {
	if slot, ok := s.slot(term); ok {
		return s.bindings[slot]
	}
	return term
}

func (s *search) unify(term, value Value) bool {
	slot, ok := s.slot(term)
	if !ok {
		return term == value
	}
	if s.bindings[slot].kind == Wildcard {
		s.bindings[slot] = value
		s.trail = append(s.trail, slot)
		return true
	}
	return s.bindings[slot] == value
}

// equal makes two terms equal. Two that may have any value are left alone.
func (s *search) equal(left, right Value) bool {
	switch {
	case s.value(left).kind != Wildcard:
		return s.unify(right, s.value(left))
	case s.value(right).kind != Wildcard:
		return s.unify(left, s.value(right))
	}
	return true
}

func (s *search) undo(to int) {
	for _, slot := range s.trail[to:] {
		s.bindings[slot] = Value{}
	}
	s.trail = s.trail[:to]
}

// take unifies a literal's conduit and arguments with a fact's. A fact with an offset counts as
// one without, too.
func (s *search) take(l *literal, fact Fact) bool {
	if l.content.positioned && !fact.Positioned || !s.unify(l.content.conduit, String(fact.Conduit)) {
		return false
	}
	if l.op == opSays && l.content.positioned && !s.unify(l.content.offset, Integer(fact.Offset)) {
		return false
	}
	for i, argument := range l.arguments {
		if !s.unify(argument, fact.Arguments[i]) {
			return false
		}
	}
	return true
}

// solve tries the literal that costs least, then the others. When no literal is left that can
// be tried, what is bound is a reach.
func (s *search) solve(left []*literal) {
	if s.steps--; s.steps <= 0 {
		return
	}
	best, bestRank := -1, 0
	for i, l := range left {
		if rank, ready := s.rank(l); ready && (best < 0 || rank < bestRank) {
			best, bestRank = i, rank
		}
	}
	if best < 0 {
		s.emit()
		return
	}
	l := left[best]
	rest := slices.Delete(slices.Clone(left), best, best+1)
	start := len(s.trail)
	if l.op == opSays {
		s.walk(l, rest)
	} else if s.holds(l) {
		s.solve(rest)
	}
	s.undo(start)
}

// rank reports whether a literal can be tried, and how early it should be. Literals that
// cannot only restrict further.
func (s *search) rank(l *literal) (rank int, ready bool) {
	var bound uint8
	open := 0
	for i, argument := range l.arguments {
		if s.value(argument).kind != Wildcard {
			bound |= 1 << i
		} else {
			open++
		}
	}
	switch {
	case l.op == opSays:
		if s.value(l.content.conduit).kind == Wildcard {
			open += len(l.arguments) + 1
		}
		return 1 + open, open <= len(l.arguments) || bound != 0
	case l.op == opEq:
		return 0, bound != 0
	case l.op.relational() || l.op == opPrefix:
		return 0, open == 0
	case l.op == opType:
		return 0, bound&1 != 0
	case l.op == opConcat:
		return 0, bound&(bound-1) != 0
	case l.op.arithmetic():
		return 0, bound&0b110 == 0b110 // backwards there can be several solutions
	}
	return 0, false
}

// holds decides a literal that holds in at most one way.
func (s *search) holds(l *literal) bool {
	values := make([]Value, len(l.arguments))
	for i, argument := range l.arguments {
		values[i] = s.value(argument)
	}
	switch {
	case l.op == opEq:
		return s.equal(l.arguments[0], l.arguments[1])
	case l.op.relational():
		return relate(l.op, values[0], values[1])
	case l.op == opPrefix:
		return within(values[0], values[1])
	case l.op == opType:
		name, ok := kindName(values[0])
		return ok && s.unify(l.arguments[1], name)
	}
	computed, ok := compute(l.op, values[0], values[1], values[2])
	for i, argument := range l.arguments {
		ok = ok && s.unify(argument, computed[i])
	}
	return ok
}

// walk solves the rest for every tuple that satisfies the literal.
func (s *search) walk(l *literal, rest []*literal) {
	conduit := s.value(l.content.conduit)
	if conduit.kind != Wildcard && conduit.Text() == "" {
		return // nothing speaks there
	}
	pattern := Pattern{Conduit: conduit.Text(), Relation: l.content.relation,
		Arguments: make([]Value, len(l.arguments)), Rows: &s.steps}
	for i, argument := range l.arguments {
		pattern.Arguments[i] = s.value(argument)
	}
	if l.content.positioned {
		pattern.Positioned, pattern.Offset = true, s.value(l.content.offset)
	}
	s.facts.Lookup(pattern, func(fact Fact) bool {
		start := len(s.trail)
		if s.take(l, fact) {
			s.solve(rest)
		}
		s.undo(start)
		return s.steps > 0
	})
}

func (s *search) emit() {
	parameters := s.bindings[s.from : len(s.bindings)-1]
	for i, value := range parameters {
		if value.kind != Wildcard && value.kind != s.template.types[i] {
			return // an argument never has this type
		}
	}
	reach := Reach{Arguments: slices.Clone(parameters), This: s.bindings[len(s.bindings)-1]}
	for i := range s.clause.body {
		l := &s.clause.body[i]
		if !s.sessions {
			break
		}
		value := Value{}
		if len(l.arguments) > 0 {
			value = s.value(l.arguments[0])
		}
		switch {
		case l.op == opKey:
			reach.Asks = true
			if reach.Principal.kind == Wildcard {
				reach.Principal = value
			}
		case l.op == opRegion && reach.Region.kind == Wildcard:
			reach.Region = value
		}
	}
	s.found = append(s.found, reach)
}
