// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"encoding/binary"
	"slices"
	"strings"
)

// clause is a compiled conjunction. Its variables are numbered from 0 in the order in
// which the body, read from left to right, first mentions them. The body is ordered so
// that the variables that a literal needs are bound before it.
type clause struct {
	body      []literal
	variables int
	position  Position
	names     []string // of the variables, for people; not part of the meaning
}

// literal is one compiled literal. Its terms are Values, of unexported kinds if they are
// not constants.
type literal struct {
	op         operation
	position   Position
	end        Position
	arguments  []Value
	content    *content      // says, willsay, each
	references *[2]reference // isAsRestrictive
}

// content holds the parts that only literals about tuples have.
type content struct {
	relation   string
	conduit    Value
	positioned bool
	offset     Value     // zero when the position does not matter
	rangeEnd   Value     // zero, or the tuple's offset is in [offset, rangeEnd)
	condition  []literal // of each
	// locals of an each are the variables numbered from localFrom up to, not including,
	// localTo: first those of the pattern, which each tuple binds in turn, then those of
	// the condition.
	localFrom, patternTo, localTo int
}

// reference names a rule: of the conduit that is written (base is zero), of the policy
// itself (this), or of a policy from hasPol (a variable).
type reference struct {
	base Value
	rule ruleName
}

func (c *content) isRange() bool { return c.rangeEnd.kind != Wildcard }

func (l *literal) rangeOf() Range { return Range{l.position, l.end} }

func (l *literal) isEach() bool { return l.op == opEach || l.op == opEachWillsay }

// terms calls visit with every term of the literal at its own level: for an each, with
// its conduit and range, but not with those of its pattern and condition.
func (l *literal) terms(visit func(term Value)) {
	if l.content != nil {
		visit(l.content.conduit)
		if !l.isEach() || l.content.isRange() {
			visit(l.content.offset)
			visit(l.content.rangeEnd)
		}
	}
	if !l.isEach() {
		for _, argument := range l.arguments {
			visit(argument)
		}
	}
	if l.references != nil {
		visit(l.references[0].base)
		visit(l.references[1].base)
	}
}

// allTerms also visits the terms inside an each.
func (l *literal) allTerms(visit func(term Value)) {
	l.terms(visit)
	if !l.isEach() {
		return
	}
	visit(l.content.offset)
	for _, argument := range l.arguments {
		visit(argument)
	}
	for i := range l.content.condition {
		l.content.condition[i].allTerms(visit)
	}
}

// replace returns the literal with every term mapped. Parts that do not change are shared
// with the original, so that bound policies stay small.
func (l literal) replace(mapping func(Value) Value) literal {
	l.arguments = replaceTerms(l.arguments, mapping)
	if l.content != nil {
		l.content = l.content.replace(mapping)
	}
	if l.references != nil {
		first, second := l.references[0], l.references[1]
		first.base, second.base = mapping(first.base), mapping(second.base)
		if changed := [2]reference{first, second}; changed != *l.references {
			l.references = &changed
		}
	}
	return l
}

func replaceTerms(terms []Value, mapping func(Value) Value) []Value {
	var changed []Value
	for i, term := range terms {
		replaced := mapping(term)
		if replaced != term && changed == nil {
			changed = slices.Clone(terms)
		}
		if changed != nil {
			changed[i] = replaced
		}
	}
	if changed == nil {
		return terms
	}
	return changed
}

func (c *content) replace(mapping func(Value) Value) *content {
	replaced := *c
	replaced.conduit, replaced.offset, replaced.rangeEnd = mapping(c.conduit), mapping(c.offset), mapping(c.rangeEnd)
	changed := replaced.conduit != c.conduit || replaced.offset != c.offset || replaced.rangeEnd != c.rangeEnd
	var condition []literal
	for i := range c.condition {
		inner := c.condition[i].replace(mapping)
		if condition == nil && !inner.same(&c.condition[i]) {
			condition = slices.Clone(c.condition)
		}
		if condition != nil {
			condition[i] = inner
		}
	}
	if condition != nil {
		replaced.condition, changed = condition, true
	}
	if !changed {
		return c
	}
	return &replaced
}

// same reports whether replace has shared all parts.
func (l *literal) same(other *literal) bool {
	return l.content == other.content && l.references == other.references &&
		(len(l.arguments) == 0 || &l.arguments[0] == &other.arguments[0])
}

// appendTerm writes a term's canonical bytes. It writes variables by number, mapped by
// rename if that is set.
func appendTerm(out []byte, term Value, rename func(int64) int64) []byte {
	out = append(out, byte(term.kind))
	switch term.kind {
	case StringValue:
		out = binary.AppendUvarint(out, uint64(len(term.text)))
		return append(out, term.text...)
	case kindVariable:
		if rename != nil {
			return binary.AppendVarint(out, rename(term.number))
		}
		return binary.AppendVarint(out, term.number)
	case Wildcard, kindThis, kindNow:
		return out
	default:
		return binary.AppendVarint(out, term.number)
	}
}

// appendTo writes the literal's canonical bytes. Literals with equal bytes have equal
// meaning.
func (l *literal) appendTo(out []byte, rename func(int64) int64) []byte {
	out = append(out, byte(l.op), byte(len(l.arguments))) //nolint:gosec // forms are fewer than 256
	if l.content != nil {
		out = binary.AppendUvarint(out, uint64(len(l.content.relation)))
		out = append(out, l.content.relation...)
		place := byte(0)
		if l.content.positioned {
			place = 1
		}
		out = append(out, place)
		out = appendTerm(out, l.content.conduit, rename)
		out = appendTerm(out, l.content.offset, rename)
		out = appendTerm(out, l.content.rangeEnd, rename)
	}
	for _, argument := range l.arguments {
		out = appendTerm(out, argument, rename)
	}
	if l.references != nil {
		for _, side := range l.references {
			out = append(appendTerm(out, side.base, rename), byte(side.rule))
		}
	}
	if l.content != nil {
		out = binary.AppendUvarint(out, uint64(len(l.content.condition)))
		for i := range l.content.condition {
			out = l.content.condition[i].appendTo(out, rename)
		}
	}
	return out
}

func (c *clause) appendTo(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(c.body)))
	for i := range c.body {
		out = c.body[i].appendTo(out, nil)
	}
	return out
}

// mentionsThis reports whether the literal depends on the policy's conduit. Literals with
// this.read and the like depend on it only if the rule's own literals do.
func (l *literal) mentionsThis() bool { return l.mentions(kindThis) }

// mentions reports whether some term of the literal is of a kind.
func (l *literal) mentions(kind ValueKind) bool {
	found := false
	l.allTerms(func(term Value) { found = found || term.kind == kind })
	return found
}

// text writes the literal for people; show writes its terms.
func (l *literal) text(show func(Value) string) string {
	arguments := make([]string, 0, len(l.arguments))
	for _, argument := range l.arguments {
		arguments = append(arguments, show(argument))
	}
	if l.references != nil {
		for _, side := range l.references {
			name := side.rule.String()
			if side.base.kind != Wildcard {
				name = show(side.base) + "." + name
			}
			arguments = append(arguments, name)
		}
	}
	list := "(" + strings.Join(arguments, ", ") + ")"
	if l.content == nil {
		return signatures[l.op].name + list
	}
	place := show(l.content.conduit)
	if l.content.offset.kind != Wildcard {
		place += "@" + show(l.content.offset)
	}
	if l.content.isRange() {
		place += ".." + show(l.content.rangeEnd)
	}
	verb := " says "
	if l.op == opWillsay || l.op == opEachWillsay {
		verb = " willsay "
	}
	text := place + verb + l.content.relation + list
	if l.isEach() {
		conditions := make([]string, len(l.content.condition))
		for i := range l.content.condition {
			conditions[i] = l.content.condition[i].text(show)
		}
		if len(conditions) == 0 {
			conditions = []string{"true"}
		}
		text = "each in " + text + " { " + strings.Join(conditions, ", ") + " }"
	}
	return text
}

// text writes the clause for people.
func (c *clause) text(this string) string {
	if len(c.body) == 0 {
		return "true"
	}
	texts := make([]string, len(c.body))
	for i := range c.body {
		texts[i] = c.body[i].text(func(term Value) string { return c.show(term, this) })
	}
	return strings.Join(texts, ", ")
}

// show writes a term with the variable's name in the source.
func (c *clause) show(term Value, this string) string {
	switch {
	case term.kind == kindVariable && int(term.number) < len(c.names) && c.names[term.number] != "":
		return c.names[term.number]
	case term.kind == kindVariable:
		return "_"
	case term.kind == kindThis && this != "":
		return String(this).String()
	}
	return term.String()
}
