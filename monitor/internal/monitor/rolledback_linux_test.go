// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"net/http"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// TestFrontEndIsRolledBack: Sys-E's front end can be sealed, and its workers serve one session
// after the other; unless each session is to have a process of its own. Then no worker asks to be
// sealed: it would take a snapshot, and be refused.
func TestFrontEndIsRolledBack(t *testing.T) {
	for name, test := range map[string]struct {
		perWorker  int
		rolledBack bool
	}{
		"default":       {0, true},
		"one a process": {1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			s.options.Sessions.PerWorker = test.perWorker
			s.startKeyValue()
			s.useFrontEnd()
			s.page(everybodys)
			s.page(alices)
			s.principal("alice", "de")
			s.fact("regions", "prefix", "127.0.1.0/24", "de")
			s.start()
			const sessions = 3
			for range sessions {
				alice := s.browse("127.0.1.1")
				if status, session := alice.login("alice", "alice"); status != http.StatusOK {
					t.Fatalf("%d %+v", status, session)
				}
				s.seesAll(alice)
				if status := alice.ask("DELETE", "/session", nil, nil); status != http.StatusNoContent {
					t.Fatalf("logging out: %d", status)
				}
				waiting.Until(t, "the session is over", func() bool { return len(s.liveSessions()) == 0 })
				s.awaitIdle()
			}
			want := int64(0)
			if test.rolledBack {
				want = sessions
			}
			if got := s.observer.rolledBack.Load(); got != want {
				t.Errorf("%d of %d sessions were rolled back, want %d", got, sessions, want)
			}
			for _, task := range s.pipeline().Status().Tasks {
				if task.Message != "" {
					t.Errorf("%s: %s", task.Name, task.Message)
				}
			}
		})
	}
}
