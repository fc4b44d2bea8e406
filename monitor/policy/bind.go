// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/bug"
)

// Template is a compiled policy whose parameters are not bound yet. It is
// immutable and safe for concurrent use.
type Template struct {
	name        string
	file        string
	parameters  []string
	types       []ValueKind // of the parameters
	read        []lowered
	update      []lowered
	obligations []loweredObligation
	declaration *Declaration // its source
	flat        *Declaration // without includes; nil if it includes no other policy
	place       Placing      // nil: the text is the whole file
}

// Name returns the declared name, "" for bare clauses.
func (t *Template) Name() string { return t.name }

// File returns the name that the text was compiled under.
func (t *Template) File() string { return t.file }

// Placing translates a place in a policy's text into one of the file that has the text, such as a
// manifest.
type Placing func(in Position) (file string, at Position)

// Placed returns the policy with the places of its clauses in a file that has its text.
func (t *Template) Placed(place Placing) *Template {
	placed := *t
	placed.place = place
	return &placed
}

// Place returns the file and the place of a clause or a literal.
func (t *Template) Place(in Position) (file string, at Position) {
	if t.place == nil {
		return t.file, in
	}
	return t.place(in)
}

// Parameters returns the declared parameters in order.
func (t *Template) Parameters() []string { return slices.Clone(t.parameters) }

// Bind binds a value to every parameter. A missing or undeclared argument is an error.
func (t *Template) Bind(arguments map[string]string) (*Policy, error) {
	values := make([]string, len(t.parameters))
	var wrong error
	for i, parameter := range t.parameters {
		value, given := arguments[parameter]
		if !given {
			wrong = also(wrong, fmt.Errorf("argument %q is missing: it takes (%s)", parameter,
				strings.Join(t.parameters, ", ")))
		} else if _, err := parseArgument(t.types[i], value); err != nil {
			wrong = also(wrong, fmt.Errorf("argument %s: %w", parameter, err))
		}
		values[i] = value
	}
	for _, given := range slices.Sorted(maps.Keys(arguments)) {
		if !slices.Contains(t.parameters, given) {
			hint := ""
			if closest := nearest(given, t.parameters); closest != "" {
				hint = "; did you mean " + closest + "?"
			}
			wrong = also(wrong, fmt.Errorf("there is no parameter %q: it takes (%s)%s", given,
				strings.Join(t.parameters, ", "), hint))
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("bind policy %s: %w", t.name, wrong)
	}
	return t.bindValues(values...)
}

// also adds an error to those found before, in one line.
func also(before, err error) error {
	if before == nil {
		return err
	}
	return fmt.Errorf("%w; %w", before, err)
}

// bindValues is Bind with the values in the order of Parameters.
func (t *Template) bindValues(values ...string) (*Policy, error) {
	if len(values) != len(t.parameters) {
		return nil, fmt.Errorf("bind policy %s: %d arguments given: it takes (%s)", t.name, len(values),
			strings.Join(t.parameters, ", "))
	}
	terms := make([]Value, len(values))
	for i, value := range values {
		var err error
		if terms[i], err = parseArgument(t.types[i], value); err != nil {
			return nil, fmt.Errorf("bind policy %s: argument %s: %w", t.name, t.parameters[i], err)
		}
	}
	p := &Policy{template: t, values: slices.Clone(values)}
	p.rules[readRule] = t.rule(t.read, terms)
	p.rules[updateRule] = t.rule(t.update, terms)
	p.obligations = t.bindObligations(t.obligations, p, terms)
	p.sealKeys(p.obligations, string(p.canonical()))
	p.finish()
	return p, nil
}

// rule is a compiled read or update rule: clauses in canonical order, each once.
type rule struct {
	clauses []clause
	program program
}

func (t *Template) rule(clauses []lowered, values []Value) *rule {
	bound := &rule{}
	for _, template := range clauses {
		if c, satisfiable := template.bind(values); satisfiable {
			bound.clauses = append(bound.clauses, c)
		}
	}
	bound.clauses = canonical(bound.clauses, (*clause).appendTo)
	return bound
}

// canonical sorts items by their canonical bytes and drops duplicates.
func canonical[T any](items []T, appendTo func(*T, []byte) []byte) []T {
	type written struct {
		item  T
		bytes []byte
	}
	all := make([]written, len(items))
	for i := range items {
		all[i] = written{items[i], appendTo(&items[i], nil)}
	}
	slices.SortStableFunc(all, func(a, b written) int { return bytes.Compare(a.bytes, b.bytes) })
	all = slices.CompactFunc(all, func(a, b written) bool { return bytes.Equal(a.bytes, b.bytes) })
	var kept []T
	for _, each := range all {
		kept = append(kept, each.item)
	}
	return kept
}

// bind substitutes parameters and puts the conjunction into canonical form; it
// reports false when the conjunction can never hold.
func (c lowered) bind(values []Value) (clause, bool) {
	mapping := func(term Value) Value {
		if term.kind == kindParameter {
			return values[term.number]
		}
		return term
	}
	body := make([]literal, len(c.body))
	for i := range c.body {
		body[i] = c.body[i].replace(mapping)
	}
	body, satisfiable := normalise(body)
	if !satisfiable {
		return clause{}, false
	}
	plan, ordered := planned(body, c.names)
	if plan.alike || slices.ContainsFunc(body, literal.ordersCondition) {
		plan, ordered = planned(canonicalOrder(body), c.names)
	}
	return plan.finish(ordered, c.position), true
}

// ordersCondition reports whether the form of the literal depends on the order of those
// inside it.
func (l literal) ordersCondition() bool { return l.content != nil && len(l.content.condition) > 1 }

// planned orders a body that is known to be range-restricted.
func planned(body []literal, names []string) (*planner, []literal) {
	plan := newPlanner(names, false)
	ordered, stuck := plan.order(slices.Clone(body))
	if stuck != nil {
		bug.Found("binding parameters unbound a variable in %s", signatures[stuck[0].op].name)
	}
	return plan, ordered
}

// obligation says that derived data may be read only by those whom rule allows, until an
// exit is taken.
type obligation struct {
	policy *Policy
	name   ruleName
	exits  []exit
	key    string // canonical bytes of rule and exits
	usesIt bool   // whether the meaning depends on `this`
}

// exit ends an obligation when its condition holds for a flow. From then on, the
// obligations behind the exit apply.
type exit struct {
	condition *rule // of one clause
	behind    []*obligation
	meaning   meaning // of the condition
}

func (e *exit) clause() *clause { return &e.condition.clauses[0] }

func (o *obligation) rule() *rule { return o.policy.rules[o.name] }

func (t *Template) bindObligations(templates []loweredObligation, p *Policy, values []Value) []*obligation {
	var bound []*obligation
	for _, template := range templates {
		o := &obligation{policy: p, name: template.rule}
		if o.rule().unconditional() {
			continue // anybody may read, so there is nothing to enforce
		}
		for _, loweredExit := range template.exits {
			if condition, meaning := loweredExit.bind(values); condition != nil {
				o.exits = append(o.exits, exit{condition, t.bindObligations(loweredExit.behind, p, values), meaning})
			}
		}
		o.exits = canonical(o.exits, (*exit).appendTo)
		o.key = string(o.appendTo(nil))
		o.usesIt = o.mentionsThis()
		bound = append(bound, o)
	}
	return canonical(bound, func(o **obligation, out []byte) []byte { return append(out, (*o).key...) })
}

// unconditional reports whether a clause of the rule always holds.
func (r *rule) unconditional() bool {
	return slices.ContainsFunc(r.clauses, func(c clause) bool { return len(c.body) == 0 })
}

func (r *rule) appendTo(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(r.clauses)))
	for i := range r.clauses {
		out = r.clauses[i].appendTo(out)
	}
	return out
}

func (o *obligation) appendTo(out []byte) []byte {
	out = o.rule().appendTo(append(out, byte(o.name)))
	out = binary.AppendUvarint(out, uint64(len(o.exits)))
	for i := range o.exits {
		out = o.exits[i].appendTo(out)
	}
	return out
}

func (e *exit) appendTo(out []byte) []byte {
	out = e.condition.appendTo(out)
	out = binary.AppendUvarint(out, uint64(len(e.behind)))
	for _, behind := range e.behind {
		out = behind.appendTo(out)
	}
	return out
}

func (c *clause) mentionsThis() bool {
	return slices.ContainsFunc(c.body, func(l literal) bool { return l.mentionsThis() })
}

// refersToThis reports whether a literal compares with one of the policy's own rules.
func (c *clause) refersToThis() bool {
	var refers func(body []literal) bool
	refers = func(body []literal) bool {
		return slices.ContainsFunc(body, func(l literal) bool {
			return l.references != nil && (l.references[0].base.kind == kindThis ||
				l.references[1].base.kind == kindThis) ||
				l.content != nil && refers(l.content.condition)
		})
	}
	return refers(c.body)
}

func (r *rule) mentionsThis() bool {
	return slices.ContainsFunc(r.clauses, func(c clause) bool { return c.mentionsThis() })
}

func (o *obligation) mentionsThis() bool {
	return o.rule().mentionsThis() || slices.ContainsFunc(o.exits, func(e exit) bool {
		return e.condition.mentionsThis() || slices.ContainsFunc(e.behind, (*obligation).mentionsThis)
	})
}
