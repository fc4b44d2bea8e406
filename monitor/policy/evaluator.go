// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"unique"
	"weak"
)

// Evaluator says whether rules hold, and nothing else: neither under which conditions nor
// why. It gives the answer of the prover, which defines it, in a fraction of the time, and
// allocates nothing for most rules. An Evaluator is for one goroutine at a time.
//
// It is fastest where the state's facts are in a [FactIndex], which it then asks by the
// numbers of values: it looks up those of a session once ([Evaluator.Prepare]).
type Evaluator struct {
	state State
	index *FactIndex              // nil if the facts are elsewhere
	self  weak.Pointer[FactIndex] // the index
	leads map[lead]setNumber      // of joins
	exits map[exitPair]bool       // see endsEarlier

	asker *Prepared
	knows bool // whether the asker's uses are those of the index
	this  string

	values   [MaxVariables]Value     // of variables
	uses     [MaxVariables]*valueUse // of these values in the index; noUse if it has none, nil if not looked up
	scratch  []Value                 // stack of patterns' arguments
	branches []*branch               // by depth
	depth    int
	budget   budget
}

// noUse is the use of a value that is in no fact.
var noUse = new(valueUse)

// lead is a join and the value by which it is made.
type lead struct {
	prefix, relation unique.Handle[string]
	by               valueID
}

// maxLeads limits the memory for joins. When it is reached, all are forgotten.
const maxLeads = 1 << 16

// NewEvaluator returns an evaluator of rules in a state.
func NewEvaluator(state State) *Evaluator {
	e := &Evaluator{state: state}
	if e.finds(state) {
		e.leads = make(map[lead]setNumber)
	}
	return e
}

// finds sets the index of a state's facts, and reports whether there is one.
func (e *Evaluator) finds(state State) bool {
	if e.index = indexOf(state); e.index != nil {
		e.self = weak.Make(e.index)
	}
	return e.index != nil
}

// Prepared is an environment for questions to evaluators of one state. It is immutable and
// safe for concurrent use.
type Prepared struct {
	environment    Environment
	principal, key sessionName
	of             weak.Pointer[FactIndex] // the index of the names' uses
}

// sessionName is a name that sKeyIs holds for.
type sessionName struct {
	handle unique.Handle[string] // zero if the session has no such name
	value  Value
	use    *valueUse
}

// Prepare looks up what can be looked up before a question is asked. The environment's
// session must not change afterwards.
func (e *Evaluator) Prepare(environment Environment) *Prepared {
	prepared := &Prepared{environment: environment, of: e.self}
	if session := environment.Session; session != nil {
		prepared.principal, prepared.key = e.name(session.Principal), e.name(session.Key)
	}
	return prepared
}

func (e *Evaluator) name(name string) sessionName {
	if name == "" {
		return sessionName{}
	}
	return sessionName{unique.Make(name), String(name), e.useOf(String(name))}
}

// useOf returns the use of a value, nil if there is no index to look it up in.
func (e *Evaluator) useOf(value Value) *valueUse {
	if e.index == nil || !value.concrete() {
		return nil
	}
	if use := e.index.byValue.get(value.hash(), value); use != nil {
		return use
	}
	return noUse
}

// Holds reports whether the environment's session and target satisfy a rule. With an error
// the answer is no.
func (e *Evaluator) Holds(rule Rule, asker *Prepared) (bool, error) {
	program := rule.compiled().assembled()
	if !program.ok {
		return e.prove(rule, &asker.environment)
	}
	e.ask(rule, asker)
	for at := 0; at < len(program.code); at = int(program.code[at].end) {
		if e.run(program.code[at:program.code[at].end], 0) && e.budget.err == nil {
			return true, nil
		}
	}
	return false, e.budget.err
}

// ask begins a question.
func (e *Evaluator) ask(rule Rule, asker *Prepared) {
	e.asker, e.knows, e.this = asker, asker.of == e.self, rule.this
	e.budget.steps, e.budget.err = asker.environment.Steps, nil
	if e.budget.steps <= 0 {
		e.budget.steps = DefaultSteps
	}
}

// prove asks the prover, for rules that compare policies or speak of a write's content.
func (e *Evaluator) prove(rule Rule, environment *Environment) (bool, error) {
	p := newProver(e.state, environment)
	defer p.release()
	holds := p.evaluate(rule) && p.budget.err == nil
	return holds, p.budget.err
}

func (e *Evaluator) step() bool {
	if e.budget.steps <= 0 {
		e.budget.err = ErrTooManySteps
		return false
	}
	e.budget.steps--
	return true
}

// run tries the instructions from one on.
func (e *Evaluator) run(code []instruction, at int) bool {
	for ; at < len(code); at++ {
		if !e.step() {
			return false
		}
		c := &code[at]
		switch c.op {
		case opKey:
			if c.identity != (unique.Handle[string]{}) {
				if c.identity != e.asker.principal.handle && c.identity != e.asker.key.handle {
					return false
				}
				continue
			}
			if e.asker.key.value.kind != Wildcard && e.isAsker(&c.tested, &e.asker.key) && e.run(code, at+1) {
				return true
			}
			if !e.isAsker(&c.tested, &e.asker.principal) {
				return false
			}
		case opSays:
			if !c.complete {
				return e.search(code, at)
			}
			if !e.says(c) {
				return false
			}
		case opEach:
			if !e.each(c) {
				return false
			}
		case opInvalid: // of a clause without literals
		default:
			if !e.holds(c) {
				return false
			}
		}
	}
	return true
}

// value returns an operand's value. A variable may stand for the clock.
func (e *Evaluator) value(o *operand) Value {
	switch o.kind {
	case operandSlot, operandSame:
		if e.values[o.slot].kind == kindStored {
			e.values[o.slot] = e.index.value(valueID(e.values[o.slot].number)) //nolint:gosec // it is one
		}
		return e.values[o.slot]
	case operandThis:
		return String(e.this)
	case operandNow:
		return Value{kind: kindNow}
	}
	return o.value
}

// exact resolves the clock.
func (e *Evaluator) exact(value Value) Value {
	if value.kind != kindNow || e.asker.environment.Now.IsZero() {
		return value
	}
	return Time(e.asker.environment.Now)
}

// is makes an operand equal to a value, which gives a variable its value.
func (e *Evaluator) is(o *operand, value Value) bool {
	if o.kind == operandBind {
		e.values[o.slot], e.uses[o.slot] = value, nil
		return value.kind != Wildcard
	}
	return value.kind != Wildcard && e.value(o) == value
}

// isAsker does the same for a name of the session.
func (e *Evaluator) isAsker(o *operand, name *sessionName) bool {
	if !e.is(o, name.value) {
		return false
	}
	if o.kind == operandBind && e.knows {
		e.uses[o.slot] = name.use
	}
	return true
}
