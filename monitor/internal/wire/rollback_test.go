// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// TestRollbackTable: a table is decoded as it was written, and no other size or number of
// ranges is.
func TestRollbackTable(t *testing.T) {
	for count, valid := range map[uint64]bool{
		0: false, 1: true, RollbackRangesMax: true, RollbackRangesMax + 1: false,
	} {
		table := RollbackTable{RangeCount: count, Stack: 1, Resume: 2, Thread: 3}
		table.Range[RollbackRangesMax-1] = RollbackRange{Destination: 4, Source: 5, Length: 6}
		var text bytes.Buffer
		if err := binary.Write(&text, binary.LittleEndian, table); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRollbackTable(text.Bytes())
		if valid && (err != nil || got != table) || !valid && !errors.Is(err, ErrMalformed) {
			t.Errorf("%d ranges: %+v, %v", count, got, err)
		}
		if _, err := DecodeRollbackTable(text.Bytes()[1:]); !errors.Is(err, ErrMalformed) {
			t.Errorf("a part of a table: %v", err)
		}
	}
}
