// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"syscall"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// Sessions leave nothing behind in the monitor: no descriptor, no slot, no entry.
func TestManySessionsLeakNothing(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/private/alice/1.txt")
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.start()
	round := func(i int) {
		u, err := s.connect("127.0.0.1")
		s.must(err)
		if i%4 > 0 {
			_, err := u.authenticate("alice", []string{"alice", "bob"}[i%2])
			s.must(err)
			if i%3 == 0 {
				u.must("open 1 2 3")
			}
		}
		if i%5 == 0 {
			u.connection.Close()
			return
		}
		_, _ = u.say([]string{"quit", "crash"}[i%2])
		u.connection.Close()
	}
	for i := range 20 {
		round(i)
	}
	settle := func() int {
		waiting.Until(t, "every session is over", func() bool {
			return len(s.liveSessions()) == 0
		})
		s.awaitIdle()
		return pipelinetest.OpenDescriptors(t)
	}
	before := settle()
	for i := range 200 {
		round(i)
	}
	waiting.Until(t, "descriptors are closed", func() bool { return settle() <= before+2 })
	if err := syscall.Kill(s.pipeline().Task("worker").Status().PID, 0); err != nil {
		t.Errorf("the zygote: %v", err)
	}
}
