// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"encoding/binary"
	"os"
	"time"
	"unsafe"

	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// nativeOpensPerSecond is how many documents a worker can be believed to open natively,
// on average over its session. With it a worker that counts what it likes spoils no more
// than a busy one's share of the pipeline's counts.
const nativeOpensPerSecond = 10_000

// sessionCounts is the page on which one session's worker counts what it does without
// the monitor (wire.Counters). No other worker has it. This one can write anything there:
// what is read never falls, and rises with the session's time at most. Not safe for
// concurrent use.
type sessionCounts struct {
	pipeline string
	page     *os.File // of a fixed size
	begun    time.Time
	opens    uint64 // what was read last
}

// newSessionCounts makes a page of zeros; the caller closes it.
func newSessionCounts(pipeline string, begun time.Time) (*sessionCounts, error) {
	page, err := sandbox.SealedMemory("shai-counters", os.Getpagesize())
	if err != nil {
		return nil, err
	}
	return &sessionCounts{pipeline: pipeline, page: page, begun: begun}, nil
}

// nativeOpens is how many documents the worker has opened natively until now.
func (c *sessionCounts) nativeOpens(now time.Time) uint64 {
	var field [8]byte
	if _, err := c.page.ReadAt(field[:], int64(unsafe.Offsetof(wire.Counters{}.FastOpens))); err != nil {
		return c.opens
	}
	seconds := uint64(max(0, now.Sub(c.begun))/time.Second) + 1
	c.opens = max(c.opens, min(binary.LittleEndian.Uint64(field[:]), seconds*nativeOpensPerSecond))
	return c.opens
}
