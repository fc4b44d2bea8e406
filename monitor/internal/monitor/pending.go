// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"maps"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
)

// resume makes watchPending go on, if a result is not complete. It never blocks.
func (m *Monitor) resume(result *analysis.Result) {
	if !result.Pending() {
		return
	}
	select {
	case m.pending <- struct{}{}:
	default: // the last request is still pending
	}
}

// watchPending finds, in the background, what changes have given to many instances, until ctx
// ends. It goes in small steps: logins and changes come in between.
func (m *Monitor) watchPending(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.pending:
		}
		for ctx.Err() == nil && m.findPending(ctx) {
		}
	}
}

// findPending makes one step for each pipeline whose analysis is not complete. It reports whether
// there is more to find.
func (m *Monitor) findPending(ctx context.Context) (more bool) {
	m.changing.Lock()
	defer m.changing.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		p, known := m.pipelines[name], m.analyses[name]
		if p == nil || known.result == nil || known.plan != p.Plan() || !known.result.Pending() ||
			!known.result.Current(m.state()) {
			continue
		}
		s := m.prepare(name, m.state(), func(r *analysis.Result) (*analysis.Result, []analysis.Affected, error) {
			return r.Continue(ctx, analysis.Options{Now: time.Now(), Limit: decidedWithin})
		})
		if s.err != nil {
			if ctx.Err() == nil {
				m.logger.Error("the monitor decides on what a change has given when it happens", "pipeline", name, "error", s.err)
			}
			continue
		}
		err := m.enterAlone(s)
		m.settleOne(p)
		if err != nil {
			m.logger.Error("the capability sets did not follow the analysis as they should", "pipeline", name, "error", err)
			continue
		}
		more = more || s.next.Pending()
	}
	return more
}
