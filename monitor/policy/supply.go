// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
)

// Grant is the way in which a task gets the conduits of a policy. If it gets them without
// a decision on each use, some predicates have no value yet when the decision is made.
type Grant uint8

const (
	GrantOpen      Grant = iota // one conduit at a time, with a decision on it
	GrantDirectory              // a directory as a whole: its files are opened natively, whatever they are called
	// keys of the key-value store: for a user and region, whatever the address
	GrantKeys
)

// supply is the source of a predicate's value while a policy is enforced.
type supply struct {
	by      [3]string // in read, update and declassify rules; "" if nobody supplies it
	missing string    // why nobody supplies it
	remedy  string    // what to write instead
	// withheld holds the grants with which the value is not supplied, with the reason.
	withheld map[Grant]string
}

// suppliedBy returns the supply of a value that is known in every rule.
func suppliedBy(whom string) supply { return supply{by: [3]string{whom, whom, whom}} }

// suppliedByNobody returns the supply of a value that is known in no rule.
func suppliedByNobody(missing, remedy string) supply { return supply{missing: missing, remedy: remedy} }

func (s supply) except(grant Grant, because string) supply {
	s.withheld = map[Grant]string{grant: because}
	return s
}

const (
	nameless      = "a directory is given to a task as a whole, so the monitor is not asked about its single files"
	directoryHint = "remove `directory: true`: then the monitor decides each open"
	keysHint      = "use sRegionIs, or protect a file instead of a key"
)

var (
	computed = suppliedBy("computed")
	ofNames  = suppliedBy("the catalog").except(GrantDirectory, nameless)
	lengths  = suppliedByNobody("the monitor does not know how long a conduit is",
		"remove it, and let only a task write that you trust to append: update :- sKeyIs(\"task/NAME\")")
	ofContents = suppliedByNobody("the monitor does not read what a task writes",
		"remove it, and let only a task write that you trust to write nothing else: update :- sKeyIs(\"task/NAME\")")
)

// supplies is the only place that defines whether a predicate can be enforced. A
// predicate that is not listed is refused. A test requires that each is listed.
var supplies = [operations]supply{
	opAdd: computed, opSub: computed, opMul: computed, opDiv: computed, opRem: computed,
	opConcat: computed, opType: computed,
	opEq: computed, opNeq: computed, opLt: computed, opLe: computed, opGt: computed, opGe: computed,
	opKey: suppliedBy("the session: whom the monitor has authenticated, or the task"),
	opIP: suppliedBy("the session: the address of the connection").except(GrantKeys,
		"keys are given to a user and region before they connect, from whatever address"),
	opPrefix:    computed,
	opRegion:    suppliedBy("the session: the address, and the facts about regions"),
	opTime:      suppliedBy("the monitor's clock"),
	opName:      ofNames,
	opID:        ofNames,
	opExists:    suppliedBy("the catalog"),
	opKind:      suppliedBy("the pipeline's manifest"),
	opInternal:  suppliedBy("the pipeline's manifest"),
	opHasPolicy: suppliedBy("the catalog"),
	opAtLeast:   computed,
	opSays:      suppliedBy("the bundle's fact sources, and `shai facts`"),
	opEach:      suppliedBy("the bundle's fact sources, and `shai facts`"),
	opLength:    lengths,
	opNewLength: lengths,
	opContentType: suppliedByNobody("no manifest declares the shape of a conduit's content",
		"name the conduit with cNameIs, or its kind with cKindIs"),
	opWillsay: ofContents, opEachWillsay: ofContents,
}

// offsets are not a predicate of their own: they belong to says and each.
var offsets = suppliedByNobody("facts have no place in a conduit",
	"remove what stands after @: then every tuple counts")

// itself is the supply of the name that `this` means.
var itself = ofNames

// CheckSupplied reports every literal of the policy whose value nobody supplies if its
// conduits are given in this way. Evaluation would treat the value as absent: a clause
// that uses it never holds, an each over such tuples always does. So a policy with such a
// literal must not be bound. The error is an [Errors].
func (t *Template) CheckSupplied(grant Grant) error {
	c := &supplyChecker{file: t.file, grant: grant}
	for _, clause := range t.read {
		c.body(readRule, clause.body)
	}
	for _, clause := range t.update {
		c.body(updateRule, clause.body)
	}
	c.obligations(t.obligations)
	if len(c.mistakes) == 0 {
		return nil
	}
	slices.SortFunc(c.mistakes, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(c.mistakes, func(a, b *Error) bool { return *a == *b })
}

type supplyChecker struct {
	file     string
	grant    Grant
	mistakes Errors
}

func (c *supplyChecker) obligations(obligations []loweredObligation) {
	for _, o := range obligations {
		for _, exit := range o.exits {
			c.body(declassifyRule, exit.condition.body)
			c.obligations(exit.behind)
		}
	}
}

func (c *supplyChecker) body(rule ruleName, body []literal) {
	for i := range body {
		l := &body[i]
		c.check(rule, l, "`"+signatures[l.op].name+"`", supplies[l.op])
		if l.namesThis() {
			c.check(rule, l, "`this`", itself)
		}
		if l.content == nil {
			continue
		}
		if l.content.positioned {
			c.check(rule, l, "an offset (`@`)", offsets)
		}
		c.body(rule, l.content.condition)
	}
}

func (c *supplyChecker) check(rule ruleName, l *literal, what string, s supply) {
	because, remedy := s.missing, s.remedy
	if s.by[rule] != "" {
		if because = s.withheld[c.grant]; because == "" {
			return
		}
		remedy = map[Grant]string{GrantDirectory: directoryHint, GrantKeys: keysHint}[c.grant]
	}
	c.mistakes = append(c.mistakes, newError(c.file, Range{l.position, l.end}, CodeUnsupplied, "", remedy,
		"%s cannot be enforced in the %s rule: %s", what, rule, because))
}

// namesThis reports whether a term of the literal itself is the conduit's name.
func (l *literal) namesThis() bool {
	isThis := func(term Value) bool { return term.kind == kindThis }
	return slices.ContainsFunc(l.arguments, isThis) ||
		l.content != nil && (isThis(l.content.conduit) || isThis(l.content.offset) || isThis(l.content.rangeEnd))
}
