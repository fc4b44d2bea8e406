// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"strings"
)

// Rules in a person's words: "bob, or whoever "friends/bob" lists as friend". A literal
// without a phrase here is quoted from the source.

// Whom returns who satisfies the rule, in words: "bob, or whoever "friends/bob" lists as friend".
func (r Rule) Whom() string {
	clauses := r.compiled().clauses
	if len(clauses) == 0 {
		return "nobody"
	}
	phrases := make([]string, len(clauses))
	for i := range clauses {
		phrases[i] = describe(&clauses[i], r.this).whom()
	}
	slices.SortStableFunc(phrases, func(a, b string) int { return len(a) - len(b) })
	return strings.Join(phrases, ", or ")
}

// title returns a policy's name and arguments: "private, owner bob".
func (p *Policy) title() string {
	if p == nobody {
		return "there is no policy"
	}
	title := p.Name()
	if title == "" {
		title = p.template.file
	}
	for parameter, value := range p.Arguments() {
		title += ", " + parameter + " " + (&description{}).plain(String(value))
	}
	return title
}

// onlySome returns who alone may access "it". participle is that of the verb.
func (r Rule) onlySome(verb, participle string) string {
	title := " (" + r.owner().title() + ")"
	switch whom := r.Whom(); {
	case whom == "nobody":
		return "nobody may " + verb + " it" + title
	case strings.HasPrefix(whom, "anybody, "), strings.HasPrefix(whom, "anybody "):
		return "it may be " + participle + " only " + strings.TrimLeft(strings.TrimPrefix(whom, "anybody"), ", ") + title
	default:
		return "only " + whom + " may " + verb + " it" + title
	}
}

// lasting returns how long an obligation is kept.
func (d duty) lasting() string {
	if len(d.obligation.exits) == 0 {
		return "for ever"
	}
	var phrases []string
	for i := range d.obligation.exits {
		phrases = append(phrases, describe(d.obligation.exits[i].clause(), d.this).way())
	}
	return "until it goes " + strings.Join(phrases, ", or ")
}

// way returns where data go that take the clause as an exit: "through a conduit of kind descriptor".
func (d *description) way() string {
	switch whom := d.whom(); {
	case d.reader.kind != 0:
		return "to " + whom
	case len(d.how) == 0:
		return "anywhere" + strings.TrimPrefix(whom, "anybody")
	default:
		return strings.TrimPrefix(whom, "anybody ")
	}
}

// description puts one clause into words.
type description struct {
	clause  *clause
	this    string
	reader  Value            // the reader in the clause: a name, a variable, or anybody
	defined map[int64]string // texts for the variables that concat defines
	where   []string         // other conditions
	how     []string         // conditions that follow the reader's name
}

func describe(c *clause, this string) *description {
	d := &description{clause: c, this: this, defined: map[int64]string{}}
	for i := range c.body {
		l := &c.body[i]
		switch {
		case l.op == opKey:
			d.reader = l.arguments[0]
		case l.op == opConcat && l.arguments[0].kind == kindVariable:
			d.defined[l.arguments[0].number] = d.plain(l.arguments[1]) + d.plain(l.arguments[2])
		}
	}
	for i := range c.body {
		d.add(&c.body[i])
	}
	return d
}

// plain writes a term without quotes.
func (d *description) plain(term Value) string {
	switch {
	case term.kind == StringValue && term.text != "":
		return term.text
	case term.kind == kindThis:
		return "it"
	case term.kind == kindVariable && d.defined[term.number] != "":
		return d.defined[term.number]
	case term.kind == kindVariable && term == d.reader:
		return "<reader>"
	case term.kind == kindVariable && d.clause.names[term.number] != "":
		return "<" + d.clause.names[term.number] + ">"
	case term.kind == kindVariable:
		return "…"
	}
	return term.String()
}

// show writes a term in the form of a policy, except for the reader.
func (d *description) show(term Value) string {
	if term.kind == kindVariable && (term == d.reader || d.defined[term.number] != "") {
		return d.plain(term)
	}
	return d.clause.show(term, d.this)
}

func (d *description) quoted(term Value) string { return `"` + d.plain(term) + `"` }

func (d *description) whom() string {
	whom := "anybody"
	switch d.reader.kind {
	case StringValue:
		whom = d.reader.text
	case kindVariable:
		whom = "whoever is authenticated"
	}
	who := strings.Join(append([]string{whom}, d.how...), " ")
	who = strings.Replace(who, "whoever is authenticated whoever ", "whoever ", 1)
	who = strings.ReplaceAll(who, " whoever ", " and ")
	if len(d.where) > 0 {
		who += ", " + strings.Join(d.where, ", ")
	}
	return who
}

// add puts one literal into words.
func (d *description) add(l *literal) {
	switch {
	case l.op == opKey || l.op == opConcat && l.arguments[0].kind == kindVariable:
		return // described elsewhere
	case l.op == opRegion && l.arguments[0].kind == kindVariable:
		d.how = append(d.how, "in a region "+d.plain(l.arguments[0]))
	case l.op == opRegion:
		d.how = append(d.how, "in region "+d.plain(l.arguments[0]))
	case l.op == opIP && l.arguments[0].kind == StringValue:
		d.how = append(d.how, "from address "+l.arguments[0].text)
	case l.op == opIP:
	case l.op == opPrefix:
		d.how = append(d.how, "from an address in "+d.plain(l.arguments[1]))
	case l.op == opKind:
		d.how = append(d.how, "through a conduit of kind "+d.plain(l.arguments[0]))
	case l.op == opContentType:
		d.how = slices.Insert(d.how, 0, "through a conduit of type "+d.plain(l.arguments[0]))
	case l.op == opName && slices.ContainsFunc(d.clause.body, func(l literal) bool {
		return l.op == opKind || l.op == opContentType
	}):
		d.how = append(d.how, "called "+d.quoted(l.arguments[0]))
	case l.op == opName:
		d.how = append(d.how, "through the conduit "+d.quoted(l.arguments[0]))
	case l.op == opInternal:
		d.how = append(d.how, "between the pipeline's tasks")
	case l.op.relational() && l.arguments[0].kind == kindNow:
		d.how = append(d.how, map[operation]string{opLt: "before ", opLe: "until ", opGt: "after ", opGe: "from ",
			opEq: "at ", opNeq: "except at "}[l.op]+d.plain(l.arguments[1]))
	case l.op == opSays && len(l.arguments) == 1 && l.arguments[0] == d.reader && d.reader.kind == kindVariable:
		d.how = append(d.how, "whoever "+d.quoted(l.content.conduit)+" lists as "+l.content.relation)
	case l.op == opSays && len(l.arguments) == 1:
		d.where = append(d.where, "where "+d.quoted(l.content.conduit)+" lists "+d.plain(l.arguments[0])+" as "+
			l.content.relation)
	case l.excludes() != nil:
		d.where = append(d.where, "unless "+d.quoted(l.content.conduit)+" lists "+d.plain(*l.excludes())+" as "+
			l.content.relation)
	default:
		d.where = append(d.where, "where "+l.text(d.show))
	}
}

// excludes recognises `each in L says t(X) { neq(X, v) }` and returns v.
func (l *literal) excludes() *Value {
	if l.op != opEach || len(l.arguments) != 1 || len(l.content.condition) != 1 || l.content.condition[0].op != opNeq {
		return nil
	}
	sides := l.content.condition[0].arguments
	switch l.arguments[0] {
	case sides[0]:
		return &sides[1]
	case sides[1]:
		return &sides[0]
	}
	return nil
}
