// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"

	"shai.dev/monitor/policy"
)

// listing yields so many names of one owner's documents, from a number on.
func listing(from, count int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i := range count {
			if !yield(fmt.Sprintf("/corpus/private/alice/%08d.txt", from+i), nil) {
				return
			}
		}
	}
}

// Most of millions of documents have the class of others: what each costs is memory for its
// own records, and not for finding that class again.
func TestRegisteringAllocatesLittleForEachDocument(t *testing.T) {
	c := opened(t)
	const count = 20_000
	allocations := func(from int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if taken, _, err := c.RegisterListing(t.Context(), listing(from, count), nil); err != nil || taken != count {
			t.Fatalf("%d of %d: %v", taken, count, err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	allocations(0)
	// Its name and its two records are twenty or so, most of them the database's. To find its class by
	// the facts about it and as JSON is as many more.
	if each := allocations(count) / count; each > 32 {
		t.Errorf("each document costs %d allocations", each)
	}
	if s := c.State(); s.Conduits() != 2*count || s.Class(s.ClassOf(1)).Members != 2*count {
		t.Errorf("%d conduits, %d of them in one class", s.Conduits(), s.Class(s.ClassOf(1)).Members)
	}
}

// A listing that fails leaves the batches before it registered, and no part of its own.
func TestListingThatFails(t *testing.T) {
	c := opened(t)
	broken := errors.New("the disk is gone")
	taken, change, err := c.RegisterListing(t.Context(), func(yield func(string, error) bool) {
		for name := range listing(0, registerBatch+5) {
			if !yield(name, nil) {
				return
			}
		}
		yield("", broken)
	}, nil)
	if !errors.Is(err, broken) || taken != registerBatch || change.After.Conduits() != registerBatch {
		t.Errorf("%d taken, %d registered: %v", taken, change.After.Conduits(), err)
	}
	if c.State() != change.After {
		t.Error("the change does not end with the state in force")
	}
}

// The class of a document is found by rule and holes only where no fact mentions the document
// and its policy cannot tell it from others.
func TestDocumentsThatAFactMentionsHaveAnotherClass(t *testing.T) {
	c := opened(t)
	mentioned := "/corpus/private/alice/00000007.txt"
	if _, err := c.AtOnce().ChangeFacts(nil, []policy.Fact{{Conduit: "blacklist/de", Relation: "blocked",
		Arguments: []policy.Value{policy.String(mentioned)}}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.RegisterListing(t.Context(), listing(0, 20), nil); err != nil {
		t.Fatal(err)
	}
	s := c.State()
	id, _ := s.ID(mentioned)
	if members := s.Members(s.ClassOf(id)); !slices.Equal(members, []uint32{id}) {
		t.Errorf("the class of the mentioned document has %v, it is %d", members, id)
	}
}
