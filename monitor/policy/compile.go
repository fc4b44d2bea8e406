// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
)

// Compile checks every policy of the file (predicates, arities, bound variables) and returns one
// template per declaration. They may include each other and those of the standard library. The
// error is an [Errors].
func (f *File) Compile() ([]*Template, error) { return CompileFiles(f) }

// CompileFiles compiles the policies of several files, which may include each other, and returns
// their templates in order. The error is an [Errors] with the mistakes of all files.
func CompileFiles(files ...*File) ([]*Template, error) {
	var templates []*Template
	var mistakes Errors
	for _, one := range compileAll(files) {
		templates = append(templates, one.template)
		mistakes = append(mistakes, one.mistakes...)
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return templates, nil
}

// CompileText parses a text that contains exactly one policy and compiles it. It may include
// policies of the standard library only.
func CompileText(filename string, text []byte) (*Template, error) {
	return compileText(filename, text, false)
}

// CompileAccepted is CompileText for a text that was accepted before, perhaps by an earlier
// version of this package: it does not refuse variables that are used once, which mean the same
// as `_`.
func CompileAccepted(filename string, text []byte) (*Template, error) {
	return compileText(filename, text, true)
}

func compileText(filename string, text []byte, accepted bool) (*Template, error) {
	file, err := ParseOne(filename, text)
	if err != nil {
		return nil, err
	}
	file.Accepted = accepted
	one := compileAll([]*File{file})[0]
	if len(one.mistakes) > 0 {
		return nil, one.mistakes
	}
	return one.template, nil
}

// ParseOne parses a text that contains exactly one policy. The error is an [Errors].
func ParseOne(filename string, text []byte) (*File, error) {
	file, err := Parse(filename, text)
	if err != nil {
		return nil, err
	}
	if len(file.Policies) != 1 {
		second := file.Policies[1]
		at := Range{second.Position, second.named.To}
		return nil, Errors{newError(filename, at, CodeSyntax, "exactly one", "", "the text holds %d policies",
			len(file.Policies))}
	}
	return file, nil
}

// compiled is the result for one declaration.
type compiled struct {
	file        *File
	declaration *Declaration
	template    *Template // of use only without mistakes
	mistakes    Errors
}

// compileAll compiles each declaration by itself, so that its own mistakes are reported where they
// stand, and those without mistakes once more with what they include.
func compileAll(files []*File) []compiled {
	var all []compiled
	composer := newComposer(files)
	for _, file := range files {
		for _, declaration := range file.Policies {
			one := compiled{file: file, declaration: declaration}
			one.compile(declaration.clauses)
			one.mistakes = append(one.mistakes, composer.mistakes(declaration)...)
			composer.broken[declaration] = len(one.mistakes) > 0
			all = append(all, one)
		}
	}
	composer.blame(all)
	for i := range all {
		if one := &all[i]; len(one.mistakes) == 0 && len(one.declaration.Includes) > 0 {
			one.compile(composer.flat(one.declaration))
		}
	}
	return all
}

func (one *compiled) compile(clauses []*clauseSyntax) {
	c := &compiler{file: one.file.Name, declaration: one.declaration, accepted: one.file.Accepted}
	one.template = c.template(clauses)
	one.mistakes = c.mistakes
}

// lowered is a clause whose predicates are resolved. Its parameters are still terms, and
// its body has the order of the source.
type lowered struct {
	body     []literal
	position Position
	end      Position
	names    []string // of its variables, by number
}

func (c lowered) rangeOf() Range { return Range{c.position, c.end} }

// loweredObligation is `isAsRestrictive(read, this.rule)` with the exits after it.
type loweredObligation struct {
	rule  ruleName
	exits []loweredExit
}

type loweredExit struct {
	condition lowered
	closed    func() closedCondition // nil if the condition has parameters
	behind    []loweredObligation
}

// compiler turns one declaration into a template.
type compiler struct {
	file        string
	declaration *Declaration
	accepted    bool // a variable that is used once is no mistake
	mistakes    Errors
	names       []string // of the current clause's variables, by number
	uses        []use    // of these variables
}

// use counts how often a clause mentions a variable, and where first.
type use struct {
	times int
	first Range
}

func (c *compiler) fail(at Range, code Code, expected, hint, format string, arguments ...any) {
	if len(c.mistakes) < maxMistakes {
		c.mistakes = append(c.mistakes, newError(c.file, at, code, expected, hint, format, arguments...))
	}
}

func (c *compiler) template(clauses []*clauseSyntax) *Template {
	t := &Template{name: c.declaration.Name, file: c.file, parameters: c.declaration.Parameters,
		types: c.declaration.Types, declaration: c.declaration}
	if len(c.declaration.Includes) > 0 {
		t.flat = c.declaration.flattened(clauses)
	}
	var alternatives [][]loweredObligation
	var last Range
	for _, clause := range clauses {
		switch clause.head {
		case readRule:
			t.read = append(t.read, c.clause(clause.body, clause.rangeOf()))
		case updateRule:
			t.update = append(t.update, c.clause(clause.body, clause.rangeOf()))
		case declassifyRule:
			alternatives = append(alternatives, c.flow(clause.body))
			last = clause.rangeOf()
		}
	}
	t.obligations = c.alternatives(alternatives, last)
	return t
}

// alternatives joins the declassify clauses. "R until A" or "R until B" is "R until A or
// B". Alternatives that restrict to different readers cannot be joined.
func (c *compiler) alternatives(clauses [][]loweredObligation, at Range) []loweredObligation {
	switch len(clauses) {
	case 0:
		return []loweredObligation{{rule: readRule}}
	case 1:
		return clauses[0]
	}
	joined := loweredObligation{}
	for i, obligations := range clauses {
		if len(obligations) == 0 {
			return nil
		}
		if len(obligations) > 1 || i > 0 && obligations[0].rule != joined.rule {
			c.fail(at, CodeDeclassify, "", "write one clause, or restrict every alternative to the same rule, once",
				"alternative declassify clauses restrict to different rules")
			return nil
		}
		joined.rule = obligations[0].rule
		joined.exits = append(joined.exits, obligations[0].exits...)
	}
	return []loweredObligation{joined}
}

// clause lowers a conjunction and checks that every variable is bound, and used.
func (c *compiler) clause(body []*literalSyntax, at Range) lowered {
	c.names, c.uses = nil, nil
	before := len(c.mistakes)
	result := lowered{position: at.From, end: at.To, body: c.body(body, c.scope(nil, body))}
	result.names = c.names
	if len(c.names) > MaxVariables {
		c.fail(at, CodeLimit, "", "divide the clause", "the clause has %d variables, the limit is %d", len(c.names),
			MaxVariables)
		c.mistakes[len(c.mistakes)-1].Limit = ErrTooManyVariables
		return result
	}
	if len(c.mistakes) == before {
		c.checkBound(result)
	}
	if len(c.mistakes) == before {
		c.checkUsed()
	}
	return result
}

// checkUsed reports variables that are mentioned once. Such a variable constrains nothing: in
// `F says friend(Q)` it admits anybody, if F has any friend.
func (c *compiler) checkUsed() {
	for number, use := range c.uses {
		if name := c.names[number]; name != "" && use.times == 1 && !c.accepted {
			c.fail(use.first, CodeUsedOnce, "", fmt.Sprintf("if any value will do, write _%s or _; otherwise use %s "+
				"in the literal that it was meant for", name, name),
				"variable %s is used once, so it restricts nothing", name)
		}
	}
}

// checkBound reports the literals for which a variable that they need is never bound.
func (c *compiler) checkBound(clause lowered) {
	plan := newPlanner(clause.names, false)
	_, stuck := plan.order(slices.Clone(clause.body))
	for _, literal := range stuck {
		variable := plan.missing(&literal)
		name, at := clause.names[variable], Range{literal.position, literal.end}
		switch {
		case name == "":
			c.fail(at, CodeUnbound, "a variable that another literal binds", "", "`_` cannot be bound in %s",
				signatures[literal.op].name)
		case literal.content != nil && literal.content.conduit == (Value{kind: kindVariable, number: variable}):
			c.fail(at, CodeUnbound, "", "name the conduit, or bind "+name+
				" with concat or eq; otherwise anybody's tuples would count",
				"variable %s, the conduit that says %s, is not bound", name, literal.content.relation)
		default:
			c.fail(at, CodeUnbound, "", "bind it with a positive predicate such as sKeyIs("+name+
				") or \"conduit\" says t("+name+")",
				"variable %s is not bound", name)
		}
	}
}

// scope maps the variable names visible at one level to numbers.
type scope struct {
	parent *scope
	names  map[string]int64
}

func (s *scope) find(name string) (int64, bool) {
	for ; s != nil; s = s.parent {
		if number, found := s.names[name]; found {
			return number, true
		}
	}
	return 0, false
}

func (c *compiler) variable(name string) Value {
	c.names = append(c.names, name)
	c.uses = append(c.uses, use{})
	return Value{kind: kindVariable, number: int64(len(c.names) - 1)}
}

// scope opens a level and declares the variables that occur directly in its literals.
// Variables that occur only inside an each are local to it.
func (c *compiler) scope(parent *scope, body []*literalSyntax) *scope {
	level := &scope{parent: parent, names: make(map[string]int64)}
	for _, literal := range body {
		c.declare(level, literal)
	}
	return level
}

func (c *compiler) declare(level *scope, literal *literalSyntax) {
	terms := []termSyntax{literal.conduit}
	switch {
	case literal.form == groupForm:
		for _, inner := range literal.inner {
			c.declare(level, inner)
		}
	case literal.rangeEnd != nil:
		terms = append(terms, *literal.offset, *literal.rangeEnd)
	case literal.offset != nil && literal.form != eachForm:
		terms = append(terms, *literal.offset)
	}
	if literal.form != eachForm {
		terms = append(terms, literal.arguments...)
	}
	for _, term := range terms {
		c.declareTerm(level, term)
	}
}

func (c *compiler) declareTerm(level *scope, term termSyntax) {
	isVariable := term.form == variableTerm || term.form == referenceTerm && term.name != "" && term.name != "this"
	if isVariable {
		if _, known := level.find(term.name); !known {
			level.names[term.name] = c.variable(term.name).number
		}
	}
}

func (c *compiler) body(body []*literalSyntax, level *scope) []literal {
	var literals []literal
	for _, item := range body {
		switch item.form {
		case predicateForm:
			literals = append(literals, c.predicate(item, level))
		case saysForm:
			literals = append(literals, c.says(item, level))
		case eachForm:
			literals = append(literals, c.each(item, level))
		case groupForm:
			literals = append(literals, c.body(item.inner, level)...)
		case untilForm:
			word := Position{item.position.Line, item.position.Column + int32(len("until"))}
			c.fail(Range{item.position, word}, CodeSyntax,
				"", "only declassify relaxes over time", "`until` does not belong here")
		}
	}
	return literals
}
