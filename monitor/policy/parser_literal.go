// SPDX-License-Identifier: BSD-2-Clause

package policy

import "strings"

// body reads literals separated by commas, and the untils between them.
func (p *parser) body() []*literalSyntax {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > MaxDepth {
		p.failLimit(p.token.position, ErrTooDeep, "more than %d levels of nesting", MaxDepth)
	}
	var literals []*literalSyntax
	for {
		if literal := p.literal(); literal != nil {
			literals = append(literals, literal)
		}
		if !p.accept(",") {
			break
		}
	}
	if p.at("until") {
		until := &literalSyntax{position: p.token.position, form: untilForm, left: literals}
		p.advance()
		until.inner = p.body()
		until.end = p.previous.rangeOf().To
		return []*literalSyntax{until}
	}
	return literals
}

// literal reads one literal. It returns nil for true.
func (p *parser) literal() (literal *literalSyntax) {
	p.literals++
	if p.literals > MaxLiterals {
		p.failLimit(p.token.position, ErrTooManyLiterals, "the clause has more than %d literals", MaxLiterals)
	}
	literal = &literalSyntax{position: p.token.position}
	defer func() {
		if literal != nil {
			literal.end = p.previous.rangeOf().To
		}
	}()
	switch {
	case p.accept("true"):
		return nil
	case p.accept("("):
		literal.form = groupForm
		literal.inner = p.body()
		p.expect(")", "to close the group")
	case p.at("each"):
		p.each(literal)
	case p.token.kind == nameToken && !reserved[p.token.text] && foreignHints[p.token.text] == "":
		p.predicateOrSays(literal)
	case p.at("this"), p.token.kind == variableToken, p.token.kind == valueToken:
		literal.conduit = p.term()
		p.says(literal)
	default:
		p.fail(p.token.position, "a predicate such as `sKeyIs(K)`, or `C says t(X)`", "", "unexpected %s", p.token)
	}
	return literal
}

// predicateOrSays decides by the token after the name: a parenthesis begins a predicate's
// arguments, any other token makes the name the conduit that says.
func (p *parser) predicateOrSays(literal *literalSyntax) {
	name := p.token
	p.advance()
	if p.at("(") {
		literal.name = name.text
		literal.arguments = p.arguments()
		return
	}
	literal.conduit = termSyntax{position: name.position, form: nameTerm, name: name.text}
	p.says(literal)
}

func (p *parser) each(literal *literalSyntax) {
	literal.form = eachForm
	p.advance()
	p.expect("in", "after each")
	literal.conduit = p.term()
	p.place(literal)
	p.verb(literal)
	p.expect("{", "before the condition that each tuple has to meet")
	literal.inner = p.body()
	p.expect("}", "after the condition")
}

func (p *parser) says(literal *literalSyntax) {
	literal.form = saysForm
	p.place(literal)
	if literal.rangeEnd != nil {
		p.fail(literal.rangeEnd.position, "one offset", "a range belongs into `each in C@From..To says …`",
			"a range does not fit here")
	}
	p.verb(literal)
}

// place reads an optional @offset or @from..to.
func (p *parser) place(literal *literalSyntax) {
	if !p.accept("@") {
		return
	}
	offset := p.term()
	literal.offset = &offset
	if p.accept("..") {
		rangeEnd := p.term()
		literal.rangeEnd = &rangeEnd
	}
}

func (p *parser) verb(literal *literalSyntax) {
	switch {
	case p.accept("says"):
	case p.accept("willsay"):
		literal.willsay = true
	default:
		hint := ""
		if strings.HasPrefix(p.token.text, "say") || strings.HasPrefix(p.token.text, "will") {
			hint = "did you mean says or willsay?"
		}
		p.fail(p.token.position, "`says` or `willsay` after the conduit", hint, "unexpected %s", p.token)
	}
	if p.token.kind != nameToken || reserved[p.token.text] {
		p.fail(p.token.position, "a relation such as `friend(K)`", "", "unexpected %s", p.token)
	}
	literal.name = p.token.text
	p.advance()
	literal.arguments = p.arguments()
}

func (p *parser) arguments() []termSyntax {
	position := p.token.position
	p.expect("(", "before the arguments")
	var arguments []termSyntax
	if p.accept(")") {
		return nil
	}
	for {
		if len(arguments) == MaxArguments {
			p.failLimit(position, ErrTooManyArguments, "more than %d arguments", MaxArguments)
		}
		arguments = append(arguments, p.term())
		if !p.accept(",") {
			break
		}
	}
	if !p.accept(")") {
		p.fail(p.token.position, "`,` and another argument, or `)`", "", "unexpected %s", p.token)
	}
	return arguments
}

func (p *parser) term() (term termSyntax) {
	term = termSyntax{position: p.token.position, name: p.token.text, value: p.token.value}
	defer func() { term.end = p.previous.rangeOf().To }()
	switch p.token.kind {
	case valueToken:
		term.name = ""
		p.advance()
		return term
	case anonymousToken:
		term.form = anonymousTerm
		p.advance()
		return term
	case variableToken:
		term.form = variableTerm
	case nameToken:
		term.form = nameTerm
		if rule, isRule := parseRuleName(term.name); isRule {
			term.form, term.rule, term.name = referenceTerm, rule, ""
		} else if term.name == "this" {
			term.form = thisTerm
		}
	default:
		p.fail(p.token.position, "a variable, a string, a number, a time, a parameter or `this`", "", "unexpected %s",
			p.token)
	}
	p.advance()
	if term.form != referenceTerm && p.at(".") && (term.form == variableTerm || term.form == thisTerm) {
		p.advance()
		rule, isRule := parseRuleName(p.token.text)
		if !isRule {
			p.fail(p.token.position, "`read`, `update` or `declassify`", "", "unexpected %s after %s.", p.token,
				term.name)
		}
		term.form, term.rule = referenceTerm, rule
		p.advance()
	}
	return term
}
