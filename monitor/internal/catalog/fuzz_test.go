// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

// For any record: no panic, and facts that are read are written in the same way and read again.
func FuzzChunk(f *testing.F) {
	for _, facts := range [][]policy.Fact{
		{fact("c", "r")}, {fact("c", "r", "a", ""), fact("c", "r", "b", "ä")}, {factAt(0, "log", "r")},
		{factAt(7, "log", "r", "x"), factAt(1<<40, "log", "r", "x")},
		{{Conduit: "c", Relation: "r", Arguments: []policy.Value{policy.Integer(-1), {}}}},
	} {
		var value []byte
		for _, one := range facts {
			value = append(value, encodeTuple(tupleOf(one))...)
		}
		f.Add(append(encodeGroup(facts[0].Group()), "bound"...), value)
	}
	f.Add([]byte("\x01c\x01r\x11"), []byte{})
	f.Add([]byte("\x01c\x01r\x81\x01"), []byte("\x01\x01a\x01\x01a"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var builder policy.FactBuilder
		if err := loadChunk(&builder, key, value, make(map[string]string)); err != nil {
			return
		}
		read := indexed(builder.Index())
		var again policy.FactBuilder
		for _, fact := range read {
			tuple := encodeTuple(tupleOf(fact))
			if tuples, err := splitChunk(tuple, len(tupleOf(fact))); err != nil || len(tuples) != 1 ||
				!bytes.Equal(tuples[0], tuple) {
				t.Fatalf("%s is written as %x, which splits into %x, %v", fact, tuple, tuples, err)
			}
			if err := loadChunk(&again, encodeGroup(fact.Group()), tuple, make(map[string]string)); err != nil {
				t.Fatalf("%s is written as %x: %v", fact, tuple, err)
			}
		}
		if diff := cmp.Diff(texts(read), texts(indexed(again.Index()))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func indexed(x *policy.FactIndex) (facts []policy.Fact) {
	x.All(func(fact policy.Fact) bool { facts = append(facts, fact); return true })
	slices.SortFunc(facts, compareFacts)
	return facts
}
