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

// nativeOpensPerSecond is the highest credible rate at which a worker opens documents
// natively, on average over its session. It limits what a worker with false counts can
// add to the pipeline's counts to the share of a busy worker.
const nativeOpensPerSecond = 10_000

// sessionCounts is the page on which one session's worker counts what it does without the
// monitor (wire.Counters). No other worker has the page, but this one can write anything
// to it: the values that are read never fall, and their growth is limited by the
// session's time. Not safe for concurrent use.
type sessionCounts struct {
	pipeline string
	page     *os.File // of a fixed size
	begun    time.Time
	opens    uint64 // the value read last
}

// newSessionCounts makes a page of zeros; the caller closes it.
func newSessionCounts(pipeline string, begun time.Time) (*sessionCounts, error) {
	page, err := sandbox.SealedMemory("shai-counters", os.Getpagesize())
	if err != nil {
		return nil, err
	}
	return &sessionCounts{pipeline: pipeline, page: page, begun: begun}, nil
}

// nativeOpens returns the number of documents that the worker has opened natively until
// now.
func (c *sessionCounts) nativeOpens(now time.Time) uint64 {
	var field [8]byte
	if _, err := c.page.ReadAt(field[:], int64(unsafe.Offsetof(wire.Counters{}.FastOpens))); err != nil {
		return c.opens
	}
	seconds := uint64(max(0, now.Sub(c.begun))/time.Second) + 1
	c.opens = max(c.opens, min(binary.LittleEndian.Uint64(field[:]), seconds*nativeOpensPerSecond))
	return c.opens
}
