// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
)

// longestWait limits how long a step of the wall clock can delay an expiry.
const longestWait = time.Minute

// rescheduleExpiry makes watchExpiry examine the analyses again. It never blocks.
func (m *Monitor) rescheduleExpiry() {
	select {
	case m.expiring <- struct{}{}:
	default: // the last request is still pending
	}
}

// watchExpiry removes time-limited accesses from the capability sets when they expire, and adds
// those that begin, until ctx ends.
func (m *Monitor) watchExpiry(ctx context.Context) {
	for {
		timer := time.NewTimer(m.nextExpiry())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-m.expiring:
			timer.Stop()
		case <-timer.C:
			if err := m.expire(ctx, time.Now()); err != nil {
				m.logger.Error("the analysis did not follow an expiry as it should", "error", err)
			}
		}
	}
}

// nextExpiry returns how long to wait before something may expire.
func (m *Monitor) nextExpiry() time.Duration {
	m.mu.RLock()
	known := slices.Collect(maps.Values(m.analyses))
	pipelines := slices.Collect(maps.Values(m.pipelines))
	m.mu.RUnlock()
	wait := longestWait
	for _, p := range pipelines {
		if at, ok := p.NextWindow(time.Now()); ok {
			wait = min(wait, max(time.Until(at), 0))
		}
	}
	for _, one := range known {
		if one.result == nil {
			continue
		}
		if at, ok := one.result.NextExpiry(); ok {
			wait = min(wait, max(time.Until(at), 0))
		}
	}
	return wait
}

// expire ends the sessions whose window of time has ended, replaces the analyses with accesses that
// have expired or begun by now, and removes the key-value users of instances that have ended.
func (m *Monitor) expire(ctx context.Context, now time.Time) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.endWindows(now)
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		result := m.analyses[name].result
		if result == nil {
			continue
		}
		if at, ok := result.NextExpiry(); !ok || at.After(now) {
			continue
		}
		s := m.prepare(name, m.state(), func(r *analysis.Result) (*analysis.Result, []analysis.Affected, error) {
			return r.Expire(ctx, analysis.Options{Now: now, Limit: decidedWithin})
		})
		if s == nil {
			continue
		}
		if err := m.enterAlone(s); err != nil {
			failures = append(failures, err)
			continue
		}
		m.record(audit.Event{Kind: audit.Analysis, Pipeline: name, Operation: "expire", Allowed: true,
			Reason: fmt.Sprintf("instances affected: %d", s.affected)})
	}
	m.settle() // sessions that were the last of their instance may have ended, too
	return errors.Join(failures...)
}

// endWindows ends sessions whose window of time is over. Called with changing held.
func (m *Monitor) endWindows(now time.Time) {
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.pipelines)) {
		if reset := m.pipelines[name].EndOutdated(nil, now); reset > 0 {
			m.record(audit.Event{Kind: audit.Analysis, Pipeline: name, Operation: "window", Allowed: true,
				Reason: fmt.Sprintf("sessions ended with their window: %d", reset)})
		}
	}
}
