// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"math/bits"

	"shai.dev/monitor/internal/bug"
)

// planner puts a conjunction into the order in which the prover tries it, and numbers its
// variables in that order. Cheap tests come first, then literals that bind variables,
// then fully bound facts. Literals that enumerate facts come last. The order depends on
// the meaning of the literals, and on their order only where two are alike.
type planner struct {
	names   []string // by old number
	numbers []int64  // new number by old, -1 while unbound
	ordered []string // names by new number
	alike   bool     // whether the order in the source has decided
	// open allows the conduit that says to be unbound if an argument is bound: only to
	// run a policy backwards, never to decide.
	open bool
}

func newPlanner(names []string, open bool) *planner {
	p := &planner{names: names, numbers: make([]int64, len(names)), open: open}
	for i := range p.numbers {
		p.numbers[i] = -1
	}
	return p
}

func (p *planner) bound(term Value) bool {
	return term.kind != kindVariable || p.numbers[term.number] >= 0
}

// order consumes body. It returns it in order, with the variables' old numbers, and the
// literals that could not be placed.
func (p *planner) order(body []literal) (ordered, stuck []literal) {
	for len(body) > 0 {
		best := -1
		var bestRank int
		var bestBytes []byte
		for i := range body {
			rank, ready := p.rank(&body[i])
			if !ready || best >= 0 && rank > bestRank {
				continue
			}
			written := body[i].appendTo(nil, p.rename())
			order := bytes.Compare(written, bestBytes)
			if best < 0 || rank < bestRank || order < 0 {
				best, bestRank, bestBytes = i, rank, written
			} else if order == 0 {
				p.alike = true
			}
		}
		if best < 0 {
			return ordered, body
		}
		chosen := body[best]
		body = append(body[:best:best], body[best+1:]...)
		innerStuck := p.place(&chosen)
		if innerStuck != nil {
			stuck = append(stuck, innerStuck...)
		}
		ordered = append(ordered, chosen)
		if stuck != nil {
			return ordered, stuck
		}
	}
	return ordered, nil
}

// rename maps bound variables to their new numbers, and others to numbers by first
// occurrence in the current literal, so that names do not influence the order.
func (p *planner) rename() func(int64) int64 {
	var seen []int64
	return func(old int64) int64 {
		if p.numbers[old] >= 0 {
			return p.numbers[old]
		}
		for i, earlier := range seen {
			if earlier == old {
				return int64(MaxVariables + i)
			}
		}
		seen = append(seen, old)
		return int64(MaxVariables + len(seen) - 1)
	}
}

func (p *planner) number(term Value) {
	if term.kind == kindVariable && p.numbers[term.number] < 0 {
		p.numbers[term.number] = int64(len(p.ordered))
		p.ordered = append(p.ordered, p.names[term.number])
	}
}

// place numbers the variables that the literal binds and orders an each's condition. It
// returns the literals of the condition that could not be placed.
func (p *planner) place(l *literal) (stuck []literal) {
	l.terms(p.number)
	if !l.isEach() {
		return nil
	}
	inner := *l.content
	inner.localFrom = len(p.ordered)
	p.number(inner.offset)
	for _, argument := range l.arguments {
		p.number(argument)
	}
	inner.patternTo = len(p.ordered)
	inner.condition, stuck = p.order(append([]literal(nil), inner.condition...))
	inner.localTo = len(p.ordered)
	l.content = &inner
	return stuck
}

// The ranks. A literal with a smaller rank is tried earlier.
const (
	rankTest = iota
	rankFlow
	rankComputed
	rankFact
	rankConduit
	rankEach
	rankAtLeast
	rankWalk
	rankOpenWalk // and above, by the number of unbound arguments
)

// rank reports whether the literal can be tried now, and how early it should be.
func (p *planner) rank(l *literal) (rank int, ready bool) {
	allBound := true
	l.terms(func(term Value) { allBound = allBound && p.bound(term) })
	switch l.op {
	case opSays, opWillsay:
		return p.rankOfContent(l, allBound)
	case opEach, opEachWillsay:
		return rankEach, p.eachReady(l)
	case opAtLeast:
		return rankAtLeast, allBound
	case opExists:
		return rankConduit, allBound
	}
	if !p.computable(l) {
		return 0, false
	}
	switch {
	case l.op == opHasPolicy:
		return rankConduit, true
	case allBound:
		return rankTest, true
	case l.op.speaksOfFlow() || l.op == opTime:
		return rankFlow, true
	default:
		return rankComputed, true
	}
}

func (p *planner) rankOfContent(l *literal, allBound bool) (rank int, ready bool) {
	switch {
	case allBound:
		return rankFact, true
	case p.bound(l.content.conduit):
		return rankWalk, true
	case !p.open:
		return 0, false
	}
	unbound := 0
	for _, argument := range l.arguments {
		if !p.bound(argument) {
			unbound++
		}
	}
	return rankOpenWalk + unbound, unbound < len(l.arguments)
}

// computable reports whether one of the predicate's modes is satisfied.
func (p *planner) computable(l *literal) bool {
	var bound uint8
	for i, argument := range l.arguments {
		if p.bound(argument) {
			bound |= 1 << i
		}
	}
	for _, mode := range signatures[l.op].modes {
		if bound&mode == mode {
			return true
		}
	}
	return bits.OnesCount8(bound) == len(l.arguments)
}

// eachReady requires that all outer variables are bound: a variable that a later literal
// binds would otherwise be taken for one of the tuple's.
func (p *planner) eachReady(l *literal) bool {
	ready := p.bound(l.content.conduit) && (!l.content.isRange() || p.bound(l.content.offset) &&
		p.bound(l.content.rangeEnd))
	l.allTerms(func(term Value) {
		local := term.kind == kindVariable && int(term.number) >= l.content.localFrom &&
			int(term.number) < l.content.localTo
		ready = ready && (local || p.bound(term))
	})
	return ready
}

// missing returns an unbound variable of a stuck literal.
func (p *planner) missing(l *literal) int64 {
	found := int64(-1)
	l.allTerms(func(term Value) {
		local := l.content != nil && l.isEach() && term.kind == kindVariable &&
			int(term.number) >= l.content.localFrom && int(term.number) < l.content.localTo
		if found < 0 && !local && !p.bound(term) {
			found = term.number
		}
	})
	if found < 0 {
		bug.Found("a literal is stuck although everything in it is bound: %s", signatures[l.op].name)
	}
	return found
}

// finish renumbers an ordered body and returns it as a clause.
func (p *planner) finish(ordered []literal, position Position) clause {
	mapping := func(term Value) Value {
		if term.kind == kindVariable {
			term.number = p.numbers[term.number]
		}
		return term
	}
	for i := range ordered {
		ordered[i] = ordered[i].replace(mapping)
	}
	return clause{body: ordered, variables: len(p.ordered), position: position, names: p.ordered}
}
