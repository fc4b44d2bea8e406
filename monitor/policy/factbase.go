// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// ErrInvalidFact is wrapped by the errors of [FactBase.Add].
var ErrInvalidFact = errors.New("invalid fact")

// String returns the fact in the form of policies: "c"@5 says t("a", 1).
func (f Fact) String() string {
	place := strconv.Quote(f.Conduit)
	if f.Positioned {
		place += "@" + strconv.FormatInt(f.Offset, 10)
	}
	return place + " says " + f.Relation + NewTuple(f.Arguments...).String()
}

// check reports why the fact cannot be in a conduit.
func (f Fact) check() error {
	switch {
	case f.Conduit == "":
		return fmt.Errorf("%w: says %s: the conduit's name is empty", ErrInvalidFact, f.Relation)
	case f.Relation == "":
		return fmt.Errorf("%w in conduit %q: the relation's name is empty", ErrInvalidFact, f.Conduit)
	case len(f.Arguments) > MaxArguments:
		return fmt.Errorf("%w: %q says %s: %d arguments: %w (at most %d)",
			ErrInvalidFact, f.Conduit, f.Relation, len(f.Arguments), ErrTooManyArguments, MaxArguments)
	}
	for i, argument := range f.Arguments {
		if !argument.concrete() {
			return fmt.Errorf("%w: %q says %s: argument %d is no string, integer or time",
				ErrInvalidFact, f.Conduit, f.Relation, i+1)
		}
	}
	return nil
}

// FactBase is a set of facts in memory that changes, for programs and tests without a fact
// store of their own. Several goroutines may read it at once; a writer must be alone. It finds
// facts as a [FactIndex] does.
type FactBase struct{ builder FactBuilder }

// NewFactBase returns an empty set.
func NewFactBase() *FactBase { return new(FactBase) }

// Len returns the number of facts. A tuple at several offsets of a conduit counts once.
func (b *FactBase) Len() int { return b.builder.index.size }

// Add adds a fact and reports whether it was new. A positioned fact also matches patterns
// without an offset.
func (b *FactBase) Add(fact Fact) (bool, error) {
	_, added, err := b.builder.change(nil, []Fact{fact})
	return len(added) > 0, err
}

// Remove removes a fact and reports whether it was there. Without a position it is
// removed from every offset of the conduit.
func (b *FactBase) Remove(fact Fact) bool {
	removed, _, err := b.builder.change([]Fact{fact}, nil)
	return err == nil && len(removed) > 0
}

// Has implements [Facts].
func (b *FactBase) Has(pattern Pattern) bool { return b.builder.index.Has(pattern) }

// Lookup implements [Facts].
func (b *FactBase) Lookup(pattern Pattern, yield func(Fact) bool) {
	b.builder.index.Lookup(pattern, yield)
}

// selects reports whether a fact of the pattern's relation and arity has the pattern's values.
func (p Pattern) selects(fact Fact) bool {
	if p.Positioned && p.Offset.kind != Wildcard && p.Offset != Integer(fact.Offset) {
		return false
	}
	for i, argument := range p.Arguments {
		if argument.kind != Wildcard && argument != fact.Arguments[i] {
			return false
		}
	}
	return true
}

// isExact reports whether the pattern fixes everything but the conduit.
func (p Pattern) isExact() bool {
	open := func(value Value) bool { return value.kind == Wildcard }
	return !slices.ContainsFunc(p.Arguments, open) && (!p.Positioned || p.Offset.kind == IntegerValue)
}
