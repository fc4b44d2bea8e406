// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"sync"

	"shai.dev/monitor/internal/bug"
)

// prover shows that a conjunction holds. It is used in two ways:
//
//   - evaluation: session, target and update are given (hypotheses is empty);
//   - comparison: they are left open, and the hypotheses about them may be used. The
//     hypotheses' variables are frozen: fixed but unknown values.
//
// In both, the state answers literals about facts and conduits, and every successful
// lookup becomes a condition.
type prover struct {
	state       State
	environment Environment
	judgement   judgement
	comparing   bool
	anyConduit  bool // an unbound conduit means any: only to run a policy backwards
	hypotheses  []hypothesis
	frozen      int64 // next unused number of a frozen value

	owner    Rule // the rule (or the rule beside the exit) being shown
	clause   *clause
	bindings []Value // of clause's variables; a Wildcard is unbound
	trail    []int64 // variables in the order in which they were bound
	scratch  []Value // stack of pattern arguments

	conditions []Condition
	policies   []boundPolicy // from hasPol, by number
	budget     *budget       // its own, or that of the decision around a nested comparison
	own        budget
	nesting    int // depth of each conditions
	failure    failure
	breaking   breaking
	tree       *Derivation // for explanations; nil if none was requested
}

// hypothesis is a conjunction that is assumed to hold.
type hypothesis struct {
	body     []literal
	bindings []Value // of its variables: frozen or known
	this     string
	policy   *Policy
}

func (h *hypothesis) value(term Value) Value {
	switch term.kind {
	case kindVariable:
		return h.bindings[term.number]
	case kindThis:
		return String(h.this)
	}
	return term
}

type boundPolicy struct {
	policy *Policy
	this   string
}

// budget limits the steps of one decision, including nested comparisons.
type budget struct {
	steps int // literals to try, and facts to look at
	depth int
	err   error
	next  Value // the first instant at which a relation with the clock will hold that does not yet
}

// bytesInStep is how many bytes of long texts, put together or copied, count as a step.
const bytesInStep = 64

// charge counts bytes. It returns false when the budget is used up.
func (b *budget) charge(bytes int) bool {
	b.steps -= bytes / bytesInStep
	if b.steps <= 0 {
		b.steps, b.err = 0, ErrTooManySteps
	}
	return b.err == nil
}

// failure is the literal that came nearest to success among those that did not hold.
type failure struct {
	literal   *literal
	owner     Rule
	clause    *clause
	remaining int // literals of the clause still to show, this one included, exclusions after it not
	bindings  []Value
	breaking  breaking // of an each
}

// breaking is the tuple for which an each did not hold.
type breaking struct {
	each *literal
	fact Fact
}

// frozenValues are the values of a hypothesis' variables.
var frozenValues = func() (values [MaxVariables]Value) {
	for i := range values {
		values[i] = Value{kind: kindFrozen, number: int64(i)}
	}
	return values
}()

var provers = sync.Pool{New: func() any { return new(prover) }}

// maxRetained limits the buffers of provers that wait for their next use.
const maxRetained = 256

// newProver returns a prover for one decision; give it back with release.
func newProver(state State, environment *Environment) *prover {
	p := provers.Get().(*prover)
	steps := environment.Steps
	if steps <= 0 {
		steps = DefaultSteps
	}
	p.state, p.environment = state, *environment
	p.own = budget{steps: steps}
	p.budget = &p.own
	return p
}

func (p *prover) release() {
	if cap(p.conditions) > maxRetained || cap(p.scratch) > maxRetained {
		return // an unusual decision should not occupy memory for long
	}
	// The buffers that are kept refer to policies and strings for a while longer.
	*p = prover{
		hypotheses: p.hypotheses[:0], bindings: p.bindings[:0], trail: p.trail[:0], scratch: p.scratch[:0],
		conditions: p.conditions[:0], failure: failure{bindings: p.failure.bindings[:0],
			breaking: p.failure.breaking.reuse()}, breaking: p.breaking.reuse(),
	}
	provers.Put(p)
}

// reuse keeps only the buffer.
func (b breaking) reuse() breaking { return breaking{fact: Fact{Arguments: b.fact.Arguments[:0]}} }

// mark is a state of bindings and conditions to return to.
type mark struct{ trail, conditions int }

func (p *prover) mark() mark { return mark{len(p.trail), len(p.conditions)} }

func (p *prover) undo(to mark) {
	p.unbind(to.trail)
	p.conditions = p.conditions[:to.conditions]
}

func (p *prover) unbind(trail int) {
	for _, variable := range p.trail[trail:] {
		p.bindings[variable] = Value{}
	}
	p.trail = p.trail[:trail]
}

// step counts one literal. It returns false when the budget is used up.
func (p *prover) step() bool {
	if p.budget.steps <= 0 {
		p.budget.err = ErrTooManySteps
		return false
	}
	p.budget.steps--
	return true
}

// has and lookup ask the state. Each fact that it looks at counts as a step, since a pattern
// may match few of many. A proof that has used up its steps proves nothing: see ask.
func (p *prover) has(pattern Pattern) bool {
	pattern.Rows = &p.budget.steps
	found := p.state.Has(pattern)
	return p.looked() && found
}

func (p *prover) lookup(pattern Pattern, yield func(Fact) bool) {
	pattern.Rows = &p.budget.steps
	p.state.Lookup(pattern, yield)
	p.looked()
}

// looked reports whether the state has looked at all that matches.
func (p *prover) looked() bool {
	if p.budget.steps <= 0 {
		p.budget.err = ErrTooManySteps
	}
	return p.budget.err == nil
}

func (p *prover) require(condition Condition) {
	p.budget.charge(len(condition.Tuple.packed))
	p.conditions = append(p.conditions, condition)
}

// value resolves a term; the result is a Wildcard for an unbound variable.
func (p *prover) value(term Value) Value {
	switch term.kind {
	case kindVariable:
		return p.bindings[term.number]
	case kindThis:
		return String(p.owner.this)
	}
	return term
}

// exact resolves the clock to the current instant. A conclusion from it holds only now,
// which becomes a condition.
func (p *prover) exact(value Value) Value {
	if value.kind != kindNow || p.environment.Now.IsZero() {
		return value // without a clock there is no conclusion
	}
	instant := Time(p.environment.Now)
	p.requireFrom(instant)
	p.requireBefore(Value{kind: TimeValue, number: instant.number + 1})
	return instant
}

// clockKnown shows that there is a clock: by a hypothesis that could not hold without
// one, or because the environment has one, which becomes a condition.
func (p *prover) clockKnown() bool {
	for h := range p.hypotheses {
		if slices.ContainsFunc(p.hypotheses[h].body, func(l literal) bool { return l.needsClock() }) {
			return true
		}
	}
	if p.environment.Now.IsZero() {
		return false
	}
	p.requireFrom(Time(earliest))
	return true
}

func (p *prover) requireFrom(instant Value) { p.require(Condition{Kind: ClockFrom, Time: instant}) }

func (p *prover) requireBefore(instant Value) { p.require(Condition{Kind: ClockBefore, Time: instant}) }

// unify makes a term of the clause equal to value, binding it if it is unbound.
func (p *prover) unify(term, value Value) bool {
	if value.kind == Wildcard {
		return false
	}
	resolved := p.value(term)
	if resolved.kind == Wildcard {
		p.bindings[term.number] = value
		p.trail = append(p.trail, term.number)
		return true
	}
	return resolved == value
}

// open prepares for showing a clause of a rule.
func (p *prover) open(owner Rule, c *clause) {
	p.owner, p.clause = owner, c
	if cap(p.bindings) < c.variables {
		p.bindings = make([]Value, c.variables, MaxVariables)
	}
	p.bindings = p.bindings[:c.variables]
	clear(p.bindings)
	p.trail = p.trail[:0]
}

// prove shows the literals of body from index i on, and then done (nil: nothing more).
// After success, bindings and conditions stay; otherwise they are undone.
func (p *prover) prove(body []literal, i int, done func() bool) bool {
	if i == len(body) {
		return done == nil || done()
	}
	if !p.step() {
		return false
	}
	l := &body[i]
	start := p.mark()
	var matched bool // whether the literal itself held at least once
	var proved bool
	switch {
	case l.op == opSays || l.op == opWillsay:
		matched, proved = p.proveContent(body, i, done)
	case l.op.speaksOfFlow() || l.op == opHasPolicy || l.op == opExists:
		matched, proved = p.proveFlow(body, i, done)
	default:
		matched = p.holds(l)
		proved = matched && p.prove(body, i+1, done)
	}
	if proved {
		return true
	}
	if !matched {
		p.note(l, body[i+1:])
	}
	p.undo(start)
	return false
}

// note records a literal that did not hold, before others, if it came nearer than earlier ones. Of
// two that came equally near, it prefers a missing fact, since that can be remedied. Exclusions that
// follow do not count: they hold for most.
func (p *prover) note(l *literal, following []literal) {
	if p.nesting > 0 {
		return
	}
	remaining := 1
	for i := range following {
		if !following[i].isEach() {
			remaining++
		}
	}
	nearer := p.failure.literal == nil || remaining < p.failure.remaining ||
		remaining == p.failure.remaining && l.op == opSays && p.failure.literal.op != opSays
	if !nearer {
		return
	}
	p.failure.literal, p.failure.owner, p.failure.clause, p.failure.remaining = l, p.owner, p.clause, remaining
	p.failure.bindings = append(p.failure.bindings[:0], p.bindings...)
	p.failure.breaking = p.failure.breaking.reuse()
	if p.breaking.each == l {
		arguments := append(p.failure.breaking.fact.Arguments, p.breaking.fact.Arguments...)
		p.failure.breaking = p.breaking
		p.failure.breaking.fact.Arguments = arguments
	}
}

// holds decides literals that hold in at most one way.
func (p *prover) holds(l *literal) bool {
	switch {
	case l.op == opEq && p.value(l.arguments[0]).kind == Wildcard:
		return p.unify(l.arguments[0], p.value(l.arguments[1]))
	case l.op == opEq && p.value(l.arguments[1]).kind == Wildcard:
		return p.unify(l.arguments[1], p.value(l.arguments[0]))
	case l.op.relational():
		return p.relation(l.op, p.value(l.arguments[0]), p.value(l.arguments[1]))
	case l.op.arithmetic() || l.op == opConcat:
		return p.computation(l)
	case l.op == opType:
		if name, ok := kindName(p.exact(p.value(l.arguments[0]))); ok {
			return p.unify(l.arguments[1], name)
		}
		return p.assumed(l)
	case l.op == opTime:
		return p.clockKnown() && (p.unify(l.arguments[0], Value{kind: kindNow}) ||
			p.relation(opEq, Value{kind: kindNow}, p.value(l.arguments[0])))
	case l.op == opPrefix:
		return p.prefix(l)
	case l.op == opEach || l.op == opEachWillsay:
		return p.each(l)
	case l.op == opAtLeast:
		return p.atLeast(l)
	}
	bug.Found("no way to show %s", signatures[l.op].name)
	return false
}

// assumed searches for a hypothesis that is equal to the literal, and unifies its
// arguments.
func (p *prover) assumed(l *literal) bool {
	for h := range p.hypotheses {
		for j := range p.hypotheses[h].body {
			if p.matches(l, &p.hypotheses[h], &p.hypotheses[h].body[j]) {
				return true
			}
		}
	}
	return false
}

// matches unifies a literal with one of a hypothesis, argument by argument.
func (p *prover) matches(l *literal, h *hypothesis, assumed *literal) bool {
	if assumed.op != l.op || len(assumed.arguments) != len(l.arguments) {
		return false
	}
	start := len(p.trail)
	if l.content != nil && !p.samePlace(l.content, h, assumed.content) {
		p.unbind(start)
		return false
	}
	for i, argument := range l.arguments {
		if !p.unify(argument, h.value(assumed.arguments[i])) {
			p.unbind(start)
			return false
		}
	}
	return true
}

// samePlace unifies the offsets of two tuples. An assumed tuple at a known offset also
// counts as one at any offset.
func (p *prover) samePlace(c *content, h *hypothesis, assumed *content) bool {
	if c.relation != assumed.relation || !p.unify(c.conduit, h.value(assumed.conduit)) {
		return false
	}
	return !c.positioned || assumed.positioned && p.unify(c.offset, h.value(assumed.offset))
}
