// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
)

// Compile checks every policy of the file (predicates, arities, bound variables)
// and returns one template per declaration. The error is an [Errors].
func (f *File) Compile() ([]*Template, error) {
	var templates []*Template
	var mistakes Errors
	for _, declaration := range f.Policies {
		c := &compiler{file: f.Name, declaration: declaration}
		templates = append(templates, c.template())
		mistakes = append(mistakes, c.mistakes...)
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return templates, nil
}

// CompileText parses a text that contains exactly one policy and compiles it.
func CompileText(filename string, text []byte) (*Template, error) {
	file, err := Parse(filename, text)
	if err != nil {
		return nil, err
	}
	if len(file.Policies) != 1 {
		second := file.Policies[1].Position
		return nil, Errors{{File: filename, Line: int(second.Line), Column: int(second.Column),
			Message: fmt.Sprintf("the text holds %d policies", len(file.Policies)), Expected: "exactly one"}}
	}
	templates, err := file.Compile()
	if err != nil {
		return nil, err
	}
	return templates[0], nil
}

// lowered is a clause whose predicates are resolved. Its parameters are still terms, and
// its body has the order of the source.
type lowered struct {
	body     []literal
	position Position
	names    []string // of its variables, by number
}

// loweredObligation is `isAsRestrictive(read, this.rule)` with the exits after it.
type loweredObligation struct {
	rule  ruleName
	exits []loweredExit
}

type loweredExit struct {
	condition lowered
	behind    []loweredObligation
}

// compiler turns one declaration into a template.
type compiler struct {
	file        string
	declaration *Declaration
	mistakes    Errors
	names       []string // of the current clause's variables, by number
}

func (c *compiler) fail(position Position, expected, hint, format string, arguments ...any) {
	if len(c.mistakes) < maxMistakes {
		c.mistakes = append(c.mistakes, &Error{File: c.file, Line: int(position.Line), Column: int(position.Column),
			Message: fmt.Sprintf(format, arguments...), Expected: expected, Hint: hint})
	}
}

func (c *compiler) template() *Template {
	t := &Template{name: c.declaration.Name, file: c.file, parameters: c.declaration.Parameters,
		types: c.declaration.Types}
	var alternatives [][]loweredObligation
	var last Position
	for _, clause := range c.declaration.clauses {
		switch clause.head {
		case readRule:
			t.read = append(t.read, c.clause(clause.body, clause.position))
		case updateRule:
			t.update = append(t.update, c.clause(clause.body, clause.position))
		case declassifyRule:
			alternatives = append(alternatives, c.flow(clause.body))
			last = clause.position
		}
	}
	t.obligations = c.alternatives(alternatives, last)
	return t
}

// alternatives joins the declassify clauses. "R until A" or "R until B" is "R until A or
// B". Alternatives that restrict to different readers cannot be joined.
func (c *compiler) alternatives(clauses [][]loweredObligation, position Position) []loweredObligation {
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
			c.fail(position, "", "write one clause, or restrict every alternative to the same rule, once",
				"alternative declassify clauses restrict to different rules")
			return nil
		}
		joined.rule = obligations[0].rule
		joined.exits = append(joined.exits, obligations[0].exits...)
	}
	return []loweredObligation{joined}
}

// clause lowers a conjunction and checks that every variable is bound.
func (c *compiler) clause(body []*literalSyntax, position Position) lowered {
	c.names = nil
	result := lowered{position: position, body: c.body(body, c.scope(nil, body))}
	result.names = c.names
	if len(c.names) > MaxVariables {
		c.fail(position, "", "", "the clause has %d variables, the limit is %d", len(c.names), MaxVariables)
		c.mistakes[len(c.mistakes)-1].Limit = ErrTooManyVariables
		return result
	}
	if len(c.mistakes) == 0 {
		c.checkBound(result)
	}
	return result
}

// checkBound reports the literals for which a variable that they need is never bound.
func (c *compiler) checkBound(clause lowered) {
	plan := newPlanner(clause.names, false)
	_, stuck := plan.order(slices.Clone(clause.body))
	for _, literal := range stuck {
		variable := plan.missing(&literal)
		name := clause.names[variable]
		switch {
		case name == "":
			c.fail(literal.position, "a variable that another literal binds", "", "`_` cannot be bound in %s",
				signatures[literal.op].name)
		case literal.content != nil && literal.content.conduit == (Value{kind: kindVariable, number: variable}):
			c.fail(literal.position, "", "name the conduit, or bind "+name+
				" with concat or eq; otherwise anybody's tuples would count",
				"variable %s, the conduit that says %s, is not bound", name, literal.content.relation)
		default:
			c.fail(literal.position, "", "bind it with a positive predicate such as sKeyIs("+name+
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
			c.fail(item.position, "", "only declassify relaxes over time", "`until` does not belong here")
		}
	}
	return literals
}

func (c *compiler) predicate(item *literalSyntax, level *scope) literal {
	op := predicates[item.name]
	if op == opInvalid {
		hint := "if it is a fact, say whose: `\"conduit\" says " + item.name + "(…)`"
		if closest := nearest(item.name, predicateNames); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(item.position, "", hint, "unknown predicate `%s`", item.name)
		return literal{}
	}
	known := signatures[op]
	if len(item.arguments) != known.arity {
		c.fail(item.position, fmt.Sprintf("%d", known.arity), "", "%s has %d arguments", item.name, len(item.arguments))
		return literal{}
	}
	result := literal{op: op, position: item.position}
	if op == opAtLeast {
		result.references = &[2]reference{c.reference(item.arguments[0], level), c.reference(item.arguments[1], level)}
		if (result.references[0].rule == declassifyRule) != (result.references[1].rule == declassifyRule) {
			c.fail(item.position, "two declassify rules, or two of read and update", "",
				"%s compares rules of different kinds", item.name)
		}
		return result
	}
	for i, argument := range item.arguments {
		if argument.form == nameTerm && known.words != nil && i == known.word &&
			!slices.Contains(c.declaration.Parameters, argument.name) {
			result.arguments = append(result.arguments, c.word(argument, known))
			continue
		}
		result.arguments = append(result.arguments, c.term(argument, level))
	}
	if op == opPrefix && result.arguments[1].kind == StringValue {
		if _, ok := parsePrefix(result.arguments[1]); !ok {
			c.fail(item.arguments[1].position, `an address prefix such as "10.0.0.0/8"`, "", "%s is no address prefix",
				result.arguments[1])
		}
	}
	return result
}

func (c *compiler) word(argument termSyntax, known signature) Value {
	if !slices.Contains(known.words, argument.name) {
		hint := ""
		if closest := nearest(argument.name, known.words); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(argument.position, fmt.Sprintf("one of %v", known.words), hint, "%s does not know `%s`", known.name,
			argument.name)
	}
	return String(argument.name)
}

func (c *compiler) reference(argument termSyntax, level *scope) reference {
	if argument.form != referenceTerm {
		c.fail(argument.position, "a rule such as `read`, `this.read` or `P.read`", "", "%s is no rule", argument)
		return reference{}
	}
	result := reference{rule: argument.rule}
	switch argument.name {
	case "":
	case "this":
		result.base = Value{kind: kindThis}
	default:
		number, _ := level.find(argument.name)
		result.base = Value{kind: kindVariable, number: number}
	}
	return result
}

func (c *compiler) says(item *literalSyntax, level *scope) literal {
	result := literal{op: opSays, position: item.position,
		content: &content{relation: item.name, conduit: c.conduit(item.conduit, level)}}
	if item.willsay {
		result.op = opWillsay
	}
	if item.offset != nil {
		result.content.positioned = true
		result.content.offset = c.term(*item.offset, level)
	}
	for _, argument := range item.arguments {
		result.arguments = append(result.arguments, c.term(argument, level))
	}
	return result
}

func (c *compiler) conduit(term termSyntax, level *scope) Value {
	value := c.term(term, level)
	if value.kind == IntegerValue || value.kind == TimeValue || value == String("") {
		c.fail(term.position, "a conduit's name", "", "%s cannot say anything", term)
	}
	return value
}

func (c *compiler) each(item *literalSyntax, level *scope) literal {
	result := literal{op: opEach, position: item.position,
		content: &content{relation: item.name, conduit: c.conduit(item.conduit, level), positioned: item.offset != nil}}
	if item.willsay {
		result.op = opEachWillsay
	}
	if item.rangeEnd != nil {
		result.content.offset, result.content.rangeEnd = c.term(*item.offset, level), c.term(*item.rangeEnd, level)
	}
	inner := &scope{parent: level, names: make(map[string]int64)}
	result.content.localFrom = len(c.names)
	if item.offset != nil && item.rangeEnd == nil {
		c.declareTerm(inner, *item.offset)
		result.content.offset = c.term(*item.offset, inner)
	}
	for _, argument := range item.arguments {
		c.declareTerm(inner, argument)
		result.arguments = append(result.arguments, c.term(argument, inner))
	}
	result.content.patternTo = len(c.names)
	result.content.condition = c.body(item.inner, c.scope(inner, item.inner))
	result.content.localTo = len(c.names)
	return result
}

func (c *compiler) term(term termSyntax, level *scope) Value {
	switch term.form {
	case constantTerm:
		return term.value
	case anonymousTerm:
		return c.variable("")
	case thisTerm:
		return Value{kind: kindThis}
	case variableTerm:
		if number, found := level.find(term.name); found {
			return Value{kind: kindVariable, number: number}
		}
		return c.variable(term.name)
	case nameTerm:
		if i := slices.Index(c.declaration.Parameters, term.name); i >= 0 {
			return Value{kind: kindParameter, number: int64(i)}
		}
		hint := "strings stand in double quotes, variables begin with a capital"
		if closest := nearest(term.name, c.declaration.Parameters); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(term.position, "a declared parameter", hint, "unknown name `%s`", term.name)
	case referenceTerm:
		c.fail(term.position, "a value", "rules are compared with isAsRestrictive only", "the rule %s is no value",
			term)
	}
	return Value{}
}
