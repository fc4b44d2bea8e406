// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"sync"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// watched calls look whenever an analysis asks whether it is to go on.
type watched struct {
	context.Context
	look func()
}

func (w watched) Err() error { w.look(); return w.Context.Err() }

// preparing calls look whenever a capability set is prepared.
type preparing struct {
	sandbox.Backend
	look func()
}

func (p preparing) PrepareNative(directories []string) (sandbox.Native, error) {
	p.look()
	return p.Backend.PrepareNative(directories)
}

// While a change is written, analysed, and its capability sets are prepared, nobody waits for it,
// and everything is as before it. When it is answered, its facts and sets are in force, whatever
// it gives or takes.
func TestNobodyWaitsWhileAChangeIsMade(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	backend := superviseBare(t, m)
	diary := classOf(t, m, "/diary/alice/1.txt")
	const bob = "worker(bob, de)"
	friendship := factsFrom([]api.Fact{bareFact("friends/alice", "friend", "bob")})
	isThere := func() bool {
		return m.state().Has(policy.Pattern{Conduit: "friends/alice", Relation: "friend",
			Arguments: friendship[0].Arguments})
	}
	for _, step := range []struct {
		name        string
		remove, add []policy.Fact
		before      bool
	}{{"a fact less", friendship, nil, true}, {"a fact more", nil, friendship, false}} {
		t.Run(step.name, func(t *testing.T) {
			var looking sync.Mutex
			looks := map[string]int{}
			look := func(at string) func() {
				return func() {
					looking.Lock()
					defer looking.Unlock()
					looks[at]++
					free := m.services.Binding.TryRLock()
					if free {
						m.services.Binding.RUnlock()
					}
					there, held := isThere(), holds(t, backend, bob, diary)
					if !free || there != step.before || held != step.before {
						t.Errorf("%s: logins wait: %v, the fact is there: %v, bob reads alice's diary: %v", at, !free, there, held)
					}
				}
			}
			m.services.Backend = preparing{backend, look("preparing")}
			defer func() { m.services.Backend = backend }()
			m.changing.Lock()
			defer m.changing.Unlock()
			_, err := m.changeFacts(watched{t.Context(), look("analysing")}, time.Now(),
				func(w catalog.Writer) (*catalog.Change, error) {
					look("before")()
					return w.ChangeFacts(step.remove, step.add)
				})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"before", "analysing", "preparing"} {
				if looks[at] == 0 {
					t.Errorf("nobody has looked while %s", at)
				}
			}
			if isThere() == step.before || holds(t, backend, bob, diary) == step.before {
				t.Errorf("the change is answered; the fact is there: %v, bob reads alice's diary: %v", isThere(),
					holds(t, backend, bob, diary))
			}
		})
	}
}
