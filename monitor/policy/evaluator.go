// SPDX-License-Identifier: BSD-2-Clause

package policy

// Evaluator says whether rules hold, and nothing else: neither under which conditions nor
// why. It gives the answer of the prover, which defines it, in a fraction of the time, and
// allocates nothing for most rules. An Evaluator is for one goroutine at a time.
//
// Facts must not keep the arguments of patterns that it asks about.
type Evaluator struct {
	state       State
	environment *Environment
	this        string

	values   [MaxVariables]Value // of variables
	scratch  []Value             // stack of patterns' arguments
	branches []*branch           // by depth
	depth    int
	budget   budget
}

// NewEvaluator returns an evaluator of rules in a state.
func NewEvaluator(state State) *Evaluator { return &Evaluator{state: state} }

// branch is a fact that is being tried.
type branch struct {
	evaluator *Evaluator
	code      []instruction
	at        int
	holds     bool
	try       func(Fact) bool // with the branch's fields; made once
}

// Holds reports whether the environment's session and target satisfy a rule. With an error
// the answer is no.
func (e *Evaluator) Holds(rule Rule, environment *Environment) (bool, error) {
	compiled := rule.compiled()
	programs, ok := compiled.programs()
	if !ok {
		return e.prove(rule, environment)
	}
	e.environment, e.this = environment, rule.this
	e.budget.steps, e.budget.err = environment.Steps, nil
	if e.budget.steps <= 0 {
		e.budget.steps = DefaultSteps
	}
	for i := range programs {
		if e.run(programs[i].code, 0) && e.budget.err == nil {
			return true, nil
		}
	}
	return false, e.budget.err
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
		switch {
		case c.op == opKey:
			session := e.environment.Session
			if session == nil {
				return false
			}
			if session.Key != "" && e.is(&c.arguments[0], String(session.Key)) && e.run(code, at+1) {
				return true
			}
			if session.Principal == "" || !e.is(&c.arguments[0], String(session.Principal)) {
				return false
			}
		case c.op == opSays && !c.complete:
			return e.search(code, at)
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
	if value.kind != kindNow || e.environment.Now.IsZero() {
		return value
	}
	return Time(e.environment.Now)
}

// is makes an operand equal to a value, which gives a variable its value.
func (e *Evaluator) is(o *operand, value Value) bool {
	if o.kind == operandBind {
		e.values[o.slot] = value
		return value.kind != Wildcard
	}
	return value.kind != Wildcard && e.value(o) == value
}

// holds decides literals that hold in at most one way.
func (e *Evaluator) holds(c *instruction) bool {
	switch {
	case c.op == opSays:
		return e.says(c)
	case c.op == opEach:
		return e.each(c)
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
		return !e.environment.Now.IsZero() && (e.is(&c.arguments[0], now) ||
			e.relation(opEq, now, e.value(&c.arguments[0])))
	case c.op == opPrefix:
		address, prefix := e.value(&c.arguments[0]), e.value(&c.arguments[1])
		return address.concrete() && prefix.concrete() && within(address, prefix)
	case c.op == opInternal:
		return e.environment.Target != nil && e.environment.Target.Internal
	case c.op == opExists:
		id := e.value(&c.arguments[0])
		if id.kind != IntegerValue {
			return false
		}
		_, found := e.state.ConduitByID(id.number)
		return found
	}
	value, _ := e.environment.sessionValue(c.op)
	if value.kind == Wildcard {
		value, _ = e.environment.targetValue(c.op)
	}
	return e.is(&c.arguments[0], value)
}

func (e *Evaluator) relation(op operation, left, right Value) bool {
	switch {
	case left.concrete() && right.concrete():
		return relate(op, left, right)
	case left == right:
		return op == opEq || op == opLe || op == opGe
	case e.environment.Now.IsZero():
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
	if !ok {
		return false
	}
	for i := range given {
		if c.arguments[i].open() && !e.is(&c.arguments[i], values[i]) {
			return false
		}
	}
	return true
}

// pattern returns what to ask the facts for. Its arguments are on the scratch stack; the
// caller restores its height.
func (e *Evaluator) pattern(c *instruction, arguments []operand) (Pattern, bool) {
	conduit := e.exact(e.value(&c.conduit))
	if conduit.kind != StringValue || conduit.text == "" {
		return Pattern{}, false
	}
	from := len(e.scratch)
	for i := range arguments {
		var value Value
		if !arguments[i].open() {
			value = e.exact(e.value(&arguments[i]))
		}
		if value.kind > TimeValue {
			return Pattern{}, false
		}
		e.scratch = append(e.scratch, value)
	}
	return Pattern{Conduit: conduit.text, Relation: c.relation, Arguments: e.scratch[from:len(e.scratch):len(e.scratch)],
		Rows: &e.budget.steps}, true
}

// looked reports whether the facts have been looked at to the end.
func (e *Evaluator) looked() bool {
	if e.budget.steps <= 0 {
		e.budget.err = ErrTooManySteps
	}
	return e.budget.err == nil
}

func (e *Evaluator) says(c *instruction) bool {
	height := len(e.scratch)
	pattern, ok := e.pattern(c, c.arguments)
	ok = ok && e.state.Has(pattern) && e.looked()
	e.scratch = e.scratch[:height]
	return ok
}

// search tries the rest of the program with each fact that matches.
func (e *Evaluator) search(code []instruction, at int) bool {
	height := len(e.scratch)
	pattern, ok := e.pattern(&code[at], code[at].arguments)
	if ok {
		b := e.branch()
		b.code, b.at, b.holds = code, at, false
		e.state.Lookup(pattern, b.try)
		ok = e.looked() && b.holds
		e.depth--
	}
	e.scratch = e.scratch[:height]
	return ok
}

func (e *Evaluator) branch() *branch {
	if e.depth == len(e.branches) {
		b := &branch{evaluator: e}
		b.try = b.attempt
		e.branches = append(e.branches, b)
	}
	e.depth++
	return e.branches[e.depth-1]
}

func (b *branch) attempt(fact Fact) bool {
	e := b.evaluator
	b.holds = e.takes(b.code[b.at].arguments, fact.Arguments) && e.run(b.code, b.at+1)
	return !b.holds && e.budget.err == nil
}

// takes gives open variables the values of a tuple.
func (e *Evaluator) takes(operands []operand, tuple []Value) bool {
	for i := range operands {
		if o := &operands[i]; o.open() && !e.is(o, tuple[i]) {
			return false
		}
	}
	return true
}

// each decides whether the condition holds for every tuple: by the absence of those for
// which it does not, or one by one.
func (e *Evaluator) each(c *instruction) bool {
	height := len(e.scratch)
	pattern, ok := e.pattern(c, c.each.pattern)
	if ok {
		switch e.exclusion(c.each, pattern) {
		case refuted:
			ok = false
		case undecided:
			ok = e.walk(c.each, pattern)
		}
		ok = ok && e.looked()
	}
	e.scratch = e.scratch[:height]
	return ok
}

func (e *Evaluator) exclusion(c *eachCode, pattern Pattern) verdict {
	if len(c.exclusion) == 0 {
		return undecided
	}
	result := settled
	for i := range c.exclusion {
		x := &c.exclusion[i]
		right := e.value(&x.right)
		without := pattern
		if x.places != nil {
			if !right.concrete() {
				return undecided
			}
			from := len(e.scratch)
			e.scratch = append(e.scratch, pattern.Arguments...)
			without.Arguments = e.scratch[from:len(e.scratch):len(e.scratch)]
			for _, place := range x.places {
				without.Arguments[place] = right
			}
		} else {
			left := e.value(&x.left)
			if !left.concrete() || !right.concrete() {
				return undecided
			}
			if relate(x.op, left, right) {
				continue
			}
			if !c.simple {
				return undecided
			}
		}
		switch {
		case !e.state.Has(without):
		case x.simple:
			return refuted
		default:
			result = undecided // it may be another tuple
		}
	}
	return result
}

// walk shows the condition for each tuple.
func (e *Evaluator) walk(c *eachCode, pattern Pattern) bool {
	all := true
	e.state.Lookup(pattern, func(fact Fact) bool {
		all = !e.takes(c.pattern, fact.Arguments) || e.run(c.condition, 0)
		return all
	})
	return all
}
