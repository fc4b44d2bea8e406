// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/codec"
	"shai.dev/monitor/policy"
)

// Facts that the monitor fetches from sources. What each source of the bundle says is
// stored beside the facts themselves. A fact is thus removed when the last source that
// says it no longer does, and a source's position changes together with its facts:
//
// 	sources / <source> / "position"                 -> text
// 	                   / "count"                    -> 8 bytes, big-endian
// 	                   / "facts" / <group> <tuple>  -> nothing
//
// A source that the bundle in force does not have says nothing. Its bucket stays until
// the next apply, so that [Catalog.Revert] finds it.

var (
	keyPosition    = []byte("position")
	keyCount       = []byte("count")
	bucketOwnFacts = []byte("facts")
)

// Fetched is everything that a source says at one moment.
type Fetched struct {
	Position string // where to continue; only the source knows its meaning
	Facts    []policy.Fact
}

// SourceStatus is the known state of a source.
type SourceStatus struct {
	Position string
	Facts    uint64
}

// Step is one change of a source's facts.
type Step struct {
	Verb Verb
	Fact policy.Fact
}

// Verb says what a step does with a fact.
type Verb string

// The verbs of steps.
const (
	StepAdd     Verb = "add"
	StepRemove  Verb = "remove"
	StepReplace Verb = "replace" // add it, and remove the source's other facts of the conduit and relation
)

// Source returns what is known of a source of the bundle in force; false when nothing is.
func (c *Catalog) Source(source string) (status SourceStatus, known bool) {
	if !slices.Contains(c.State().Bundle().Sources, source) {
		return status, false
	}
	_ = c.database.View(func(tx *bbolt.Tx) error {
		if bucket := tx.Bucket(bucketSources).Bucket([]byte(source)); bucket != nil {
			known = true
			status.Position = string(bucket.Get(keyPosition))
			status.Facts = binary.BigEndian.Uint64(bucket.Get(keyCount))
		}
		return nil
	})
	return status, known
}

// ReplaceSource makes a source say exactly what was fetched, in one durable step.
func (w Writer) ReplaceSource(source string, fetched Fetched) (*Change, error) {
	return w.changeSource(source, fetched.Position, func(o *owned) error { return o.become(fetched.Facts) })
}

// ChangeSource applies steps, in their order, and changes the source's position, in one
// durable step: no step is applied twice or left out.
func (w Writer) ChangeSource(source, position string, steps []Step) (*Change, error) {
	return w.changeSource(source, position, func(o *owned) error { return o.follow(steps) })
}

func (w Writer) changeSource(source, position string, work func(*owned) error) (*Change, error) {
	return w.commit("change facts of source "+source, func(d *draft) error {
		bundle := d.next.rules.bundle
		bucket := d.ledger.bucket(bucketSources).within([]byte(source))
		if bucket == nil || !slices.Contains(bundle.Sources, source) {
			return errors.New("the bundle in force has no such source")
		}
		o := ownedBy(bucket)
		if err := work(o); err != nil {
			return err
		}
		remove, add, err := o.close(position)
		if err != nil {
			return err
		}
		if err := d.next.rules.checkElsewhere(add); err != nil {
			return err
		}
		return d.facts(d.unclaimed(remove, d.next.rules, source), add)
	})
}

// turnSources returns the facts that are removed and added with the sources of the next
// bundle.
func (d *draft) turnSources(old Bundle, next *ruleset) (remove, add []policy.Fact, err error) {
	root := d.ledger.bucket(bucketSources)
	var left [][]byte // of a bundle before the old one, or of one that was reverted
	_ = root.ForEach(func(name, _ []byte) error {
		if !slices.Contains(old.Sources, string(name)) {
			left = append(left, slices.Clone(name))
		}
		return nil
	})
	for _, name := range left {
		if err := root.remove(name); err != nil {
			return nil, nil, err
		}
	}
	for _, source := range next.bundle.Sources {
		if slices.Contains(old.Sources, source) {
			continue
		}
		fetched, there := next.bundle.Fetched[source]
		if !there {
			return nil, nil, fmt.Errorf("facts of source %s were never fetched", source)
		}
		bucket, err := root.create([]byte(source))
		if err != nil {
			return nil, nil, err
		}
		o := ownedBy(bucket)
		if err := o.become(fetched.Facts); err != nil {
			return nil, nil, err
		}
		if _, _, err := o.close(fetched.Position); err != nil {
			return nil, nil, err
		}
		add = append(add, fetched.Facts...)
	}
	next.bundle.Fetched = nil // it is on disk, and would stay in memory here
	for _, source := range old.Sources {
		if bucket := root.within([]byte(source)); bucket != nil && !slices.Contains(next.bundle.Sources, source) {
			remove = append(remove, ownedBy(bucket).all()...)
		}
	}
	return remove, add, nil
}

// unclaimed leaves out the facts that the bundle or another source still states.
func (d *draft) unclaimed(facts []policy.Fact, rules *ruleset, except string) []policy.Fact {
	speaking := rules.speaking
	if slices.ContainsFunc(facts, func(fact policy.Fact) bool { return speaking()[fact.Conduit] }) {
		facts, _ = factChange(facts, rules.bundle.Facts)
	}
	return d.unsaid(facts, rules.bundle.Sources, except)
}

// unsaid leaves out the facts that one of the sources says.
func (d *draft) unsaid(facts []policy.Fact, sources []string, except string) []policy.Fact {
	for _, source := range sources {
		if bucket := d.tx.Bucket(bucketSources).Bucket([]byte(source)); bucket != nil && source != except {
			own := bucket.Bucket(bucketOwnFacts)
			facts = slices.DeleteFunc(facts,
				func(fact policy.Fact) bool { return own.Get([]byte(factKey(fact))) != nil })
		}
	}
	return facts
}

// owned holds the facts of a source that is being changed.
type owned struct {
	bucket *records
	facts  *records
	before map[string]bool // for the keys that were touched: whether they existed
}

func ownedBy(bucket *records) *owned {
	return &owned{bucket: bucket, facts: bucket.within(bucketOwnFacts), before: make(map[string]bool)}
}

// set adds or removes a fact.
func (o *owned) set(key string, stands bool) error {
	stood := o.facts.Get([]byte(key)) != nil
	if _, touched := o.before[key]; !touched {
		o.before[key] = stood
	}
	switch {
	case stands && !stood:
		return o.facts.Put([]byte(key), []byte{})
	case !stands && stood:
		return o.facts.Delete([]byte(key))
	}
	return nil
}

// become makes the source say exactly the facts.
func (o *owned) become(facts []policy.Fact) error {
	if o.facts == nil {
		var err error
		if o.facts, err = o.bucket.create(bucketOwnFacts); err != nil {
			return err
		}
	}
	keep := make(map[string]bool, len(facts))
	for _, fact := range facts {
		if err := checkStated(fact); err != nil {
			return err
		}
		keep[factKey(fact)] = true
	}
	var gone []string
	_ = o.facts.ForEach(func(key, _ []byte) error {
		if !keep[string(key)] {
			gone = append(gone, string(key))
		}
		return nil
	})
	for _, key := range gone {
		if err := o.set(key, false); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(keep) {
		if err := o.set(key, true); err != nil {
			return err
		}
	}
	return nil
}

func (o *owned) follow(steps []Step) error {
	for _, step := range steps {
		if err := checkStated(step.Fact); err != nil {
			return err
		}
		if step.Verb == StepReplace {
			for _, key := range o.saidAlike(step.Fact) {
				if err := o.set(key, false); err != nil {
					return err
				}
			}
		}
		if err := o.set(factKey(step.Fact), step.Verb != StepRemove); err != nil {
			return err
		}
	}
	return nil
}

// saidAlike returns the keys of the conduit's facts with the same relation and any number
// of values.
func (o *owned) saidAlike(fact policy.Fact) (keys []string) {
	group := encodeGroup(policy.GroupKey{Conduit: fact.Conduit, Relation: fact.Relation})
	prefix := string(group[:len(group)-1])
	cursor := o.facts.Cursor()
	for key, _ := cursor.Seek([]byte(prefix)); len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix; key,
		_ = cursor.Next() {
		keys = append(keys, string(key))
	}
	return keys
}

// close stores position and count, and returns the facts that were removed and added.
func (o *owned) close(position string) (remove, add []policy.Fact, err error) {
	var count uint64
	if text := o.bucket.Get(keyCount); text != nil {
		count = binary.BigEndian.Uint64(text)
	}
	for _, key := range sortedKeys(o.before) {
		stands := o.facts.Get([]byte(key)) != nil
		switch {
		case stands && !o.before[key]:
			add = append(add, factOf([]byte(key)))
		case !stands && o.before[key]:
			remove = append(remove, factOf([]byte(key)))
		}
	}
	count += uint64(len(add)) - uint64(len(remove))
	if err := o.bucket.Put(keyCount, binary.BigEndian.AppendUint64(nil, count)); err != nil {
		return nil, nil, err
	}
	return remove, add, o.bucket.Put(keyPosition, []byte(position))
}

// all returns everything that the source says.
func (o *owned) all() (facts []policy.Fact) {
	_ = o.facts.ForEach(func(key, _ []byte) error {
		facts = append(facts, factOf(key))
		return nil
	})
	return facts
}

// factOf returns the fact from which factKey made the key.
func factOf(key []byte) policy.Fact {
	r := codec.NewReader(key)
	group := decodeGroup(r)
	fact := policy.Fact{Conduit: group.Conduit, Relation: group.Relation}
	for range group.Arity {
		fact.Arguments = append(fact.Arguments, decodeValue(r))
	}
	if r.Broken() {
		bug.Found("key %x of a source's fact is malformed", key)
	}
	return fact
}
