// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"strings"
)

// maxMistakes is the number of errors after which Parse stops.
const maxMistakes = 20

// Parse reads a policy file. filename is only used in messages. The error is an [Errors]
// with every error found. [File.Compile] checks whether predicates exist and variables
// are bound.
func Parse(filename string, text []byte) (*File, error) {
	file, mistakes := ParseAll(filename, text)
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return file, nil
}

// ParseAll is Parse for programs that show a text while it is written: with mistakes, the file has
// what could be read nevertheless.
func ParseAll(filename string, text []byte) (*File, Errors) {
	if len(text) > MaxText {
		first := Range{Position{1, 1}, Position{1, 1}}
		return &File{Name: filename}, Errors{newError(filename, first, CodeLimit, "", "divide it into several files",
			"the text has more than %d bytes", MaxText).limited(ErrTextTooLong)}
	}
	if isUTF16(text) {
		first := Range{Position{1, 1}, Position{1, 1}}
		return &File{Name: filename}, Errors{newError(filename, first, CodeSyntax, "", "save the file as UTF-8",
			"the text is UTF-16")}
	}
	p := &parser{lexer: lexer{filename: filename, text: string(text), line: 1}}
	p.advance()
	return p.file(), p.mistakes
}

// isUTF16 reports whether a text begins as one of UTF-16 does: with its mark, or with a character of two bytes.
func isUTF16(text []byte) bool {
	return len(text) > 1 && (text[0] == 0xff && text[1] == 0xfe || text[0] == 0xfe && text[1] == 0xff ||
		(text[0] == 0) != (text[1] == 0))
}

// parser is a recursive descent parser with one token of look-ahead. Methods that find an
// error record it and panic with abandoned. The clause and declaration levels recover and
// continue after the next full stop or brace.
type parser struct {
	lexer    lexer
	token    token
	previous token
	mistakes Errors
	depth    int
	literals int
}

type abandoned struct{}

func (p *parser) advance() {
	p.previous = p.token
	for {
		next, mistake := p.lexer.next()
		if mistake == nil {
			p.token = next
			return
		}
		p.record(mistake)
		if next.text != "" {
			p.token = next
			return
		}
	}
}

func (p *parser) record(mistake *Error) {
	p.mistakes = append(p.mistakes, mistake)
	if len(p.mistakes) >= maxMistakes {
		// Later errors would only repeat what is reported already.
		p.lexer.offset = len(p.lexer.text)
		p.token = token{position: p.token.position}
	}
}

func (p *parser) fail(position Position, expected, hint, format string, arguments ...any) {
	p.record(p.mistake(position, expected, hint, format, arguments...))
	panic(abandoned{})
}

// mistake returns an error at a token. A token of another language gets the hint how this one
// says it.
func (p *parser) mistake(position Position, expected, hint, format string, arguments ...any) *Error {
	at := Range{position, position}
	for _, token := range []token{p.previous, p.token} {
		if token.position == position {
			at = token.rangeOf()
		}
	}
	if foreign := foreignHints[p.token.text]; foreign != "" && p.token.position == position &&
		p.token.kind != valueToken {
		hint = foreign
	}
	return newError(p.lexer.filename, at, CodeSyntax, expected, hint, format, arguments...)
}

func (p *parser) failLimit(position Position, limit error, format string, arguments ...any) {
	p.record(p.mistake(position, "", "use fewer of them, or divide the policy", format, arguments...).limited(limit))
	panic(abandoned{})
}

// attempt runs parse and reports whether it finished.
func (p *parser) attempt(parse func()) (finished bool) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(abandoned); !ours {
				panic(thrown)
			}
		}
	}()
	parse()
	return true
}

func (p *parser) at(text string) bool {
	return p.token.text == text && (p.token.kind == symbolToken || p.token.kind == nameToken)
}

func (p *parser) accept(text string) bool {
	if p.at(text) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(text, context string) {
	if !p.accept(text) {
		p.fail(p.token.position, "`"+text+"` "+context, "", "unexpected %s", p.token)
	}
}

// comments returns the comments seen so far and forgets them.
func (p *parser) comments() []string {
	taken := p.lexer.comments
	p.lexer.comments = nil
	return taken
}

func (p *parser) file() *File {
	file := &File{Name: p.lexer.filename}
	switch {
	case p.at("policy"):
		for p.token.kind != endOfText {
			p.attempt(func() { p.declaration(file) })
		}
	case p.token.kind == endOfText:
		p.record(p.mistake(p.token.position, "`policy` or a clause such as `read :- sKeyIs(\"alice\").`", "",
			"the text holds no policy"))
	default:
		bare := &Declaration{Position: p.token.position}
		p.clauses(bare, endOfText)
		file.Policies = append(file.Policies, bare)
	}
	file.trailing = p.comments()
	return file
}

func (p *parser) declaration(file *File) {
	declaration := &Declaration{Position: p.token.position, comments: p.comments()}
	if !p.at("policy") {
		position, found := p.token.position, p.token
		for p.token.kind != endOfText && !p.at("policy") {
			p.advance()
		}
		p.fail(position, "`policy`", "a file holds either policy blocks or bare clauses", "unexpected %s", found)
	}
	p.advance()
	if p.token.kind != nameToken {
		p.skipBlock()
		p.fail(p.previous.position, "a name that begins with a lower-case letter", "", "the policy has no name")
	}
	declaration.Name, declaration.named = p.token.text, p.token.rangeOf()
	if strings.HasPrefix(declaration.Name, LibraryPrefix) {
		p.record(p.mistake(p.token.position, "", "declare it under another name, and include that one",
			"policies called %s… are those of the standard library", LibraryPrefix))
	}
	for _, earlier := range file.Policies {
		if earlier.Name == declaration.Name {
			p.record(p.mistake(p.token.position, "", "rename one of them",
				"policy %s is declared twice, first on line %d", declaration.Name, earlier.Position.Line))
		}
	}
	p.advance()
	if !p.attempt(func() { p.parameters(declaration) }) {
		p.skipBlock()
		panic(abandoned{})
	}
	p.clauses(declaration, symbolToken)
	file.Policies = append(file.Policies, declaration)
}

func (p *parser) skipBlock() {
	for p.token.kind != endOfText && !p.at("}") && !p.at("policy") {
		p.advance()
	}
	p.accept("}")
}

func (p *parser) parameters(declaration *Declaration) {
	if p.accept("(") {
		for {
			if p.token.kind != nameToken {
				p.fail(p.token.position, "a parameter name that begins with a lower-case letter", "", "unexpected %s",
					p.token)
			}
			name := p.token.text
			if reserved[name] || strings.Contains(name, "/") {
				p.fail(p.token.position, "another name", "", "the word %s cannot name a parameter", name)
			}
			if slices.Contains(declaration.Parameters, name) {
				p.fail(p.token.position, "", "rename one of them", "parameter %s is declared twice", name)
			}
			if len(declaration.Parameters) == MaxArguments {
				p.failLimit(p.token.position, ErrTooManyArguments, "the policy has more than %d parameters",
					MaxArguments)
			}
			declaration.parameters = append(declaration.parameters, p.token.rangeOf())
			p.advance()
			declaration.Parameters = append(declaration.Parameters, name)
			declaration.Types = append(declaration.Types, p.parameterType())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")", "after the parameters")
	}
	p.includes(declaration)
	p.expect("{", "before the clauses")
}

// includes reads `includes friends(owner), library/public`, if it is there.
func (p *parser) includes(declaration *Declaration) {
	if !p.accept("includes") {
		return
	}
	for {
		if p.token.kind != nameToken || reserved[p.token.text] {
			p.fail(p.token.position, "the name of a policy, such as friends(owner) or library/public", "", "unexpected %s",
				p.token)
		}
		if len(declaration.Includes) == MaxIncludes {
			p.failLimit(p.token.position, ErrTooManyIncludes, "the policy includes more than %d others", MaxIncludes)
		}
		include := Include{Name: p.token.text, Range: p.token.rangeOf()}
		p.advance()
		if p.at("(") {
			include.arguments = p.arguments()
		}
		declaration.Includes = append(declaration.Includes, include)
		if !p.accept(",") {
			return
		}
	}
}

// parameterType reads the optional type after a parameter's name: `: time`.
func (p *parser) parameterType() ValueKind {
	if !p.accept(":") {
		return StringValue
	}
	for kind, name := range typeNames {
		if name != "" && p.accept(name) {
			return ValueKind(kind)
		}
	}
	p.fail(p.token.position, "`string`, `integer` or `time`", "", "unexpected %s as a parameter's type", p.token)
	return Wildcard
}

// clauses reads up to `}`, or, without a block, up to the end of the text.
func (p *parser) clauses(declaration *Declaration, closing tokenKind) {
	for {
		switch {
		case closing == symbolToken && p.at("}"):
			declaration.trailing = p.comments()
			p.advance()
			return
		case p.token.kind == endOfText:
			if closing == symbolToken {
				p.record(p.mistake(p.token.position, "`}`", "", "the block of policy %s is not closed",
					declaration.Name))
			}
			return
		}
		from := p.token.position
		if !p.attempt(func() { p.clause(declaration) }) {
			p.resume()
			if p.token.position == from {
				p.advance() // such as an unmatched closing brace
			}
		}
	}
}

// resume moves past the clause with an error: past its full stop (which, unlike the one
// in this.read, follows a closing sign), or to the next head.
func (p *parser) resume() {
	for p.token.kind != endOfText && !p.at("}") {
		switch before := p.previous.text; before {
		case ")", "}", "true":
			if p.accept(".") {
				return
			}
		case "(", ",", ".", "until":
		default:
			if _, head := parseRuleName(p.token.text); head && p.token.kind == nameToken {
				return
			}
		}
		p.advance()
	}
}

func (p *parser) clause(declaration *Declaration) {
	clause := &clauseSyntax{position: p.token.position}
	head, known := parseRuleName(p.token.text)
	if p.token.kind != nameToken || !known {
		hint := headHints[p.token.text]
		if closest := nearest(p.token.text, ruleNames[:]); hint == "" && closest != "" {
			hint = "did you mean " + closest + "?"
		} else if p.at("policy") {
			hint = "a file holds either policy blocks or bare clauses; is a `}` missing?"
		}
		p.fail(p.token.position, "a rule: `read`, `update` or `declassify`", hint, "unexpected %s", p.token)
	}
	clause.head = head
	if len(declaration.clauses) == MaxClauses {
		p.failLimit(p.token.position, ErrTooManyClauses, "the policy has more than %d clauses", MaxClauses)
	}
	p.advance()
	if p.at(".") {
		p.fail(p.token.position, "`:-`", "a rule that always holds is written `"+head.String()+" :- true.`",
			"the clause has no body")
	}
	p.expect(":-", "after "+head.String())
	p.literals = 0
	clause.body = p.body()
	if !p.at(".") {
		p.fail(p.token.position, "`,` and another literal, or `.` at the clause's end", "", "unexpected %s", p.token)
	}
	clause.comments = p.comments()
	clause.end = p.token.rangeOf().To
	p.advance()
	declaration.clauses = append(declaration.clauses, clause)
}
