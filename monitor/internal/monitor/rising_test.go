// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor/api"
)

// newAlbums is a learning stack with albums of owners who are all alice's friends.
func newAlbums(t *testing.T, owners int) (s *stack, names []string) {
	s = newLearningStack(t, "lazy")
	for n := range owners {
		owner := fmt.Sprint("owner", n)
		names = append(names, "/albums/"+owner+"/1.txt")
		s.document(names[n])
		s.fact("friends/"+owner, "friend", "alice")
	}
	return s, names
}

// An instance that reads many classes of a set is asked about no more of them: all are decided on
// together. Another one is.
func TestRisingActivity(t *testing.T) {
	s, names := newAlbums(t, risingClasses+3)
	s.startLearning()
	alice := s.login("alice", "127.0.1.1")
	for n, name := range names[:risingClasses] {
		s.expect("one by one", alice.reading(name), "text "+name+", asked 1")
		if n < risingClasses-1 {
			s.await(learnedMetric, uint64(n+1))
		}
	}
	s.await(learnedMetric, uint64(len(names)+1)) // with bob's, who is a friend, too
	s.settle()
	for _, name := range names[risingClasses:] {
		s.expect("then", alice.reading(name), "text "+name+", "+askedWhenGrown)
	}
	carol := s.login("bob", "127.0.1.2")
	s.expect("another user", carol.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, asked 1")
}

// Widened accesses are counted by instance and set, and only in one version of the catalog.
func TestActivityIsCountedInOneVersion(t *testing.T) {
	s, names := newAlbums(t, risingClasses)
	s.startLearning()
	state := s.monitor.state()
	var accesses []analysis.Access
	for _, name := range names {
		id, _ := state.ID(name)
		accesses = append(accesses, analysis.Access{Class: state.ClassOf(id),
			Instance: analysis.Instance{Task: "worker", Arguments: []string{"alice", "de"}}})
	}
	l := newLearner()
	if got := l.widened("probe", accesses[1:], state); len(got) != risingClasses-1 {
		t.Errorf("%d accesses", len(got))
	}
	if got := l.widened("other", accesses[:1], state); len(got) != 1 {
		t.Errorf("of another pipeline: %d accesses", len(got))
	}
	s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("friends/x", "friend", "alice")}})
	if got := l.widened("probe", accesses[:1], s.monitor.state()); len(got) != 1 {
		t.Errorf("in another version: %d accesses", len(got))
	}
}

// TestTimesToNative measures, for each way in which an access becomes native, the time from what
// causes it until the session is not asked about any more. It prints them, and asserts none.
func TestTimesToNative(t *testing.T) {
	s, names := newAlbums(t, risingClasses+1)
	s.options.NoIngest = false
	s.startLearning()
	alice := s.login("alice", "127.0.1.1")
	untilNative := func(what, name string, begun time.Time) {
		t.Helper()
		for !strings.HasSuffix(alice.reading(name), askedWhenGrown) {
			continue
		}
		t.Logf("%s: native after %v", what, time.Since(begun).Round(10*time.Microsecond))
	}
	begun := time.Now()
	alice.reading(names[0])
	untilNative("first misprediction", names[0], begun)
	begun = time.Now()
	for _, name := range names[1:risingClasses] {
		alice.reading(name)
	}
	untilNative("rising activity, a class that was not read", names[risingClasses], begun)
	begun = time.Now()
	s.document("/corpus/friends/bob/new.txt")
	s.ingest(api.IngestRequest{Paths: []string{"/corpus/friends/bob/new.txt"}})
	untilNative("a document in a class that is known", "/corpus/friends/bob/new.txt", begun)
	begun = time.Now()
	s.document("/corpus/private/alice/new.txt")
	s.ingest(api.IngestRequest{Paths: []string{"/corpus/private/alice/new.txt"}})
	untilNative("a document in a new class", "/corpus/private/alice/new.txt", begun)
	begun = time.Now()
	_, err := s.monitor.Analyze(t.Context(), api.AnalyzeRequest{Scope: api.ScopeActive}, func(api.Progress) {})
	s.must(err)
	t.Logf("an analysis of the active instances: %v", time.Since(begun).Round(10*time.Microsecond))
}
