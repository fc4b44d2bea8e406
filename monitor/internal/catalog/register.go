// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// registerBatch limits a transaction's memory.
const registerBatch = 100_000

// Register registers conduits and returns their numbers, in the order of names: 0 if no
// rule of the bundle covers the name. Registered names keep their numbers. Each batch of
// 100,000 is durable by itself.
func (c *Catalog) Register(names []string) ([]uint32, *Change, error) {
	ids := make([]uint32, 0, len(names))
	total := &Change{Before: c.State(), After: c.State()}
	for start := 0; start < len(names) || start == 0; start += registerBatch {
		batch := names[start:min(start+registerBatch, len(names))]
		var added []uint32
		change, err := c.commit("register conduits", func(d *draft) (err error) {
			added, err = d.register(batch)
			return err
		})
		if change != nil {
			ids = append(ids, added...)
			total.After = change.After
			total.Moved = append(total.Moved, change.Moved...)
			total.Classes = append(total.Classes, change.Classes...)
		}
		if err != nil {
			return ids, total, err
		}
	}
	slices.Sort(total.Classes)
	total.Classes = slices.Compact(total.Classes)
	return ids, total, nil
}

func (d *draft) register(names []string) ([]uint32, error) {
	ids := make([]uint32, len(names))
	last := d.next.conduits.last
	fresh := make(map[string]uint32)
	for i, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if id, known := fresh[name]; known {
			ids[i] = id
			continue
		}
		to, err := d.classify(name)
		if err != nil {
			return nil, err
		}
		if key := d.tx.Bucket(bucketNames).Get([]byte(name)); key != nil {
			record, err := decodeConduit(d.tx.Bucket(bucketConduits).Get(key))
			if err != nil {
				return nil, fmt.Errorf("read conduit %s: %w", name, err)
			}
			ids[i] = binary.BigEndian.Uint32(key)
			if err := d.move(ids[i], record, to); err != nil {
				return nil, err
			}
			continue
		}
		if to == 0 {
			continue
		}
		last++
		ids[i], fresh[name] = last, last
		if err := d.move(last, conduitRecord{name: name}, to); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(fresh) {
		if err := d.ledger.bucket(bucketNames).Put([]byte(name), numberKey(fresh[name])); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// checkName refuses names that could be confused with others or that leave the data
// directory.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 1024:
		return fmt.Errorf("conduit name of %d bytes; expected 1 to 1024", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("conduit name %q is not printable UTF-8; rename it", name)
	}
	for i, part := range strings.Split(name, "/") {
		if part == "" && i > 0 || part == "." || part == ".." {
			return fmt.Errorf("conduit name %q has the segment %q", name, part)
		}
	}
	return nil
}
