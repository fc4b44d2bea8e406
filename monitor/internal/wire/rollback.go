// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The regions of a sealed worker, as runtime/include/shai_rollback.h defines them. Addresses,
// offsets and sizes are in bytes.
const (
	RollbackCode          = 0x200000000000
	RollbackCodeSize      = 0x1000
	RollbackAccepted      = 0x40  // offset of the instruction after the code's accept4
	RollbackSealed        = 0x1a0 // offset of the instruction after the code's seccomp
	RollbackStopped       = 0x1e0 // offset of a struct itimerval that stops a timer
	RollbackState         = 0x200000010000
	RollbackVectors       = 0x2000 // offset in the state
	RollbackVectorsSize   = 0x4000
	RollbackVectorsUsed   = 512    // offset in the vector registers: XSTATE_BV, …
	RollbackVectorsAlways = 3      // … in which x87 and SSE always count as used
	RollbackSnapshot      = 0x6000 // offset in the state
	RollbackPage          = 0x1000
	RollbackRangesMax     = 256
	RollbackPagesMax      = 16384
	RollbackFilterMax     = 1024 // instructions
)

// What libshai finds that keeps a worker from being sealed, and the monitor cannot see.
const (
	RollbackHasTimers    = 1 // interval timers, on which it relies
	RollbackHasNoReserve = 2 // memory for sessions
)

// RollbackRange is memory that is restored, and where its copy is.
type RollbackRange struct{ Destination, Source, Length uint64 }

// RollbackTable is the head of a sealed worker's state.
type RollbackTable struct {
	RangeCount uint64
	Stack      uint64 // stack pointer with which the worker goes on
	Resume     uint64
	Thread     uint64 // FS base
	Unfit      uint64 // RollbackHas…: why libshai does not want the worker sealed
	Reserved   [3]uint64
	Range      [RollbackRangesMax]RollbackRange
}

// RollbackTableSize is the size of an encoded [RollbackTable].
const RollbackTableSize = 64 + 24*RollbackRangesMax

// DecodeRollbackTable decodes the head of a state. Its error wraps [ErrMalformed] if there are
// no ranges or too many, or if text has another size than [RollbackTableSize].
func DecodeRollbackTable(text []byte) (RollbackTable, error) {
	var table RollbackTable
	if len(text) != RollbackTableSize {
		return table, fmt.Errorf("table of %d bytes: %w", len(text), ErrMalformed)
	}
	if err := binary.Read(bytes.NewReader(text), binary.LittleEndian, &table); err != nil {
		return table, fmt.Errorf("table: %w", err)
	}
	if table.RangeCount == 0 || table.RangeCount > RollbackRangesMax {
		return table, fmt.Errorf("table of %d ranges: %w", table.RangeCount, ErrMalformed)
	}
	return table, nil
}
