// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"time"
)

// Capabilities is what the analysis validated for one instance. It is immutable.
type Capabilities struct {
	Instance Instance
	Reads    []uint32 // classes, ascending
	Writes   []uint32 // classes, ascending
	// Others are the accesses to conduits without a class, by name: "queries",
	// "profile:alice". They are sorted.
	Others []Other

	// The conditions of reads[i] are readsOn.of(i), and so on.
	readsOn, writesOn, othersOn footprints
	// begins is the first instant (Unix nanoseconds) at which the passing of time may have given
	// an access; 0 if nothing is to be expected.
	begins int64
	// awaited says that nobody has decided on what the instance expects yet: a question is left.
	awaited bool
}

// Other is an access to a single conduit for which the catalog has no class: a pipe, a
// channel, a connection, a tuple.
type Other struct {
	Set     string `json:"set"`
	Conduit string `json:"conduit"`
	Write   bool   `json:"write"`
}

func (o Other) compare(other Other) int {
	switch {
	case o.Write != other.Write && other.Write:
		return -1
	case o.Write != other.Write:
		return 1
	case o.Set != other.Set && o.Set < other.Set:
		return -1
	case o.Set != other.Set:
		return 1
	case o.Conduit < other.Conduit:
		return -1
	case o.Conduit > other.Conduit:
		return 1
	}
	return 0
}

// footprints are the conditions of several accesses in one list, to save memory: an
// instance has a hundred accesses, a population four million.
type footprints struct {
	ends    []uint32 // of each access' hashes
	hashes  []conditionHash
	expires []expiry // of the few accesses that expire, by access
}

type expiry struct {
	access uint32
	until  int64
}

func (f *footprints) add(one footprint) {
	if one.until != never {
		f.expires = append(f.expires, expiry{uint32(len(f.ends)), one.until}) //nolint:gosec // accesses of one instance
	}
	f.hashes = append(f.hashes, one.hashes...)
	f.ends = append(f.ends, uint32(len(f.hashes))) //nolint:gosec // bounded by the accesses
}

func (f *footprints) of(i int) footprint {
	start := uint32(0)
	if i > 0 {
		start = f.ends[i-1]
	}
	one := footprint{hashes: f.hashes[start:f.ends[i]], until: never}
	for _, e := range f.expires {
		if int(e.access) == i {
			one.until = e.until
		}
	}
	return one
}

// restsOn reports whether access i depends on one of the sorted hashes.
func (f *footprints) restsOn(i int, hashes []conditionHash) bool {
	for _, hash := range f.of(i).hashes {
		if _, found := slices.BinarySearch(hashes, hash); found {
			return true
		}
	}
	return false
}

// nextExpiry returns the first instant at which an access expires.
func (c *Capabilities) nextExpiry() int64 {
	next := int64(never)
	for _, f := range []*footprints{&c.readsOn, &c.writesOn, &c.othersOn} {
		for _, e := range f.expires {
			next = min(next, e.until)
		}
	}
	return next
}

// NextExpiry returns the first instant at which an access expires; ok is false if none does.
func (c *Capabilities) NextExpiry() (at time.Time, ok bool) {
	next := c.nextExpiry()
	if next == never {
		return time.Time{}, false
	}
	return instant(next), true
}

// compact frees the unused capacity of the lists.
func (f *footprints) compact() {
	f.ends, f.hashes = slices.Clip(f.ends), slices.Clip(f.hashes)
}
