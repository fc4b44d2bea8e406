// SPDX-License-Identifier: BSD-2-Clause

package policy

// program is a clause that is prepared for evaluation: where each literal gets its values
// from is decided once. The order of a clause's literals is fixed, so it is known for each
// of them which variables have a value already.
type program struct {
	code  []instruction
	slots int // values of variables
}

// instruction is a literal of a program.
type instruction struct {
	op        operation
	arguments []operand
	relation  string
	conduit   operand
	complete  bool // a fact of which nothing is open
	each      *eachCode
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

// programs returns the rule's programs; ok is false if it has a literal that only the
// prover can show.
func (r *rule) programs() (programs []program, ok bool) {
	if compiled := r.compiled.Load(); compiled != nil {
		return compiled.programs, compiled.ok
	}
	compiled := &compiledRule{ok: true}
	for i := range r.clauses {
		a := assembler{known: make([]bool, r.clauses[i].variables)}
		code := a.body(r.clauses[i].body)
		compiled.programs = append(compiled.programs, program{code, r.clauses[i].variables})
		compiled.ok = compiled.ok && !a.failed
	}
	r.compiled.Store(compiled)
	return compiled.programs, compiled.ok
}

type compiledRule struct {
	programs []program
	ok       bool
}

// assembler makes a program.
type assembler struct {
	known  []bool // variables that have a value
	failed bool
}

func (a *assembler) body(body []literal) []instruction {
	code := make([]instruction, len(body))
	for i := range body {
		code[i] = a.instruction(&body[i])
	}
	return code
}

func (a *assembler) instruction(l *literal) instruction {
	code := instruction{op: l.op}
	switch l.op {
	case opHasPolicy, opAtLeast, opWillsay, opEachWillsay:
		a.failed = true
		return code
	}
	if l.content != nil {
		if l.content.positioned {
			a.failed = true
			return code
		}
		code.relation, code.conduit = l.content.relation, a.operand(l.content.conduit)
	}
	if l.op == opEach {
		code.each = a.each(l)
		return code
	}
	code.arguments = a.operands(l.arguments)
	code.complete = true
	for i := range code.arguments {
		code.complete = code.complete && !code.arguments[i].open()
	}
	return code
}

// operands also marks the variables that get a value.
func (a *assembler) operands(terms []Value) []operand {
	operands := make([]operand, len(terms))
	for i, term := range terms {
		operands[i] = a.operand(term)
		for j := range i {
			if operands[i].kind == operandBind && operands[j].kind == operandBind && operands[i].slot == operands[j].slot {
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
		inner, ok := a.excluded(l, &l.content.condition[i], &code.condition[i])
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

// excluded recognises a literal that decides an each without a walk.
func (a *assembler) excluded(l, inner *literal, code *instruction) (excluded, bool) {
	if !inner.op.relational() {
		return excluded{}, false
	}
	found := excluded{op: inner.op, left: code.arguments[0], right: code.arguments[1], simple: true}
	left, right := l.locals(inner.arguments[0]), l.locals(inner.arguments[1])
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

// locals reports whether a term is a variable of the each.
func (l *literal) locals(term Value) bool {
	return term.kind == kindVariable && int(term.number) >= l.content.localFrom && int(term.number) < l.content.localTo
}
