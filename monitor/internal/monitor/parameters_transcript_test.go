// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/waiting"
)

const roleOfFact = "from: {conduit: employees, says: role}"

// withParameter gives workers a parameter.
func (p *player) withParameter(name, source string) {
	p.t.Helper()
	p.replace("  parameters: [user, region]\n", "  parameters: [user, region, "+name+"]\n")
	p.replace("  expect:\n", "  parameters: [{name: "+name+", "+source+"}]\n  expect:\n")
}

// Windows of a few seconds: a session ends with its window although nobody does anything, and its
// user is in the next one then.
func TestSessionsAreOfOneWindow(t *testing.T) {
	p := &player{stack: newStack(t), users: map[string]*user{}}
	p.withParameter("shift", `window: {start: "2026-01-01T00:00:00Z", every: 3s}`)
	p.do("document /corpus/public/1.txt")
	p.do("principal alice home de")
	p.do("region 127.0.1.0/24 is de")
	p.do("start")
	bound := map[string]bool{}
	for len(bound) < 2 {
		p.inSession("s1", "connect from 127.0.1.1")
		answer := p.inSession("s1", "authenticate alice")
		if answer == connectionEnded { // the window has ended meanwhile
			p.awaitEnd(p.users["s1"])
			continue
		}
		if bound[answer] {
			t.Errorf("after the end of its window, a session is %s again", answer)
		}
		bound[answer] = true
		waiting.Until(t, "the session ends", func() bool { return p.inSession("s1", "ended?") == "yes" })
	}
	p.do("restart")
	plan := p.monitor.pipelines["probe"].Plan()
	waiting.Until(t, "the analysis that was stored in an earlier window is of this one", func() bool {
		next, _ := plan.NextWindow(time.Now())
		p.monitor.mu.RLock()
		defer p.monitor.mu.RUnlock()
		_, found := p.monitor.analyses["probe"].result.Instance(analysis.Instance{Task: "worker",
			Arguments: []string{"alice", "de", next.Format(time.RFC3339)}})
		return found
	})
}
