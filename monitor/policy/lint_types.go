// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"maps"
	"strings"
)

// kinds is a set of types that a term may have.
type kinds uint8

const (
	stringKind  kinds = 1 << StringValue
	integerKind kinds = 1 << IntegerValue
	timeKind    kinds = 1 << TimeValue
	policyKind  kinds = 1 << 7
	anyKind           = stringKind | integerKind | timeKind | policyKind
	numberKind        = integerKind | timeKind
)

func (k kinds) String() string {
	var names []string
	for kind := StringValue; kind <= TimeValue; kind++ {
		if k&(1<<kind) != 0 {
			names = append(names, article(kind))
		}
	}
	if k&policyKind != 0 {
		names = append(names, "a policy")
	}
	return strings.Join(names, " or ")
}

// expected are the types of each predicate's arguments, where it says anything about them.
var expected = [operations][]kinds{
	opAdd: {numberKind, numberKind, numberKind}, opSub: {numberKind, numberKind, numberKind},
	opMul: {integerKind, integerKind, integerKind}, opDiv: {integerKind, integerKind, integerKind},
	opRem: {integerKind, integerKind, integerKind}, opConcat: {stringKind, stringKind, stringKind},
	opKey: {stringKind}, opIP: {stringKind}, opPrefix: {stringKind, stringKind}, opRegion: {stringKind},
	opTime: {timeKind}, opName: {stringKind}, opID: {integerKind}, opExists: {integerKind}, opKind: {stringKind},
	opLength: {integerKind}, opNewLength: {integerKind}, opHasPolicy: {integerKind, policyKind},
	opContentType: {stringKind},
}

// typing finds variables that would have to be of two types at once. All literals of a
// conjunction have to hold, so each restricts the types; those within an each restrict nothing
// outside of it.
type typing struct {
	linter *linter
	names  []string
	known  map[int64]kinds
}

// body restricts the types by all literals, and reports whether none of them contradicts another.
func (t *typing) body(body []literal) bool {
	for range len(body) + 1 { // types follow from each other through at most so many literals
		before := maps.Clone(t.known)
		for i := range body {
			if !t.literal(&body[i]) {
				return false
			}
		}
		if maps.Equal(before, t.known) {
			break
		}
	}
	sound := true
	for i := range body {
		if !body[i].isEach() {
			continue
		}
		inner := &typing{linter: t.linter, names: t.names, known: maps.Clone(t.known)}
		sound = inner.pattern(&body[i]) && inner.body(body[i].content.condition) && sound
	}
	return sound
}

func (t *typing) of(term Value) kinds {
	switch term.kind {
	case StringValue, IntegerValue, TimeValue:
		return 1 << term.kind
	case kindThis:
		return stringKind
	case kindParameter:
		return 1 << t.linter.template.types[term.number]
	case kindVariable:
		if known, found := t.known[term.number]; found {
			return known
		}
	}
	return anyKind
}

// restrict makes a term one of these types. It reports false after it has reported that none is left.
func (t *typing) restrict(l *literal, term Value, to kinds) bool {
	was := t.of(term)
	if term.kind == kindVariable {
		t.known[term.number] = was & to
	}
	if was&to != 0 {
		return true
	}
	t.linter.report(SeverityWarning, CodeNeverEqual, l.rangeOf(), "compare values of one type",
		"%s is %s here, and %s by what else the clause says: that is never so", t.show(term), to, was)
	return false
}

func (t *typing) show(term Value) string {
	switch {
	case term.kind == kindVariable && t.names[term.number] != "":
		return t.names[term.number]
	case term.kind == kindVariable:
		return "_"
	case term.kind == kindParameter:
		return "parameter " + t.linter.template.parameters[term.number]
	}
	return term.String()
}

func (t *typing) literal(l *literal) bool {
	switch {
	case l.op == opNeq:
		return t.differ(l)
	case l.op.relational():
		return t.equal(l)
	case l.op == opType:
		if name := l.arguments[1]; name.kind == StringValue {
			kind, known := ParseType(name.text)
			return !known || t.restrict(l, l.arguments[0], 1<<kind)
		}
		return true
	case l.op == opSays || l.op == opWillsay:
		return t.restrict(l, l.content.conduit, stringKind) && t.pattern(l)
	}
	for i, to := range expected[l.op] {
		if !t.restrict(l, l.arguments[i], to) {
			return false
		}
	}
	return true
}

// pattern restricts the arguments of a relation to their declared types.
func (t *typing) pattern(l *literal) bool {
	declared, known := t.linter.around.Relations[l.content.relation]
	if !known || len(declared.Arguments) != len(l.arguments) || l.op != opSays && l.op != opEach {
		return true
	}
	for i, argument := range l.arguments {
		if to := declared.Arguments[i].Type; to != Wildcard && argument.kind == kindVariable &&
			!t.restrict(l, argument, 1<<to) {
			return false
		}
	}
	return true
}

// equal makes both sides of a comparison one type: values of two types are unequal and in no order.
func (t *typing) equal(l *literal) bool {
	left, right := t.of(l.arguments[0]), t.of(l.arguments[1])
	if left&right == 0 {
		t.compared(l, "never holds", left, right)
		return false
	}
	return t.restrict(l, l.arguments[0], right) && t.restrict(l, l.arguments[1], left)
}

func (t *typing) differ(l *literal) bool {
	left, right := t.of(l.arguments[0]), t.of(l.arguments[1])
	if left&right == 0 {
		t.compared(l, "always holds", left, right)
	}
	return true
}

func (t *typing) compared(l *literal, holds string, left, right kinds) {
	t.linter.report(SeverityWarning, CodeNeverEqual, l.rangeOf(), "compare values of one type",
		"%s %s: %s is %s, and %s is %s", fmt.Sprintf("%s(%s, %s)", signatures[l.op].name, t.show(l.arguments[0]),
			t.show(l.arguments[1])), holds, t.show(l.arguments[0]), left, t.show(l.arguments[1]), right)
}

// contradicts reports whether a value would have to be below one constant and above another that
// is not smaller.
func (l *linter) contradicts(body []literal) bool {
	below, above := map[Value]bound{}, map[Value]bound{}
	note := func(term, limit Value, strict, upper bool) {
		if term.kind != kindVariable && term.kind != kindParameter ||
			limit.kind != IntegerValue && limit.kind != TimeValue {
			return
		}
		bounds, tighter := above, 1
		if upper {
			bounds, tighter = below, -1
		}
		known, found := bounds[term]
		if !found || limit.Compare(known.limit)*tighter > 0 || limit == known.limit && strict {
			bounds[term] = bound{limit, strict}
		}
	}
	for i := range body {
		if op := body[i].op; op >= opLt && op <= opGe {
			left, right := body[i].arguments[0], body[i].arguments[1]
			strict, upper := op == opLt || op == opGt, op == opLt || op == opLe
			note(left, right, strict, upper)
			note(right, left, strict, !upper)
		}
	}
	for term, upper := range below {
		lower, both := above[term]
		if !both || lower.limit.kind != upper.limit.kind {
			continue
		}
		if order := lower.limit.Compare(upper.limit); order > 0 || order == 0 && (lower.strict || upper.strict) {
			return true
		}
	}
	return false
}

// bound is the largest or smallest value that comparisons allow; strict excludes it.
type bound struct {
	limit  Value
	strict bool
}
