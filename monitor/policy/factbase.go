// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrInvalidFact is wrapped by the errors of [FactBase.Add] and [Fact.Check].
var ErrInvalidFact = errors.New("invalid fact")

// Check reports what keeps the fact from standing in a conduit.
func (f Fact) Check() error {
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

type relationKey struct {
	name       string
	arguments  int
	positioned bool
}

// FactBase is an indexed set of facts in memory. Any number of goroutines may read
// it at once; a writer must be alone.
//
// Every combination of bound columns is answered from the shortest matching list,
// so a lookup costs no more than the number of facts that share its rarest bound
// value within the relation; a fully bound one costs one hash lookup.
type FactBase struct {
	symbols   symbols
	relations map[relationKey]*relation
	live      int
}

// NewFactBase returns an empty set.
func NewFactBase() *FactBase {
	return &FactBase{
		symbols:   symbols{numbers: make(map[Value]uint32)},
		relations: make(map[relationKey]*relation),
	}
}

// Clone returns an independent copy.
func (b *FactBase) Clone() *FactBase {
	copied := &FactBase{
		symbols: symbols{
			values:     slices.Clone(b.symbols.values),
			references: slices.Clone(b.symbols.references),
			numbers:    maps.Clone(b.symbols.numbers),
			free:       slices.Clone(b.symbols.free),
		},
		relations: make(map[relationKey]*relation, len(b.relations)),
		live:      b.live,
	}
	for key, r := range b.relations {
		copied.relations[key] = r.clone()
	}
	return copied
}

// Len returns the number of facts; a tuple that stands at several offsets of a
// conduit counts once.
func (b *FactBase) Len() int { return b.live }

// Add puts a fact in and reports whether it was new. A positioned fact also
// matches patterns that do not ask for an offset.
func (b *FactBase) Add(fact Fact) (bool, error) {
	if err := fact.Check(); err != nil {
		return false, err
	}
	if !fact.Positioned {
		added := b.insert(fact)
		if added {
			b.live++
		}
		return added, nil
	}
	added := b.insert(fact)
	fact.Positioned = false
	if b.insert(fact) {
		b.live++
	}
	return added, nil
}

// Remove takes a fact out and reports whether it was there. Without a position it
// goes from every offset of the conduit.
func (b *FactBase) Remove(fact Fact) bool {
	if fact.Check() != nil {
		return false
	}
	plain := fact
	plain.Positioned = false
	if fact.Positioned {
		if !b.delete(fact) {
			return false
		}
		if b.Has(Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments, Positioned: true}) {
			return true
		}
	} else {
		var offsets []int64
		b.Lookup(Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments, Positioned: true},
			func(found Fact) bool { offsets = append(offsets, found.Offset); return true })
		for _, offset := range offsets {
			positioned := fact
			positioned.Positioned, positioned.Offset = true, offset
			b.delete(positioned)
		}
	}
	if !b.delete(plain) {
		return false
	}
	b.live--
	return true
}

func (f Fact) columns() []Value {
	values := make([]Value, 0, len(f.Arguments)+2)
	values = append(values, String(f.Conduit))
	if f.Positioned {
		values = append(values, Integer(f.Offset))
	}
	return append(values, f.Arguments...)
}

func (b *FactBase) insert(fact Fact) bool {
	key := relationKey{fact.Relation, len(fact.Arguments), fact.Positioned}
	columns := fact.columns()
	r := b.relations[key]
	if r == nil {
		r = newRelation(len(columns))
		b.relations[key] = r
	}
	row := make([]uint32, len(columns))
	for i, value := range columns {
		row[i] = b.symbols.acquire(value)
	}
	if r.insert(row) {
		return true
	}
	for _, symbol := range row {
		b.symbols.release(symbol)
	}
	return false
}

func (b *FactBase) delete(fact Fact) bool {
	key := relationKey{fact.Relation, len(fact.Arguments), fact.Positioned}
	r := b.relations[key]
	if r == nil {
		return false
	}
	columns := fact.columns()
	row := make([]uint32, len(columns))
	for i, value := range columns {
		symbol, known := b.symbols.number(value)
		if !known {
			return false
		}
		row[i] = symbol
	}
	if !r.delete(row) {
		return false
	}
	for _, symbol := range row {
		b.symbols.release(symbol)
	}
	if r.live == 0 {
		delete(b.relations, key)
	}
	return true
}

// query translates a pattern to symbol numbers; ok is false when nothing can match.
func (b *FactBase) query(pattern Pattern, storage *[MaxArguments + 2]uint32) (r *relation, query []uint32, ok bool) {
	r = b.relations[relationKey{pattern.Relation, len(pattern.Arguments), pattern.Positioned}]
	if r == nil {
		return nil, nil, false
	}
	query = storage[:0]
	symbol := unbound
	if pattern.Conduit != "" {
		if symbol, ok = b.symbols.number(String(pattern.Conduit)); !ok {
			return nil, nil, false
		}
	}
	query = append(query, symbol)
	if pattern.Positioned {
		if symbol, ok = b.bound(pattern.Offset); !ok {
			return nil, nil, false
		}
		query = append(query, symbol)
	}
	for _, argument := range pattern.Arguments {
		if symbol, ok = b.bound(argument); !ok {
			return nil, nil, false
		}
		query = append(query, symbol)
	}
	return r, query, true
}

func (b *FactBase) bound(value Value) (symbol uint32, ok bool) {
	if value.kind == Wildcard {
		return unbound, true
	}
	return b.symbols.number(value)
}

// Has implements [Facts].
func (b *FactBase) Has(pattern Pattern) bool {
	var storage [MaxArguments + 2]uint32
	r, query, ok := b.query(pattern, &storage)
	if !ok {
		return false
	}
	found := false
	r.matches(query, func(uint32) bool { found = true; return false })
	return found
}

// Lookup implements [Facts].
func (b *FactBase) Lookup(pattern Pattern, yield func(Fact) bool) {
	var storage [MaxArguments + 2]uint32
	r, query, ok := b.query(pattern, &storage)
	if !ok {
		return
	}
	var rows []uint32
	r.matches(query, func(row uint32) bool { rows = append(rows, row); return true })
	b.sort(r, rows)
	b.yield(r, rows, pattern.Relation, pattern.Positioned, yield)
}

// sort orders rows by their values, which unlike their numbers do not depend on
// the order in which facts came and went.
func (b *FactBase) sort(r *relation, rows []uint32) {
	if len(rows) < 2 {
		return
	}
	slices.SortFunc(rows, func(first, second uint32) int {
		left, right := r.row(first), r.row(second)
		for column, symbol := range left {
			if symbol != right[column] {
				return b.symbols.values[symbol].Compare(b.symbols.values[right[column]])
			}
		}
		return 0
	})
}

func (b *FactBase) yield(r *relation, rows []uint32, name string, positioned bool, yield func(Fact) bool) {
	var storage [MaxArguments]Value
	for _, number := range rows {
		row := r.row(number)
		fact := Fact{Conduit: b.symbols.values[row[0]].text, Relation: name, Positioned: positioned}
		arguments := row[1:]
		if positioned {
			fact.Offset, arguments = b.symbols.values[row[1]].number, row[2:]
		}
		fact.Arguments = storage[:len(arguments)]
		for i, symbol := range arguments {
			fact.Arguments[i] = b.symbols.values[symbol]
		}
		if !yield(fact) {
			return
		}
	}
}

// Mentioning calls yield with each fact that has value among its arguments, until
// yield returns false, ordered by relation and then as Lookup orders. Offsets are
// not told. The fact's Arguments are reused after yield returns.
func (b *FactBase) Mentioning(value Value, yield func(Fact) bool) {
	symbol, known := b.symbols.number(value)
	if !known {
		return
	}
	keys := slices.SortedFunc(maps.Keys(b.relations), func(first, second relationKey) int {
		return cmp.Or(strings.Compare(first.name, second.name), cmp.Compare(first.arguments, second.arguments))
	})
	for _, key := range keys {
		if key.positioned {
			continue
		}
		r := b.relations[key]
		rows := r.holding(symbol)
		b.sort(r, rows)
		stopped := false
		b.yield(r, rows, key.name, false, func(fact Fact) bool {
			stopped = !yield(fact)
			return !stopped
		})
		if stopped {
			return
		}
	}
}

// holding returns the rows with symbol in any column but the first, each once.
func (r *relation) holding(symbol uint32) []uint32 {
	var rows []uint32
	for column := 1; column < r.columns; column++ {
		list, exists := r.chains[column][symbol]
		if !exists {
			continue
		}
		for number := list.head; number != end; number = r.next[int(number)*r.columns+column] {
			if !slices.Contains(r.row(number)[1:column], symbol) {
				rows = append(rows, number)
			}
		}
	}
	return rows
}
