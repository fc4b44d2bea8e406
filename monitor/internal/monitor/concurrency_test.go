// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
)

// After the answer that facts have changed, every session that begins is in the new
// state, whatever else happens at the same time.
func TestFactsChangeInOneStep(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/friends/bob/1.txt")
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("friends/bob", "friend", "alice")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.start()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for _, disturb := range []func(){
		func() { _, _ = s.monitor.Status(ctx) },
		func() { _, _ = s.monitor.LatestAnalysis(ctx, "probe") },
		func() { _, _ = s.monitor.Analyze(ctx, api.AnalyzeRequest{}, func(api.Progress) {}) },
		func() {
			if u, err := s.connect("127.0.1.1"); err == nil {
				_, _ = u.authenticate("bob", "bob")
				_, _ = u.say("quit")
				u.connection.Close()
			}
		},
	} {
		others.Go(func() {
			for ctx.Err() == nil {
				disturb()
			}
		})
	}
	defer others.Wait()
	defer stop()
	friend := apiFact("friends/bob", "friend", "alice")
	open := fmt.Sprintf("beneath %s", (&player{stack: s}).viewed("beneath", "view of /corpus/friends/bob/1.txt"))
	for i := range 25 {
		change, want := api.FactChange{Remove: []api.Fact{friend}}, "error E" // the rest is the system's word
		if i%2 == 1 {
			change, want = api.FactChange{Add: []api.Fact{friend}}, "descriptor"
		}
		s.changeFacts(change)
		u := s.login("alice", "127.0.1.1")
		if got := u.must(open); !strings.HasPrefix(got, want) {
			t.Fatalf("round %d: %q, want %q", i, got, want)
		}
		_, _ = u.say("quit")
	}
}
