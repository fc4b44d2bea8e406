// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"strings"
)

// Derivation explains a decision: a tree of the steps that were shown, or that failed.
type Derivation struct {
	Holds    bool          `json:"holds"`
	Text     string        `json:"text"`             // one line
	Source   string        `json:"source,omitempty"` // file:line:column of the clause or literal
	Children []*Derivation `json:"children,omitempty"`
	parent   *Derivation
}

// String returns the derivation as an indented text.
func (d *Derivation) String() string {
	if d == nil {
		return ""
	}
	var out strings.Builder
	d.write(&out, 0)
	return out.String()
}

func (d *Derivation) write(out *strings.Builder, depth int) {
	sign := "no  "
	if d.Holds {
		sign = "yes "
	}
	out.WriteString(strings.Repeat("  ", depth) + sign + d.Text)
	if d.Source != "" {
		out.WriteString("  [" + d.Source + "]")
	}
	out.WriteByte('\n')
	for _, child := range d.Children {
		child.write(out, depth+1)
	}
}

// holds marks the node; it always returns true, for use in a return statement.
func (d *Derivation) holds() bool {
	if d != nil {
		d.Holds = true
	}
	return true
}

// enterRule opens a node below the current one and makes it the current one. It returns
// nil if no explanation was requested. The same holds for its two siblings.
func (p *prover) enterRule(rule Rule) *Derivation {
	if p.tree == nil {
		return nil
	}
	return p.enter(rule.String(), "")
}

func (p *prover) enterClause(before string, c *clause, owner Rule) *Derivation {
	if p.tree == nil {
		return nil
	}
	return p.enter(before+"{ "+c.text(owner.this)+" } ("+owner.String()+")", owner.owner().source(c.position))
}

func (p *prover) enterDuty(before string, d duty) *Derivation {
	if p.tree == nil {
		return nil
	}
	return p.enter(before+d.String(), "")
}

func (p *prover) enter(text, source string) *Derivation {
	node := &Derivation{Text: text, Source: source, parent: p.tree}
	p.tree.Children = append(p.tree.Children, node)
	p.tree = node
	return node
}

func (p *prover) leave(node *Derivation) {
	if node != nil {
		p.tree = node.parent
	}
}

func (p *Policy) source(position Position) string {
	if position.Line == 0 {
		return ""
	}
	file, at := p.template.Place(position)
	return fmt.Sprintf("%s:%d:%d", file, at.Line, at.Column)
}

// explainClause adds the result of one clause: every literal as it was shown, or the last
// one that failed.
func (p *prover) explainClause(c *clause, owner Rule, proved bool) {
	if p.tree == nil {
		return
	}
	node := p.enterClause("clause ", c, owner)
	defer p.leave(node)
	node.Holds = proved
	if !proved {
		if p.failure.literal != nil && p.failure.clause == c {
			node.Children = append(node.Children, &Derivation{
				Text:   p.failure.text() + ": " + p.failure.advice(),
				Source: owner.owner().source(p.failure.literal.position)})
		}
		return
	}
	for i := range c.body {
		l := &c.body[i]
		node.Children = append(node.Children, &Derivation{Holds: true, Source: owner.owner().source(l.position),
			Text: l.text(func(term Value) string { return showBound(c, p.bindings, owner.this, term) })})
	}
}

// showBound writes a term with the value that its variable is bound to.
func showBound(c *clause, bindings []Value, this string, term Value) string {
	if term.kind == kindVariable && int(term.number) < len(bindings) {
		if value := bindings[term.number]; value.concrete() || value.kind == kindNow {
			return value.String()
		}
	}
	return c.show(term, this)
}

// text writes the failed literal with the bindings at the time of its failure.
func (f *failure) text() string {
	return f.literal.text(func(term Value) string { return showBound(f.clause, f.bindings, f.owner.this, term) })
}

// advices holds, for each predicate, what would have made it hold. A test requires that
// each is listed.
var advices = [operations]string{
	opAdd: doesNotHold, opSub: doesNotHold, opMul: doesNotHold, opDiv: doesNotHold, opRem: doesNotHold,
	opConcat: doesNotHold, opType: doesNotHold,
	opEq: doesNotHold, opNeq: doesNotHold, opLt: doesNotHold, opLe: doesNotHold, opGt: doesNotHold, opGe: doesNotHold,
	opPrefix: doesNotHold, opTime: doesNotHold, opLength: doesNotHold, opNewLength: doesNotHold,
	opKey: anotherReader, opRegion: anotherReader, opIP: anotherReader,
	opKind: anotherConduit, opInternal: anotherConduit, opName: anotherConduit, opID: anotherConduit,
	opContentType: anotherConduit,
	opExists:      noConduit, opHasPolicy: noConduit,
	opAtLeast: "that rule is not as restrictive",
	opSays:    "there is no such fact; adding it would let this through",
	opEach:    "a tuple breaks the condition; removing it would let this through", // or which, see advice
	opWillsay: unmetContent, opEachWillsay: unmetContent,
}

const (
	doesNotHold    = "it does not hold"
	anotherReader  = "the reader is not known to meet it"
	anotherConduit = "the conduit is another one"
	noConduit      = "there is no such conduit"
	unmetContent   = "the content that is written does not meet it, or is not known"
)

// advice returns what would have made the literal hold.
func (f *failure) advice() string {
	if f.literal.op == opEach && f.breaking.each != nil {
		return f.breaking.fact.String() + " breaks the condition; removing it would let this through"
	}
	return advices[f.literal.op]
}

// reason writes the nearest failure as part of a sentence. It returns "" if every clause
// was missing.
func (p *prover) reason() string {
	switch {
	case p.budget.err != nil:
		return p.budget.err.Error()
	case p.failure.literal == nil:
		return "no clause allows it"
	}
	source := p.failure.owner.owner().source(p.failure.literal.position)
	if source != "" {
		source = " (" + source + ")"
	}
	return "nearest: " + p.failure.text() + source + ": " + p.failure.advice()
}
