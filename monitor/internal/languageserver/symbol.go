// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"slices"
	"strings"

	"shai.dev/monitor/policy"
)

// symbolKind is what a word of a text is.
type symbolKind uint8

const (
	noSymbol symbolKind = iota
	variable
	parameter
	policyName // where it is declared or included
	predicate
	relation
	keyword
)

// symbol is a word with what it means, and where else in its text it means the same.
type symbol struct {
	kind  symbolKind
	name  string
	at    int   // its token
	among []int // its occurrences in the document, in order; the first of a parameter declares it
}

// symbolAt says what a token is.
func (d *document) symbolAt(number int) symbol {
	token := d.tokens[number]
	s := symbol{name: token.Text, at: number}
	around := d.declarationOf(number)
	switch {
	case around == nil:
	case token.Kind == policy.TokenVariable:
		if clause, ok := around.clauseOf(number); ok && token.Text != "_" {
			s.kind, s.among = variable, []int{number}
			if !isAnonymous(token.Text) {
				s.among = d.alike(clause, token)
			}
		}
	case token.Kind != policy.TokenName:
	case number == around.name || slices.Contains(around.includes, number):
		s.kind = policyName
	case isSymbol(d.tokens, number+1, "("):
		s.kind = predicate
		if isWord(d.tokens, number-1, "says") || isWord(d.tokens, number-1, "willsay") {
			s.kind = relation
		}
	case d.isParameter(around, number):
		s.kind, s.among = parameter, d.parameterUses(around, token.Text)
	case policy.IsReserved(token.Text):
		s.kind = keyword
	}
	return s
}

// isAnonymous reports whether a variable is another one in each place.
func isAnonymous(name string) bool { return strings.HasPrefix(name, "_") }

// alike lists the tokens of a span that are written like one.
func (d *document) alike(within span, token policy.Token) []int {
	var found []int
	for i := within.from; i < within.to; i++ {
		if d.tokens[i].Kind == token.Kind && d.tokens[i].Text == token.Text {
			found = append(found, i)
		}
	}
	return found
}

func (d *document) isParameter(of *declaration, number int) bool {
	name := d.tokens[number].Text
	return slices.ContainsFunc(of.parameters, func(at int) bool { return d.tokens[at].Text == name }) &&
		!isSymbol(d.tokens, number-1, ":") && !isSymbol(d.tokens, number-1, ".")
}

// parameterUses lists where a parameter is declared and used.
func (d *document) parameterUses(of *declaration, name string) []int {
	var found []int
	for i := of.from; i < of.to; i++ {
		token := d.tokens[i]
		if token.Kind == policy.TokenName && token.Text == name && i != of.name && !slices.Contains(of.includes, i) &&
			!isSymbol(d.tokens, i+1, "(") && !isSymbol(d.tokens, i-1, ".") && !isSymbol(d.tokens, i-1, ":") {
			found = append(found, i)
		}
	}
	return found
}

// policyUses lists where a document declares a policy, and where it includes it.
func (d *document) policyUses(name string) (declared, included []int) {
	for _, one := range d.outline {
		if one.name >= 0 && d.tokens[one.name].Text == name {
			declared = append(declared, one.name)
		}
		for _, at := range one.includes {
			if d.tokens[at].Text == name {
				included = append(included, at)
			}
		}
	}
	return declared, included
}
