// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"shai.dev/monitor/internal/wire"
)

// span is a range of addresses.
type span struct{ start, end uint64 }

// checkRanges returns the size of the snapshot. It returns an error unless the ranges cover all
// writable memory once, and nothing else, and their copies follow each other in the snapshot.
func checkRanges(ranges []wire.RollbackRange, mappings []Mapping) (size uint64, err error) {
	if err := checkAmount(mappings); err != nil {
		return 0, err
	}
	var restored []span
	for i, r := range ranges {
		source := wire.RollbackState + wire.RollbackSnapshot + size
		switch {
		case (r.Destination|r.Length)%wire.RollbackPage != 0 || r.Length == 0 || r.Length > most ||
			r.Destination > ^uint64(0)-r.Length:
			return 0, fmt.Errorf("range %d of its state is no memory: %x bytes at %x", i, r.Length, r.Destination)
		case r.Source != source:
			return 0, fmt.Errorf("the copy of range %d of its state is at %x in place of %x", i, r.Source, source)
		case r.Length > most-size:
			return 0, errors.New("its state is too large")
		}
		size += r.Length
		restored = append(restored, span{r.Destination, r.Destination + r.Length})
	}
	slices.SortFunc(restored, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	restored, overlap := joined(restored)
	if overlap {
		return 0, errors.New("ranges of its state overlap")
	}
	if address, differ := difference(restored, writableMemory(mappings)); differ {
		return 0, fmt.Errorf("its state has not all of its writable memory, or has other memory, from %x on "+
			"(libshai leaves out what cannot be read, as beyond the end of a file)", address)
	}
	return size, nil
}

// most is how many bytes a state can restore.
const most = wire.RollbackPagesMax * wire.RollbackPage

// checkAmount returns an error if mappings have more writable memory than a state has room for.
func checkAmount(mappings []Mapping) error {
	count, size := 0, uint64(0)
	for _, m := range mappings {
		if m.isWritable() {
			count++
			size += m.End - m.Start
		}
	}
	switch {
	case size > most:
		return fmt.Errorf("it has %d MiB of writable memory, and %d MiB can be restored: reserve less, and free "+
			"or protect what no session writes", size>>20, most>>20)
	case count > wire.RollbackRangesMax:
		return fmt.Errorf("it has %d mappings of writable memory, and %d can be restored", count,
			wire.RollbackRangesMax)
	}
	return nil
}

// difference returns the lower start of the first spans in which two sorted lists differ.
func difference(a, b []span) (address uint64, differ bool) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i].start, true
		case i >= len(b):
			return a[i].start, true
		case a[i] != b[i]:
			return min(a[i].start, b[i].start), true
		}
	}
	return 0, false
}

// joined joins those of sorted spans that follow each other directly.
func joined(spans []span) (result []span, overlap bool) {
	for _, s := range spans {
		last := len(result) - 1
		switch {
		case last >= 0 && s.start < result[last].end:
			return nil, true
		case last >= 0 && s.start == result[last].end:
			result[last].end = s.end
		default:
			result = append(result, s)
		}
	}
	return result, false
}

// writableMemory returns what can be written of mappings, which are sorted.
func writableMemory(mappings []Mapping) []span {
	var all []span
	for _, m := range mappings {
		if m.isWritable() {
			all = append(all, span{m.Start, m.End})
		}
	}
	result, _ := joined(all)
	return result
}
