// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// substitution copies clauses with arguments in place of parameters. What is copied stands where
// the include stands, an argument where the include has it.
type substitution struct {
	parameters []string
	arguments  []termSyntax
	at         Range
}

func (s *substitution) clauses(clauses []*clauseSyntax) []*clauseSyntax {
	copies := make([]*clauseSyntax, len(clauses))
	for i, clause := range clauses {
		copies[i] = &clauseSyntax{position: s.at.From, end: s.at.To, head: clause.head, comments: clause.comments,
			body: s.body(clause.body)}
	}
	return copies
}

// size returns about how many bytes the text of the copies would have. It copies nothing.
func (s *substitution) size(clauses []*clauseSyntax) (bytes int) {
	for _, clause := range clauses {
		bytes += len(" :- .") + s.sizeOf(clause.body)
		for _, comment := range clause.comments {
			bytes += len(comment)
		}
	}
	return bytes
}

func (s *substitution) sizeOf(body []*literalSyntax) (bytes int) {
	for _, l := range body {
		bytes += len(l.name) + len("(), ") + s.sizeOf(l.left) + s.sizeOf(l.inner)
		for _, argument := range append(l.arguments[:len(l.arguments):len(l.arguments)], l.conduit) {
			argument = s.term(argument, nil)
			bytes += len(argument.name) + len(argument.value.text) + len(`"", `)
		}
	}
	return bytes
}

func (s *substitution) body(body []*literalSyntax) []*literalSyntax {
	copies := make([]*literalSyntax, len(body))
	for i, literal := range body {
		copies[i] = s.literal(literal)
	}
	return copies
}

func (s *substitution) literal(l *literalSyntax) *literalSyntax {
	replaced := *l
	replaced.position, replaced.end = s.at.From, s.at.To
	replaced.conduit = s.term(l.conduit, nil)
	replaced.offset, replaced.rangeEnd = s.optional(l.offset), s.optional(l.rangeEnd)
	var words []string
	if l.form == predicateForm {
		words = signatures[predicates[l.name]].words
	}
	replaced.arguments = slices.Clone(l.arguments)
	for i, argument := range l.arguments {
		replaced.arguments[i] = s.term(argument, words)
	}
	replaced.left, replaced.inner = s.body(l.left), s.body(l.inner)
	return &replaced
}

func (s *substitution) optional(term *termSyntax) *termSyntax {
	if term == nil {
		return nil
	}
	replaced := s.term(*term, nil)
	return &replaced
}

// term replaces a parameter. A word such as output becomes a text, so that it is not taken for a
// parameter of the including policy that has the same name.
func (s *substitution) term(term termSyntax, words []string) termSyntax {
	replaced := term
	if term.form == nameTerm {
		if i := slices.Index(s.parameters, term.name); i >= 0 {
			return s.arguments[i]
		}
		if slices.Contains(words, term.name) {
			replaced = termSyntax{form: constantTerm, value: String(term.name)}
		}
	}
	replaced.position, replaced.end = s.at.From, s.at.To
	return replaced
}
