// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/policy"
)

// Move is a conduit that changed its class; 0 is no class.
type Move struct{ ID, From, To uint32 }

// Change is the effect of one durable step.
type Change struct {
	Before, After  *State
	Added, Removed []policy.Fact // facts that were really added and removed
	Moved          []Move        // in ascending order of ID
	// Classes are those whose analysis may differ: new, retired or revived ones, and
	// those that got their first member or lost the last one. Ascending.
	Classes []uint32
	// Bundle reports that the bundle changed, so that everything else may have changed,
	// too.
	Bundle bool
	// Taken reports that a conduit has gone, or has another policy, and that policies of the
	// bundle ask for conduits by their numbers.
	Taken bool
}

// Principals returns those whose key the change may have changed, or removed.
func (c *Change) Principals() []string {
	var names []string
	for _, facts := range [][]policy.Fact{c.Added, c.Removed} {
		for _, fact := range facts {
			if knownfacts.IsKey(fact) && len(fact.Arguments) > 0 {
				names = append(names, fact.Arguments[0].Text())
			}
		}
	}
	if c.Bundle {
		names = append(slices.Collect(maps.Keys(c.Before.rules.principals)), names...)
		names = append(slices.Collect(maps.Keys(c.After.rules.principals)), names...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// draft is the next state under construction.
type draft struct {
	tx     *bbolt.Tx
	ledger *ledger
	change *Change
	next   *State
	binder *binder
	keys   map[string]uint32 // classes this draft made, by key
	own    bool              // next.classes is no longer the previous state's
	touch  map[uint32]bool   // for Change.Classes
	moves  map[uint32]Move   // by conduit
}

// commit makes one durable step: all of work, or nothing. The change is in force when it returns.
func (c *Catalog) commit(operation string, work func(*draft) error) (*Change, error) {
	return c.AtOnce().commit(operation, work)
}

// commitThen lets enter put the change in force that is durable.
func (c *Catalog) commitThen(operation string, work func(*draft) error, enter Enter) (*Change, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	d := newDraft(c.state.Load())
	err := c.database.Update(func(tx *bbolt.Tx) error {
		d.writeTo(tx)
		if err := work(d); err != nil {
			return err
		}
		return d.finish()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, diskFull(err))
	}
	change := d.publish()
	inForce := sync.OnceValue(func() error {
		c.state.Store(change.After)
		return c.follow(change)
	})
	defer inForce() //nolint:errcheck // has been called, or enter says why not
	return change, enter(change, inForce)
}

func newDraft(previous *State) *draft {
	copied := *previous
	return &draft{
		next: &copied, change: &Change{Before: previous}, binder: newBinder(previous.rules),
		keys: make(map[string]uint32), touch: make(map[uint32]bool), moves: make(map[uint32]Move),
	}
}

func (d *draft) writeTo(tx *bbolt.Tx) { d.tx, d.ledger = tx, openLedger(tx) }

// publish turns the draft into a state.
func (d *draft) publish() *Change {
	made := make([]string, 0, len(d.keys))
	for key := range d.keys {
		made = append(made, key)
	}
	slices.SortFunc(made, func(a, b string) int { return cmp.Compare(d.keys[a], d.keys[b]) })
	for _, key := range made {
		class := d.next.classes[d.keys[key]]
		d.next.index.add(key, class.Number, class.Set, class.Reference.Policy, class.Policy)
	}
	d.change.After = d.next
	return d.change
}

// follow updates the derived files after a change of the database: links first, so that
// the table never names a class in which a conduit is not linked yet.
func (c *Catalog) follow(change *Change) error {
	var failures []error
	if c.view != nil {
		failures = append(failures, c.view.move(change.After, change.Moved))
	}
	failures = append(failures, c.table.apply(change.Moved))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("%w: %w; Verify repairs it, at the latest when the monitor starts", ErrView, err)
	}
	return nil
}

// finish stores the changes of the draft.
func (d *draft) finish() error {
	d.change.Moved = make([]Move, 0, len(d.moves))
	for _, id := range sortedKeys(d.moves) {
		if move := d.moves[id]; move.From != move.To {
			d.change.Moved = append(d.change.Moved, move)
		}
	}
	d.change.Classes = sortedKeys(d.touch)
	if len(d.change.Moved) > 0 {
		d.next.conduits = d.next.conduits.with(d.change.Moved)
		d.elect()
	}
	for _, key := range sortedKeys(d.keys) {
		if err := d.ledger.bucket(bucketClasses).Put(numberKey(d.keys[key]), []byte(key)); err != nil {
			return err
		}
	}
	d.change.Taken = d.next.rules.asksForConduits &&
		slices.ContainsFunc(d.change.Moved, func(m Move) bool { return m.From != 0 })
	if len(d.change.Added)+len(d.change.Removed)+len(d.change.Classes) > 0 || d.change.Bundle || d.change.Taken {
		d.next.factsVersion++
		version := binary.BigEndian.AppendUint64(nil, d.next.factsVersion)
		if err := d.ledger.bucket(bucketMeta).Put([]byte("version"), version); err != nil {
			return err
		}
	}
	return d.ledger.close()
}

// elect gives another representative to each class that lost its own.
func (d *draft) elect() {
	for _, move := range d.change.Moved {
		if info := &d.next.classes[move.From]; move.From != 0 && info.Representative == move.ID {
			info.Representative = 0
			if info.Members > 0 {
				info.Representative = d.next.conduits.another(move.From)
			}
		}
		if info := &d.next.classes[move.To]; move.To != 0 && info.Representative == 0 {
			info.Representative = move.ID
		}
	}
}

func (d *draft) ownClasses() {
	if !d.own {
		d.own = true
		d.next.classes = slices.Clone(d.next.classes)
	}
}

func (d *draft) classOf(record classRecord) uint32 {
	key := record.key()
	if number, known := d.next.index.number(key); known {
		return number
	}
	if number, known := d.keys[key]; known {
		return number
	}
	d.ownClasses()
	number := uint32(len(d.next.classes)) //nolint:gosec // bounded by the conduits
	d.next.classes = append(d.next.classes, ClassInfo{Class: record.class(number, d.binder)})
	d.keys[key] = number
	d.touch[number] = true
	return number
}

// move puts a conduit into a class and stores its record, whose class is the old one.
func (d *draft) move(id uint32, record conduitRecord, to uint32) error {
	from := record.class
	if record.class = to; from != to {
		d.count(from, -1)
		d.count(to, +1)
	}
	if first, again := d.moves[id]; again {
		d.moves[id] = Move{ID: id, From: first.From, To: to}
	} else if from != to {
		d.moves[id] = Move{ID: id, From: from, To: to}
	}
	return d.ledger.bucket(bucketConduits).Put(numberKey(id), record.encode())
}

// count updates the number of a class's members. A class that becomes empty, or is no
// longer empty, is to be analysed.
func (d *draft) count(class uint32, by int32) {
	if class == 0 {
		return
	}
	d.ownClasses()
	info := &d.next.classes[class]
	info.Members = uint32(int32(info.Members) + by) //nolint:gosec // counts conduits, whose numbers are below 2^31
	if info.Members == 0 || info.Members == 1 && by > 0 {
		d.touch[class] = true
	}
}

// facts changes facts and the classes of the conduits that they mention.
func (d *draft) facts(remove, add []policy.Fact) error {
	for _, fact := range slices.Concat(remove, add) {
		if err := checkFact(fact); err != nil {
			return err
		}
	}
	next, removed, added, err := d.next.facts.Changed(remove, add)
	if err != nil || len(added)+len(removed) == 0 {
		return err
	}
	if slices.ContainsFunc(added, func(fact policy.Fact) bool { return fact.Positioned }) {
		if err := d.ledger.bucket(bucketMeta).Put(keySchema, []byte(schemaOffsets)); err != nil {
			return err
		}
	}
	bucket := d.ledger.bucket(bucketFacts)
	for _, change := range groupChanges(removed, added) {
		if err := storeFacts(bucket, change); err != nil {
			return err
		}
	}
	d.next.facts = next
	d.change.Added = append(d.change.Added, added...)
	d.change.Removed = append(d.change.Removed, removed...)
	return d.reclassify(mentioned(slices.Concat(added, removed)))
}

// mentioned lists the names in facts, sorted. They may be names of conduits.
func mentioned(facts []policy.Fact) []string {
	names := make(map[string]bool)
	for _, fact := range facts {
		names[fact.Conduit] = true
		for _, argument := range fact.Arguments {
			if argument.Kind() == policy.StringValue {
				names[argument.Text()] = true
			}
		}
	}
	return sortedKeys(names)
}

func (d *draft) reclassify(names []string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		key := d.tx.Bucket(bucketNames).Get([]byte(name))
		if key == nil {
			continue
		}
		record, err := decodeConduit(d.tx.Bucket(bucketConduits).Get(key))
		if err != nil {
			return fmt.Errorf("read conduit %s: %w", name, err)
		}
		to, err := d.classify(name)
		if err != nil {
			return err
		}
		if to == record.class {
			continue
		}
		if err := d.move(binary.BigEndian.Uint32(key), record, to); err != nil {
			return err
		}
	}
	return nil
}

// checkStated checks a fact of a bundle or of a source. Only what a conduit contains is at
// an offset of it.
func checkStated(fact policy.Fact) error {
	if fact.Positioned {
		return fmt.Errorf("fact in %q has an offset; facts of manifests and of sources have none", fact.Conduit)
	}
	return checkFact(fact)
}

func checkFact(fact policy.Fact) error {
	switch {
	case fact.Positioned && fact.Offset < 0:
		return fmt.Errorf("fact in %q is at offset %d; offsets begin at 0", fact.Conduit, fact.Offset)
	case fact.Conduit == "" || fact.Relation == "":
		return fmt.Errorf("fact %q says %q has no conduit or no relation", fact.Conduit, fact.Relation)
	case len(fact.Conduit) > 1024 || len(fact.Relation) > 64:
		return fmt.Errorf("fact in %.80q has a conduit longer than 1024 or a relation longer than 64 bytes",
			fact.Conduit)
	case len(fact.Arguments) > policy.MaxArguments:
		return fmt.Errorf("fact in %q has %d values; at most %d are allowed", fact.Conduit, len(fact.Arguments),
			policy.MaxArguments)
	}
	for _, argument := range fact.Arguments {
		switch {
		case argument.Kind() == policy.Wildcard:
			return fmt.Errorf("fact in %q has an empty value; a fact needs a string, a number or a time", fact.Conduit)
		case len(argument.Text()) > policy.MaxString:
			return fmt.Errorf("fact in %q has a value of %d bytes; at most %d are allowed", fact.Conduit,
				len(argument.Text()), policy.MaxString)
		}
	}
	return nil
}
