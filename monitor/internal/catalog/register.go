// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// registerBatch limits a transaction's memory.
const registerBatch = 100_000

// denseFill is how full pages of the database become whose keys arrive in ascending order:
// nothing will be inserted between them later.
const denseFill = 0.95

// Register registers conduits and returns their numbers, in the order of names: 0 if no
// rule of the bundle covers the name. Registered names keep their numbers. Each batch of
// 100,000 is durable by itself.
func (c *Catalog) Register(names []string) ([]uint32, *Change, error) {
	ids := make([]uint32, 0, len(names))
	total := &registration{change: &Change{Before: c.State(), After: c.State()}}
	for start := 0; start < len(names) || start == 0; start += registerBatch {
		added, change, err := c.registerBatch(names[start:min(start+registerBatch, len(names))])
		ids = append(ids, added...)
		total.add(change)
		if err != nil {
			return ids, total.finish(), err
		}
	}
	return ids, total.finish(), nil
}

// RegisterListing registers the conduits whose names a listing yields, batch by batch, as
// Register does: it is fastest in ascending order of names. It ends with the first error that
// the listing yields, or when ctx ends, and returns the number of names that it has taken.
func (c *Catalog) RegisterListing(ctx context.Context, listing iter.Seq2[string, error], progress Progress) (uint64,
	*Change, error) {
	total := &registration{change: &Change{Before: c.State(), After: c.State()}}
	batch := make([]string, 0, registerBatch)
	var taken uint64
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, change, err := c.registerBatch(batch)
		total.add(change)
		taken += uint64(len(batch))
		batch = batch[:0]
		if progress != nil {
			progress(taken, 0)
		}
		return errors.Join(err, ctx.Err())
	}
	for name, err := range listing {
		if err != nil {
			return taken, total.finish(), err
		}
		if batch = append(batch, name); len(batch) < registerBatch {
			continue
		}
		if err := flush(); err != nil {
			return taken, total.finish(), err
		}
	}
	err := flush()
	return taken, total.finish(), err
}

// registration joins the changes of several batches.
type registration struct{ change *Change }

func (r *registration) add(change *Change) {
	if change == nil {
		return
	}
	r.change.After = change.After
	r.change.Moved = append(r.change.Moved, change.Moved...)
	r.change.Classes = append(r.change.Classes, change.Classes...)
}

func (r *registration) finish() *Change {
	slices.Sort(r.change.Classes)
	r.change.Classes = slices.Compact(r.change.Classes)
	return r.change
}

// registerBatch returns the numbers of names, and no numbers after an error that left the
// catalog as it was.
func (c *Catalog) registerBatch(names []string) (ids []uint32, change *Change, err error) {
	change, err = c.commit("register conduits", func(d *draft) (err error) {
		ids, err = d.register(names)
		return err
	})
	if change == nil {
		ids = nil
	}
	return ids, change, err
}

func (d *draft) register(names []string) ([]uint32, error) {
	ids := make([]uint32, len(names))
	last := d.next.conduits.last
	fresh := make(map[string]uint32)
	known, conduits := d.tx.Bucket(bucketNames), d.ledger.bucket(bucketConduits)
	conduits.FillPercent = denseFill
	for i, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if id, again := fresh[name]; again {
			ids[i] = id
			continue
		}
		to, err := d.classify(name)
		if err != nil {
			return nil, err
		}
		if key := known.Get([]byte(name)); key != nil {
			record, err := decodeConduit(conduits.Get(key))
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
		d.count(to, +1)
		d.moves[last] = Move{ID: last, To: to}
		if err := conduits.insert(numberKey(last), conduitRecord{class: to, name: name}.encode()); err != nil {
			return nil, err
		}
	}
	return ids, d.storeNames(fresh)
}

// storeNames stores the numbers of names that the catalog does not know yet.
func (d *draft) storeNames(fresh map[string]uint32) error {
	bucket := d.ledger.bucket(bucketNames)
	bucket.FillPercent = denseFill
	for _, name := range sortedKeys(fresh) {
		if err := bucket.insert([]byte(name), numberKey(fresh[name])); err != nil {
			return err
		}
	}
	return nil
}

// IsName reports whether a conduit can have a name.
func IsName(name string) bool { return checkName(name) == nil }

// checkName refuses names that could be confused with others or that leave the data
// directory.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 1024:
		return fmt.Errorf("conduit name of %d bytes; expected 1 to 1024", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("conduit name %q is not printable UTF-8; rename it", name)
	}
	at := 0
	for part := range strings.SplitSeq(name, "/") {
		if part == "" && at > 0 || part == "." || part == ".." {
			return fmt.Errorf("conduit name %q has the segment %q", name, part)
		}
		at++
	}
	return nil
}
