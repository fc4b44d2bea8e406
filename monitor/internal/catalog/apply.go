// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Apply puts a bundle in force, in one durable step. A bundle with the same content
// hash as the one in force changes nothing.
func (c *Catalog) Apply(bundle Bundle) (*Change, error) {
	bundle = bundle.clone()
	rules, err := compileBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("apply bundle: %w", err)
	}
	return c.commit("apply bundle", func(d *draft) error {
		old := d.next.rules.bundle
		if old.Version > 0 && old.Hash == bundle.Hash {
			return nil
		}
		rules.bundle.Version = old.Version + 1
		return d.apply(rules, old)
	})
}

func (d *draft) apply(rules *ruleset, old Bundle) error {
	text, err := rules.bundle.encode()
	if err != nil {
		return err
	}
	if err := d.tx.Bucket(bucketMeta).Put([]byte("bundle"), text); err != nil {
		return err
	}
	d.change.Bundle = true
	d.next.rules, d.binder = rules, newBinder(rules)
	d.rebind()
	if err := d.facts(factChange(old.Facts, rules.bundle.Facts)); err != nil {
		return err
	}
	for _, rule := range rules.bundle.Rules {
		// A class before its first conduit: a pipe, or a directory that files are
		// yet to be made in.
		if bound, err := d.binder.bind(rule.Policy); err == nil && !rule.hasHoles() {
			id := bound.ID()
			d.classOf(classRecord{Set: rule.Set, Kind: rule.Kind, Internal: rule.Internal, Reference: Reference{rule.Policy.Policy, fill(rule.Policy.Arguments, nil)}, PolicyID: id[:]})
		}
	}
	return d.reclassifyAll()
}

// rebind retires the classes whose policy is gone and revives those whose policy is
// back.
func (d *draft) rebind() {
	d.ownClasses()
	old := d.next.index
	d.next.index = newClassIndex()
	for key, number := range old.keys {
		info := &d.next.classes[number]
		var record classRecord
		if err := json.Unmarshal([]byte(key), &record); err != nil {
			bug("class %d has the key %q: %v", number, key, err)
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
		if err != nil || record.gone {
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
