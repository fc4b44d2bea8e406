// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"sync"
	"sync/atomic"
	"unique"
	"weak"
)

// program is a rule that is prepared for evaluation: where each literal gets its values from
// is decided once. The order of a clause's literals is fixed, so it is known for each of
// them which variables have a value already.
type program struct {
	isReady  atomic.Bool // assembled; read before each evaluation
	assemble sync.Once
	code     []instruction // of all clauses; empty clauses have one that holds
	ok       bool          // whether there is no literal that only the prover can show
}

// instruction is a literal of a program. What is needed first stands first: programs of many
// documents are in memory, and few in the processor's caches.
type instruction struct {
	op       operation
	complete bool  // nothing is open
	fixed    bool  // about tuples: the conduit is a constant
	single   bool  // about tuples: whether a set contains the value of tested
	plain    bool  // see isPlain
	end      int32 // of its clause in the program

	identity  unique.Handle[string] // of sKeyIs with a constant
	group     groupCache            // if fixed
	tested    operand               // if single, and of sKeyIs
	arguments []operand
	relation  string
	conduit   operand
	each      *eachCode
	joined    *join
}

// eachCode is what an each demands of tuples.
type eachCode struct {
	pattern   []operand // of the tuples
	condition []instruction
	exclusion []excluded // decides it without a walk; empty if that is not possible
	simple    bool       // no variable of the pattern occurs twice
}

// excluded is a literal of an each's condition: `neq(X, v)` for a variable X of the pattern,
// at the given places, or a relation between values that the tuple has no part in.
type excluded struct {
	places      []int
	op          operation
	left, right operand
	simple      bool // no other variable of the pattern occurs twice
}

// join is `concat(C, "prefix", M), C says t(v)` with C in no other literal: the groups that
// the values of M lead to can be remembered.
type join struct {
	prefix, relation unique.Handle[string]
	by               operand // M
}

type operandKind uint8

const (
	operandValue operandKind = iota
	operandSlot              // a variable that has a value
	operandBind              // a variable that gets one here
	operandSame              // one that gets its value in the same literal
	operandThis
	operandNow
)

// operand says where an argument's value comes from, or goes to.
type operand struct {
	value Value
	slot  int
	kind  operandKind
}

// open reports whether the value is not known before the literal is tried.
func (o *operand) open() bool { return o.kind == operandBind || o.kind == operandSame }

// groupCache remembers the group of a literal's tuples in the index that was asked last. It
// does not keep that index in memory.
type groupCache struct{ found atomic.Pointer[foundGroup] }

type foundGroup struct {
	in    weak.Pointer[FactIndex]
	set   setNumber
	group *factGroup // nil: there is none
}

// assembled returns the rule's program.
func (r *rule) assembled() *program { return r.program.of(r.clauses) }

// of returns the program, which is always asked for with the same clauses.
func (p *program) of(clauses []clause) *program {
	if p.isReady.Load() {
		return p
	}
	return p.assembledOnce(clauses)
}

func (p *program) assembledOnce(clauses []clause) *program {
	p.assemble.Do(func() { p.add(clauses) })
	return p
}

// add assembles clauses; they are the program's only ones.
func (p *program) add(clauses []clause) {
	p.ok = true
	for i := range clauses {
		a := assembler{known: make([]bool, clauses[i].variables)}
		code := joins(a.body(clauses[i].body), clauses[i].variables)
		if len(code) == 0 {
			code = []instruction{{op: opInvalid}}
		}
		for j := range code {
			code[j].plain = code[j].isPlain()
			code[j].end = int32(len(p.code) + len(code)) //nolint:gosec // at most MaxClauses * MaxLiterals
		}
		for j := range code {
			p.code = append(p.code, instruction{})
			code[j].moveTo(&p.code[len(p.code)-1])
		}
		p.ok = p.ok && !a.failed
	}
	p.isReady.Store(true)
}

// moveTo copies everything but the cache, which is empty before the first use.
func (c *instruction) moveTo(other *instruction) {
	other.op, other.complete, other.fixed, other.single = c.op, c.complete, c.fixed, c.single
	other.plain, other.end = c.plain, c.end
	other.identity, other.tested, other.arguments, other.relation = c.identity, c.tested, c.arguments, c.relation
	other.conduit, other.each, other.joined = c.conduit, c.each, c.joined
}

// assembler makes the instructions of one clause.
type assembler struct {
	known  []bool // variables that have a value
	failed bool
}

func (a *assembler) body(body []literal) []instruction {
	code := make([]instruction, len(body))
	for i := range body {
		a.instruction(&code[i], &body[i])
	}
	return code
}

func (a *assembler) instruction(code *instruction, l *literal) {
	code.op = l.op
	switch l.op {
	case opHasPolicy, opAtLeast, opWillsay, opEachWillsay:
		a.failed = true
		return
	}
	if l.content != nil {
		if l.content.positioned {
			a.failed = true
			return
		}
		code.relation, code.conduit = l.content.relation, a.operand(l.content.conduit)
		code.fixed = code.conduit.kind == operandValue && code.conduit.value.Text() != ""
	}
	if l.op == opEach {
		code.each = a.each(l)
		if x := code.each.exclusion; len(l.arguments) == 1 && len(x) == 1 && x[0].places != nil {
			code.single, code.tested = true, x[0].right
		}
		return
	}
	code.arguments = a.operands(l.arguments)
	code.complete = true
	for i := range code.arguments {
		code.complete = code.complete && !code.arguments[i].open()
	}
	if l.op == opSays && code.complete && len(l.arguments) == 1 {
		code.single, code.tested = true, code.arguments[0]
	}
	if l.op == opKey {
		code.tested = code.arguments[0]
		if name := l.arguments[0].Text(); name != "" {
			code.identity = unique.Make(name)
		}
	}
}

// operands also marks the variables that get a value.
func (a *assembler) operands(terms []Value) []operand {
	operands := make([]operand, len(terms))
	for i, term := range terms {
		operands[i] = a.operand(term)
		for j := range i {
			if operands[i].kind == operandBind && operands[j].kind == operandBind &&
				operands[i].slot == operands[j].slot {
				operands[i].kind = operandSame
			}
		}
	}
	for _, term := range terms {
		if term.kind == kindVariable {
			a.known[term.number] = true
		}
	}
	return operands
}

func (a *assembler) operand(term Value) operand {
	switch {
	case term.kind == kindVariable && a.known[term.number]:
		return operand{kind: operandSlot, slot: int(term.number)}
	case term.kind == kindVariable:
		return operand{kind: operandBind, slot: int(term.number)}
	case term.kind == kindThis:
		return operand{kind: operandThis}
	case term.kind == kindNow:
		return operand{kind: operandNow}
	}
	return operand{value: term}
}

func (a *assembler) each(l *literal) *eachCode {
	code := &eachCode{pattern: a.operands(l.arguments), simple: true}
	for i := range code.pattern {
		code.simple = code.simple && code.pattern[i].kind != operandSame
	}
	code.condition = a.body(l.content.condition)
	for i := range l.content.condition {
		inner, ok := excludedBy(l, &l.content.condition[i], &code.condition[i])
		if !ok {
			code.exclusion = nil
			break
		}
		code.exclusion = append(code.exclusion, inner)
	}
	for variable := l.content.localFrom; variable < l.content.localTo; variable++ {
		a.known[variable] = false
	}
	return code
}

// excludedBy recognises a literal that decides an each without a walk.
func excludedBy(l, inner *literal, code *instruction) (excluded, bool) {
	if !inner.op.relational() {
		return excluded{}, false
	}
	found := excluded{op: inner.op, left: code.arguments[0], right: code.arguments[1], simple: true}
	left, right := l.isLocal(inner.arguments[0]), l.isLocal(inner.arguments[1])
	switch {
	case !left && !right:
		return found, true
	case left == right || inner.op != opNeq:
		return excluded{}, false
	}
	variable := inner.arguments[0]
	if right {
		variable, found.left, found.right = inner.arguments[1], found.right, found.left
	}
	if !l.binds(variable) {
		return excluded{}, false
	}
	for i, argument := range l.arguments {
		if argument == variable {
			found.places = append(found.places, i)
			continue
		}
		for _, other := range l.arguments[:i] {
			found.simple = found.simple && !(argument == other && l.binds(argument))
		}
	}
	return found, true
}

// isLocal reports whether a term is a variable of the each.
func (l *literal) isLocal(term Value) bool {
	return term.kind == kindVariable && int(term.number) >= l.content.localFrom && int(term.number) < l.content.localTo
}

// joins recognises what a join is, and makes one instruction of it.
func joins(code []instruction, variables int) []instruction {
	uses := make([]int, variables)
	for i := range code {
		code[i].count(uses)
	}
	for i := 0; i+1 < len(code); i++ {
		c, says := &code[i], &code[i+1]
		if c.op != opConcat || says.op != opSays || !says.single ||
			c.arguments[0].kind != operandBind || c.arguments[1].kind != operandValue ||
			c.arguments[1].value.kind != StringValue || c.arguments[2].kind != operandSlot ||
			says.conduit.kind != operandSlot || says.conduit.slot != c.arguments[0].slot ||
			uses[says.conduit.slot] != 2 {
			continue
		}
		says.joined = &join{unique.Make(c.arguments[1].value.text), unique.Make(says.relation), c.arguments[2]}
		for j := i; j+1 < len(code); j++ {
			code[j] = instruction{}
			code[j+1].moveTo(&code[j])
		}
		code = code[:len(code)-1]
	}
	return code
}

// count counts where variables occur.
func (c *instruction) count(uses []int) {
	add := func(o *operand) {
		if o.kind == operandSlot || o.open() {
			uses[o.slot]++
		}
	}
	add(&c.conduit)
	for i := range c.arguments {
		add(&c.arguments[i])
	}
	if c.each == nil {
		return
	}
	for i := range c.each.pattern {
		add(&c.each.pattern[i])
	}
	for i := range c.each.condition {
		c.each.condition[i].count(uses)
	}
}
