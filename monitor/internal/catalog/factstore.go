// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/codec"
	"shai.dev/monitor/policy"
)

// Facts on disk: each group is divided into chunks of sorted tuples. A chunk's key is the
// group's key, followed by a lower bound of the chunk's tuples (empty for a group's first
// chunk). A changed tuple thus rewrites only a few kilobytes, and four million tuples are
// some ten thousand keys instead of four million.
//
// 	key:   length(conduit) conduit length(relation) relation arity lower-bound
// 	value: tuples, each its values, each kind, then length and text or 8 bytes
//
// If the tuples have offsets, offsetFlag is added to the arity, and each tuple begins with
// its offset.
//
// Lengths are unsigned varints. Encoded tuples are sorted by bytes, which is not the order
// of [policy.Value.Compare]; groups are sorted again when they are read.

// chunkTuples is the desired maximum of tuples in a chunk; a chunk with twice as many is
// split.
const chunkTuples = 128

// offsetFlag distinguishes the groups of tuples with offsets.
const offsetFlag = 0x80

func encodeGroup(key policy.GroupKey) []byte {
	out := codec.AppendText(codec.AppendText(nil, key.Conduit), key.Relation)
	number := uint64(key.Arity)
	if key.Positioned {
		number |= offsetFlag
	}
	return codec.AppendNumber(out, number)
}

func decodeGroup(r *codec.Reader) policy.GroupKey {
	key := policy.GroupKey{Conduit: r.Text(), Relation: r.Text()}
	number := r.Number()
	key.Arity, key.Positioned = uint8(number&^offsetFlag), number&offsetFlag != 0 //nolint:gosec // checked below
	if number&^offsetFlag > policy.MaxArguments {
		r.Break()
		return policy.GroupKey{}
	}
	return key
}

func encodeTuple(tuple []policy.Value) []byte {
	var out []byte
	for _, value := range tuple {
		out = append(out, byte(value.Kind()))
		switch value.Kind() {
		case policy.StringValue:
			out = codec.AppendText(out, value.Text())
		case policy.IntegerValue:
			out = codec.AppendFixed(out, uint64(value.Number())) //nolint:gosec // read back the same way
		case policy.TimeValue:
			out = codec.AppendFixed(out, uint64(value.Instant().UnixNano()))
		}
	}
	return out
}

func decodeValue(r *codec.Reader) policy.Value {
	kind := r.Bytes(1)
	if kind == nil {
		return policy.Value{}
	}
	switch policy.ValueKind(kind[0]) {
	case policy.StringValue:
		return policy.String(r.Text())
	case policy.IntegerValue:
		return policy.Integer(int64(r.Fixed())) //nolint:gosec // written the same way
	case policy.TimeValue:
		return policy.Time(time.Unix(0, int64(r.Fixed()))) //nolint:gosec // written the same way
	}
	r.Break()
	return policy.Value{}
}

// errNoWidth is about the tuple without values, of which there is one.
var errNoWidth = errors.New("a chunk of tuples without values is not empty")

// splitChunk splits a chunk into encoded tuples of that many values.
func splitChunk(value []byte, width int) ([][]byte, error) {
	var tuples [][]byte
	r := codec.NewReader(value)
	if width == 0 && len(value) > 0 {
		return nil, fmt.Errorf("read facts: %w", errNoWidth)
	}
	for len(r.Rest()) > 0 || width == 0 && len(tuples) == 0 {
		before := r.Rest()
		for range width {
			decodeValue(r)
		}
		if r.Broken() {
			return nil, fmt.Errorf("read facts: a chunk of %d bytes is malformed after %d tuples", len(value), len(tuples))
		}
		tuples = append(tuples, before[:len(before)-len(r.Rest())])
	}
	return tuples, nil
}

// storeFacts writes one group's change. Added tuples may be there already, removed tuples
// may be missing.
func storeFacts(bucket *records, change *groupChange) error {
	prefix := encodeGroup(change.key)
	pending := make(map[string][][]byte) // by chunk key
	fresh := isFresh(bucket.Bucket, prefix)
	locate := func(tuple []byte) string {
		if fresh {
			return string(prefix)
		}
		return string(chunkOf(bucket.Bucket, prefix, tuple))
	}
	keep := make(map[string]bool, len(change.add))
	for _, tuple := range change.add {
		encoded := encodeTuple(tuple)
		keep[string(encoded)] = true
		at := locate(encoded)
		pending[at] = append(pending[at], encoded)
	}
	drop := make(map[string]bool, len(change.remove))
	for _, tuple := range change.remove {
		encoded := encodeTuple(tuple)
		if !keep[string(encoded)] {
			drop[string(encoded)] = true
			at := locate(encoded)
			pending[at] = append(pending[at], nil)
		}
	}
	for _, at := range sortedKeys(pending) {
		if err := rewriteChunk(bucket, prefix, []byte(at), pending[at], drop, widthOf(change.key)); err != nil {
			return err
		}
	}
	return nil
}

// isFresh reports whether the group has no chunk yet: a bulk import then need not search
// for the place of each tuple.
func isFresh(bucket *bbolt.Bucket, prefix []byte) bool {
	key, _ := bucket.Cursor().Seek(prefix)
	return !bytes.HasPrefix(key, prefix)
}

// chunkOf returns the key of the chunk to which the tuple belongs.
func chunkOf(bucket *bbolt.Bucket, prefix, tuple []byte) []byte {
	cursor := bucket.Cursor()
	target := append(slices.Clone(prefix), tuple...)
	key, _ := cursor.Seek(target)
	if bytes.Equal(key, target) {
		return key
	}
	if key == nil {
		key, _ = cursor.Last()
	} else {
		key, _ = cursor.Prev()
	}
	// A longer group key cannot begin with this prefix: all its parts contain their
	// lengths.
	if bytes.HasPrefix(key, prefix) {
		return key
	}
	return prefix
}

func rewriteChunk(bucket *records, prefix, key []byte, add [][]byte, drop map[string]bool, width int) error {
	var tuples [][]byte
	if value := bucket.Get(key); value != nil {
		old, err := splitChunk(value, width)
		if err != nil {
			return err
		}
		for _, tuple := range old {
			if !drop[string(tuple)] {
				tuples = append(tuples, tuple)
			}
		}
	}
	for _, tuple := range add {
		if tuple != nil || width == 0 && len(drop) == 0 {
			tuples = append(tuples, tuple)
		}
	}
	slices.SortFunc(tuples, bytes.Compare)
	tuples = slices.CompactFunc(tuples, bytes.Equal)
	if len(tuples) == 0 {
		return bucket.Delete(key)
	}
	if width == 0 {
		return bucket.Put(key, []byte{})
	}
	size := len(tuples)
	if size > 2*chunkTuples {
		size = chunkTuples
	}
	for first := true; len(tuples) > 0; first = false {
		count := min(size, len(tuples))
		at := key
		if !first {
			at = append(slices.Clone(prefix), tuples[0]...)
		}
		// Put refers to the value until the transaction ends, so the value needs a copy
		// of its own.
		if err := bucket.Put(slices.Clone(at), bytes.Join(tuples[:count], nil)); err != nil {
			return fmt.Errorf("store facts: %w", err)
		}
		tuples = tuples[count:]
	}
	return nil
}

// mostShared limits the texts that are remembered while facts are read.
const mostShared = 1 << 16

// loadFacts reads all facts into an index.
func loadFacts(bucket *bbolt.Bucket) (*policy.FactIndex, error) {
	texts := make(map[string]string)
	var builder policy.FactBuilder
	err := bucket.ForEach(func(key, value []byte) error {
		if len(texts) > mostShared {
			clear(texts)
		}
		return loadChunk(&builder, key, value, texts)
	})
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return builder.Index(), nil
}

// loadChunk adds the facts of one chunk.
func loadChunk(builder *policy.FactBuilder, key, value []byte, texts map[string]string) error {
	r := codec.NewReader(key).Share(texts)
	group := decodeGroup(r)
	if r.Broken() {
		return fmt.Errorf("key %x is malformed", key)
	}
	if widthOf(group) == 0 && len(value) > 0 {
		return errNoWidth
	}
	fact := policy.Fact{Conduit: group.Conduit, Relation: group.Relation, Positioned: group.Positioned}
	r = codec.NewReader(value).Share(texts)
	for count := 0; len(r.Rest()) > 0 || widthOf(group) == 0 && count == 0; count++ {
		if group.Positioned {
			offset := decodeValue(r)
			if fact.Offset = offset.Number(); offset.Kind() != policy.IntegerValue {
				r.Break()
			}
		}
		fact.Arguments = fact.Arguments[:0]
		for range group.Arity {
			fact.Arguments = append(fact.Arguments, decodeValue(r))
		}
		if r.Broken() {
			return fmt.Errorf("a chunk of %d bytes is malformed after %d tuples", len(value), count)
		}
		if err := builder.Add(fact); err != nil {
			return err
		}
	}
	return nil
}
