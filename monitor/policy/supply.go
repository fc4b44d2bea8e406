// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Grant is the way in which a task gets the conduits of a policy. If it gets them without
// a decision on each use, some predicates have no value yet when the decision is made.
type Grant uint8

const (
	GrantAny       Grant = iota // not known yet: what no grant supplies is refused
	GrantOpen                   // one conduit at a time, with a decision on it
	GrantDirectory              // a directory as a whole: its files are opened natively, whatever they are called
	// keys of the key-value store: for a user and region, whatever the address
	GrantKeys
	// GrantTyped is as GrantOpen, but tasks write only through the monitor, which reads what they
	// write and decides on each write.
	GrantTyped
	GrantTypedKeys // read as GrantKeys, written as GrantTyped
)

func (g Grant) isTyped() bool { return g == GrantTyped || g == GrantTypedKeys }

// supply is the source of a predicate's value while a policy is enforced.
type supply struct {
	by      [3]string // in read, update and declassify rules; "" if nobody supplies it
	missing string    // why nobody supplies it in the others
	remedy  string    // what to write instead
	// withheld holds the grants with which the value is not supplied, with the reason.
	withheld map[Grant]string
	// ofWrites says that an update rule has the value only if conduits are typed. An exit is about
	// the conduit that the data go to, whatever the policy's own conduits are.
	ofWrites bool
}

// suppliedBy returns the supply of a value that is known in every rule.
func suppliedBy(whom string) supply { return supply{by: [3]string{whom, whom, whom}} }

// suppliedByWrites returns the supply of a value that only a write to a typed conduit has.
func suppliedByWrites(whom string) supply {
	return supply{by: [3]string{updateRule: whom, declassifyRule: whom}, ofWrites: true,
		missing: "whoever reads has no write that it could be about",
		remedy:  "move it to the update rule of the conduit that is written, or to an exit (`until`)"}
}

func (s supply) except(because string, grants ...Grant) supply {
	s.withheld = map[Grant]string{}
	for _, grant := range grants {
		s.withheld[grant] = because
	}
	return s
}

const (
	nameless      = "a directory is given to a task as a whole, so the monitor is not asked about its single files"
	directoryHint = "remove `directory: true`: then the monitor decides each open"
	keysHint      = "use sRegionIs, or protect a file instead of a key"
	untyped       = "the conduit has no type, so the monitor does not read what tasks write to it"
	typeHint      = "give the conduit a `type`: then tasks write it through the monitor"
)

var (
	computed = suppliedBy("computed")
	ofNames  = suppliedBy("the catalog").except(nameless, GrantDirectory)
	lengths  = suppliedByWrites("the file or tuple itself, when the monitor writes it")
	contents = suppliedByWrites("the write, as the monitor has read it")
	facts    = suppliedBy("the bundle's fact sources, `shai facts`, and entries of conduits of type access-log")
)

// supplies is the only place that defines whether a predicate can be enforced. A
// predicate that is not listed is refused. A test requires that each is listed.
var supplies = [operations]supply{
	opAdd: computed, opSub: computed, opMul: computed, opDiv: computed, opRem: computed,
	opConcat: computed, opType: computed,
	opEq: computed, opNeq: computed, opLt: computed, opLe: computed, opGt: computed, opGe: computed,
	opKey: suppliedBy("the session: whom the monitor has authenticated, or the task"),
	opIP: suppliedBy("the session: the address of the connection").except(
		"keys are given to a user and region before they connect, from whatever address", GrantKeys, GrantTypedKeys),
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
	opSays:      facts,
	opEach:      facts,
	opLength:    lengths,
	opNewLength: lengths,

	opContentType: suppliedByWrites("the pipeline's manifest"),
	opWillsay:     contents,
	opEachWillsay: contents,
}

// offsets are not a predicate of their own: they belong to says and each. Of facts, only the
// entries of a log have one: an each over the offsets of others would hold for all of them.
var offsets = supply{
	missing: "only the entries of a conduit of type access-log have a place in it",
	remedy:  "remove what stands after @: then every tuple counts; or name the log itself, by its whole path",
}

// itself is the supply of the name that `this` means.
var itself = ofNames

// CheckSupplied reports every literal of the policy whose value nobody supplies, wherever the
// policy is bound. Evaluation would treat the value as absent: a clause that uses it never
// holds, an each over such tuples always does. The error is an [Errors].
func (t *Template) CheckSupplied() error {
	return t.checkSupplied(&supplyChecker{file: t.file, grant: GrantAny})
}

// Binding is a use of a policy.
type Binding struct {
	Grant     Grant
	Arguments map[string]string // of the policy's parameters
	// IsLog reports whether the facts of a conduit are the entries of a log, with their offsets.
	IsLog func(conduit string) bool
}

// CheckBound does the same for a policy where it is bound, and also reports the literals whose
// value is not supplied there. A policy with such a literal must not be bound so.
func (t *Template) CheckBound(binding Binding) error {
	c := &supplyChecker{file: t.file, grant: binding.Grant}
	c.isLog = func(conduit Value) bool {
		name := conduit.text
		if conduit.kind == kindParameter {
			name = binding.Arguments[t.parameters[conduit.number]]
		} else if conduit.kind != StringValue {
			return false // it could be any conduit
		}
		return !strings.Contains(name, "{") && binding.IsLog(name)
	}
	return t.checkSupplied(c)
}

func (t *Template) checkSupplied(c *supplyChecker) error {
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
	isLog    func(conduit Value) bool // nil: not known yet
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
		if isOfFacts := l.op == opSays || l.op == opEach; isOfFacts && l.content.positioned && c.isLog != nil &&
			!c.isLog(l.content.conduit) {
			c.check(rule, l, "an offset (`@`)", offsets)
		}
		c.body(rule, l.content.condition)
	}
}

func (c *supplyChecker) check(rule ruleName, l *literal, what string, s supply) {
	because, remedy := s.missing, s.remedy
	switch {
	case s.by[rule] == "":
	case s.withheld[c.grant] != "":
		because, remedy = s.withheld[c.grant], keysHint
		if c.grant == GrantDirectory {
			remedy = directoryHint
		}
	case s.ofWrites && rule == updateRule && c.grant != GrantAny && !c.grant.isTyped():
		because, remedy = untyped, typeHint
	default:
		return
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
