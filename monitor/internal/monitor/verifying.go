// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/audit"
)

// The monitor verifies the chain of its audit log in the background, again and again. One
// verification takes so much of one processor, and so long after it the next one begins.
const (
	verifyShare    = 50 // a fiftieth, unless the log's files go faster
	verifyInterval = time.Minute
)

// verification is the result of the last one.
type verification struct {
	ended time.Time // of the last one that could read the whole log, zero if there was none
	fault string    // "": none
}

// verifications keep the last result, nil before the first one.
type verifications struct{ last atomic.Pointer[verification] }

// watchAudit verifies the audit log until ctx ends.
func (m *Monitor) watchAudit(ctx context.Context, log *audit.Log) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.verifyAudit(ctx, log)
		timer.Reset(verifyInterval)
	}
}

// verifyAudit verifies the whole chain once. A log that cannot be read is not verified.
func (m *Monitor) verifyAudit(ctx context.Context, log *audit.Log) {
	found, err := log.VerifySlowly(ctx, verifyShare)
	if ctx.Err() != nil {
		return
	}
	before := m.verified.last.Load()
	if err != nil {
		m.logger.Error("the audit log cannot be verified", "error", err)
		unread := verification{fault: err.Error()}
		if before != nil {
			unread.ended = before.ended
		}
		m.verified.last.Store(&unread)
		return
	}
	if found.Fault != "" && (before == nil || before.fault != found.Fault) {
		m.logger.Error("the audit log has been altered; shai audit verify says more", "fault", found.Fault)
	}
	m.verified.last.Store(&verification{ended: time.Now(), fault: found.Fault})
}
