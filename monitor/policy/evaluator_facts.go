// SPDX-License-Identifier: BSD-2-Clause

package policy

// The literals of programs about tuples.

// branch is a literal of which several tuples may match, while one is tried.
type branch struct {
	evaluator *Evaluator
	code      []instruction
	at        int
	holds     bool
	try       func(Fact) bool // with the branch's fields; made once
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
	return Pattern{Conduit: conduit.text, Relation: c.relation,
		Arguments: e.scratch[from:len(e.scratch):len(e.scratch)], Rows: &e.budget.steps}, true
}

// looked reports whether the facts have been looked at to the end.
func (e *Evaluator) looked() bool {
	if e.budget.steps <= 0 {
		e.budget.err = ErrTooManySteps
	}
	return e.budget.err == nil
}

// group returns the group of the tuples of a literal with one argument. ok is false if there
// is no index, or if nothing can be said by such a conduit.
func (e *Evaluator) group(c *instruction) (found foundGroup, ok bool) {
	if e.index == nil {
		return foundGroup{}, false
	}
	if c.fixed {
		if cached := c.group.found.Load(); cached != nil && cached.in == e.self {
			return *cached, true
		}
	}
	conduit := e.exact(e.value(&c.conduit))
	if conduit.kind != StringValue || conduit.text == "" {
		return foundGroup{}, false
	}
	group := e.index.group(conduit.text, c.relation, 1, false)
	found = foundGroup{e.self, group.set(), group}
	if c.fixed {
		c.group.found.Store(&foundGroup{e.self, group.set(), group})
	}
	return found, true
}

// use returns the use of an operand's value in the index, nil if it is not a value that a fact
// could have.
func (e *Evaluator) use(o *operand) *valueUse {
	if o.kind != operandSlot {
		return e.useOf(e.exact(e.value(o)))
	}
	if e.uses[o.slot] == nil {
		e.uses[o.slot] = e.useOf(e.exact(e.value(o)))
	}
	return e.uses[o.slot]
}

// member decides whether a set contains a value. ok is false if the facts have to be asked.
func (e *Evaluator) member(c *instruction) (found, ok bool) {
	var set setNumber
	if cached := c.group.found.Load(); e.index != nil && cached != nil && cached.in == e.self {
		set = cached.set
	} else {
		group, ok := e.group(c)
		if !ok {
			return false, false
		}
		set = group.set
	}
	var use *valueUse
	if c.tested.kind == operandSlot {
		use = e.uses[c.tested.slot]
	}
	if use == nil {
		if use = e.use(&c.tested); use == nil {
			return false, false
		}
	}
	return e.step() && use.in(set), true
}

func (e *Evaluator) says(c *instruction) bool {
	if c.joined != nil {
		return e.join(c)
	}
	if c.single {
		if found, ok := e.member(c); ok {
			return found
		}
	}
	height := len(e.scratch)
	pattern, ok := e.pattern(c, c.arguments)
	ok = ok && e.state.Has(pattern) && e.looked()
	e.scratch = e.scratch[:height]
	return ok
}

// join decides `concat(C, "prefix", M), C says t(v)`.
func (e *Evaluator) join(c *instruction) bool {
	to, ok := e.lead(c)
	if !ok {
		return false
	}
	if e.index != nil {
		if use := e.use(&c.tested); use != nil {
			return e.step() && use.in(to.set)
		}
		return false
	}
	value := e.exact(e.value(&c.tested))
	if !value.concrete() {
		return false
	}
	e.scratch = append(e.scratch, value)
	from := len(e.scratch) - 1
	found := e.state.Has(Pattern{Conduit: to.conduit, Relation: c.relation, Arguments: e.scratch[from : from+1],
		Rows: &e.budget.steps})
	e.scratch = e.scratch[:from]
	return found && e.looked()
}

// led is where a join leads to: a set, or a conduit if there is no index.
type led struct {
	set     setNumber
	conduit string
}

// lead finds where a join leads to; ok is false if there is no such conduit's name.
func (e *Evaluator) lead(c *instruction) (to led, ok bool) {
	by := &c.joined.by
	key := lead{prefix: c.joined.prefix, relation: c.joined.relation}
	stored := e.values[by.slot].kind == kindStored
	if stored {
		key.by = valueID(e.values[by.slot].number) //nolint:gosec // it is one
		if set, found := e.leads[key]; found {
			return led{set: set}, true
		}
	}
	suffix := e.exact(e.value(by))
	if suffix.kind != StringValue {
		return led{}, false
	}
	values, ok := compute(opConcat, Value{}, String(c.joined.prefix.Value()), suffix)
	if to.conduit = values[0].text; !ok || to.conduit == "" || !e.budget.charge(len(to.conduit)) {
		return led{}, false
	}
	if e.index == nil {
		return to, true
	}
	to.set = e.index.group(to.conduit, c.relation, 1, false).set()
	if stored {
		if len(e.leads) >= maxLeads {
			clear(e.leads)
		}
		e.leads[key] = to.set
	}
	return to, true
}

// search tries the rest of the program with each tuple that matches.
func (e *Evaluator) search(code []instruction, at int) bool {
	c := &code[at]
	if len(c.arguments) == 1 && c.arguments[0].kind == operandBind {
		if found, ok := e.group(c); ok {
			return found.group != nil && e.searchSet(found.group, code, at)
		}
	}
	height := len(e.scratch)
	pattern, ok := e.pattern(c, c.arguments)
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

// searchSet does the same for all members of a set.
func (e *Evaluator) searchSet(set *factGroup, code []instruction, at int) bool {
	slot := code[at].arguments[0].slot
	for _, chunk := range set.rows.chunks {
		for _, id := range chunk {
			if !e.step() {
				return false
			}
			e.values[slot], e.uses[slot] = Value{kind: kindStored, number: int64(id)}, nil
			if e.run(code, at+1) {
				return true
			}
			if e.budget.err != nil {
				return false
			}
		}
	}
	return false
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
	if c.single {
		if found, ok := e.member(c); ok {
			return !found && e.budget.err == nil
		}
	}
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
