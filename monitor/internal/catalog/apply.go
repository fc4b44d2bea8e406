// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// Candidate is a bundle that has been checked but is not in force.
type Candidate struct{ rules *ruleset }

// Compile checks a bundle for every possible error.
func Compile(bundle Bundle) (*Candidate, error) {
	rules, err := compileBundle(bundle.clone())
	if err != nil {
		return nil, fmt.Errorf("check bundle: %w", err)
	}
	return &Candidate{rules}, nil
}

// Bind returns the policy that a reference names in the candidate.
func (c *Candidate) Bind(reference Reference) (*policy.Policy, error) { return c.rules.bind(reference) }

// Apply puts a bundle in force, in one durable step. If the bundle has the same content
// hash as the one in force, only the label changes.
func (c *Catalog) Apply(bundle Bundle) (*Change, error) {
	bundle = bundle.clone()
	rules, err := compileBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("apply bundle: %w", err)
	}
	return c.commit("apply bundle", func(d *draft) error {
		old := d.next.rules.bundle
		if old.Version == 0 || old.Hash != bundle.Hash {
			return d.apply(rules)
		}
		if old.Label == bundle.Label {
			return nil
		}
		relabelled := *d.next.rules
		relabelled.bundle.Label = bundle.Label
		d.next.rules = &relabelled
		return d.storeBundle()
	})
}

// Revert reverts an Apply in one durable step: it restores the previous bundle, and the
// facts that Apply added and removed. Conduits that were registered since stay
// registered.
func (c *Catalog) Revert(applied *Change) (*Change, error) {
	return c.commit("revert bundle", func(d *draft) error {
		if d.next.rules != applied.After.rules {
			return fmt.Errorf("bundle %s is no longer in force", applied.After.BundleHash())
		}
		return d.replace(applied.Before.rules, applied.Added, applied.Removed)
	})
}

// errDiscarded ends a transaction whose changes are discarded.
var errDiscarded = errors.New("discarded")

// Shadow returns the change that Apply would make, with the resulting state. It changes
// neither the disk, nor the view, nor the state of readers. A class number that both
// states have means the same class. Numbers that only the shadow has will mean other
// classes later.
func (c *Catalog) Shadow(bundle Bundle) (*Change, error) {
	rules, err := compileBundle(bundle.clone())
	if err != nil {
		return nil, fmt.Errorf("shadow bundle: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	d := newDraft(c.state.Load())
	err = c.database.Update(func(tx *bbolt.Tx) error {
		d.writeTo(tx)
		if err := errors.Join(d.apply(rules), d.finish()); err != nil {
			return err
		}
		return errDiscarded
	})
	if !errors.Is(err, errDiscarded) {
		return nil, fmt.Errorf("shadow bundle: %w", diskFull(err))
	}
	return d.publish(), nil
}

func (d *draft) apply(rules *ruleset) error {
	old := d.next.rules.bundle
	rules.bundle.Version = old.Version + 1
	remove, add := factChange(old.Facts, rules.bundle.Facts)
	left, come, err := d.turnSources(old, rules)
	if err != nil {
		return err
	}
	if err := rules.checkElsewhere(come); err != nil {
		return err
	}
	remove = append(d.unsaid(remove, rules.bundle.Sources, ""), d.unclaimed(left, rules, "")...)
	return d.replace(rules, remove, append(add, come...))
}

func (d *draft) storeBundle() error {
	text, err := d.next.rules.bundle.encode()
	if err != nil {
		return err
	}
	return d.ledger.bucket(bucketMeta).Put([]byte("bundle"), text)
}

// replace puts rules in force, and their facts with them.
func (d *draft) replace(rules *ruleset, remove, add []policy.Fact) error {
	d.change.Bundle = true
	remove = append(remove, d.next.formerEntries(rules)...)
	d.next.rules, d.binder = rules, newBinder(rules)
	if err := d.storeBundle(); err != nil {
		return err
	}
	d.rebind()
	if err := d.facts(remove, add); err != nil {
		return err
	}
	for _, rule := range rules.bundle.Rules {
		// Some classes are needed before their first conduit: of a pipe, or of a
		// directory in which files will be made.
		if bound, err := d.binder.bind(rule.Policy); err == nil && !rule.hasHoles() {
			d.classOf(rule.record(bound))
		}
	}
	return d.reclassifyAll()
}

// record returns the class of the conduits of a rule without placeholders that no fact
// mentions.
func (r Rule) record(bound *policy.Policy) classRecord {
	id := bound.ID()
	return classRecord{Set: r.Set, Kind: r.Kind, Internal: r.Internal, Directory: r.Directory,
		Type: r.Type, Reference: Reference{r.Policy.Policy, pattern.Fill(r.Policy.Arguments, nil)}, PolicyID: id[:]}
}

// rebind retires the classes whose policy was removed and revives those whose policy has
// returned.
func (d *draft) rebind() {
	d.ownClasses()
	old := d.next.index
	d.next.index = newClassIndex()
	for key, number := range old.keys {
		info := &d.next.classes[number]
		var record classRecord
		if err := json.Unmarshal([]byte(key), &record); err != nil {
			bug.Found("class %d has the key %q: %v", number, key, err)
		}
		class := record.class(number, d.binder)
		if (class.Policy == nil) != (info.Policy == nil) {
			d.touch[number] = true
		}
		info.Class = class
	}
	keys := make([]string, len(d.next.classes))
	for key, number := range old.keys {
		keys[number] = key
	}
	for _, info := range d.next.classes[1:] {
		d.next.index.add(keys[info.Number], info.Number, info.Set, info.Reference.Policy, info.Policy)
	}
}

func (d *draft) reclassifyAll() error {
	type entry struct {
		id     uint32
		record conduitRecord
	}
	var moves []entry
	err := d.tx.Bucket(bucketConduits).ForEach(func(key, value []byte) error {
		record, err := decodeConduit(value)
		if err != nil || record.isRetired {
			return err
		}
		to, err := d.classify(record.name)
		if err == nil && to != record.class {
			moves = append(moves, entry{binary.BigEndian.Uint32(key), record})
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, entry := range moves {
		to, err := d.classify(entry.record.name)
		if err != nil {
			return err
		}
		if err := d.move(entry.id, entry.record, to); err != nil {
			return err
		}
	}
	return nil
}
