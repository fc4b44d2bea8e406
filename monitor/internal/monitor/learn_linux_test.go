// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// A document that a user may read only since the session began becomes native, too.
func TestALiveSessionGetsWhatALaterOneWould(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}})
	alice := s.login("alice", "127.0.1.1")
	s.changeFacts(api.FactChange{Add: []api.Fact{aliceIsAFriend}})
	s.expect("at first", alice.reading("/corpus/friends/bob/1.txt"), "text /corpus/friends/bob/1.txt, asked 1")
	waiting.Until(t, "the session is not asked about", func() bool {
		return alice.reading("/corpus/friends/bob/2.txt") == "text /corpus/friends/bob/2.txt, asked 0"
	})
	if s.counted(learnedMetric) > 0 {
		t.Error("what the analysis had foreseen was learnt")
	}
}
