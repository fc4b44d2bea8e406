// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// newIngestingStack is a stack that follows the files of its documents.
func newIngestingStack(t testing.TB) *stack {
	s := newStack(t)
	s.options.NoIngest = false
	s.document("/corpus/private/alice/1.txt")
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.fact("friends/bob", "friend", "alice")
	return s
}

func (s *stack) startIngesting() {
	s.open()
	s.apply()
	s.analyze()
	s.startWorkers()
}

// awaitDocument waits until a file is catalogued.
func (s *stack) awaitDocument(name string) {
	s.t.Helper()
	waiting.Until(s.t, name+" is catalogued", func() bool {
		id, known := s.monitor.state().ID(name)
		return known && s.monitor.state().ClassOf(id) != 0
	})
}

// A file that somebody puts into a directory of documents is a document at once, without a command,
// and native for live sessions when the background analysis has run.
func TestDocumentsFollowTheirFiles(t *testing.T) {
	s := newIngestingStack(t)
	s.startIngesting()
	alice := s.login("alice", "127.0.1.1")
	s.document("/corpus/friends/bob/1.txt")
	if !isReference {
		s.ingest(api.IngestRequest{Paths: []string{"/corpus"}}) // here sweeps find it, in minutes
	}
	s.awaitDocument("/corpus/friends/bob/1.txt")
	waiting.Until(t, "the session can read it natively", func() bool {
		return alice.reading("/corpus/friends/bob/1.txt") == "text /corpus/friends/bob/1.txt, "+askedWhenGrown
	})
	s.expectGrown(alice, "/corpus/friends/bob/1.txt")
}

// What came, and what went, while the monitor was down is found when it starts.
func TestDocumentsOfTheTimeBeforeTheStart(t *testing.T) {
	s := newIngestingStack(t)
	s.startIngesting()
	s.close()
	s.document("/corpus/public/meanwhile.txt")
	s.must(os.Remove(filepath.Join(s.options.Data, "/corpus/private/alice/1.txt")))
	s.open()
	s.awaitDocument("/corpus/public/meanwhile.txt")
	waiting.Until(t, "the removed one is gone", func() bool {
		_, known := s.monitor.state().ID("/corpus/private/alice/1.txt")
		return !known
	})
}

// What is decided in the background is what a full run decides, also if facts change in between.
func TestBackgroundAnalysisIsAFullRun(t *testing.T) {
	s := newIngestingStack(t)
	s.options.NoIngest, s.options.NoLearning = true, true
	for n := range 3 * decidedAtOnce {
		s.principal(fmt.Sprint("u", n), "de")
		s.fact("friends/bob", "friend", fmt.Sprint("u", n))
	}
	s.startIngesting()
	s.document("/corpus/friends/bob/1.txt")
	s.document("/corpus/private/u1/1.txt")
	s.ingest(api.IngestRequest{Paths: []string{"/corpus"}})
	instances, plan := s.monitor.instancesFor("probe", s.monitor.postponed.take()["probe"])
	classes := s.monitor.state().ClassesOf("probe/documents")
	decide := func(from, to int) {
		_, _, err := s.monitor.decideSome(t.Context(), "probe", plan, classes, instances[from:to])
		s.must(err)
	}
	decide(0, 20)
	s.changeFacts(api.FactChange{Remove: []api.Fact{apiFact("friends/bob", "friend", "u7")},
		Add: []api.Fact{apiFact("friends/bob", "friend", "carol")}})
	decide(20, len(instances))
	got := s.capabilitiesNow()
	s.analyze()
	if diff := cmp.Diff(s.capabilitiesNow(), got); diff != "" {
		t.Error(diff)
	}
}

// capabilitiesNow lists what the analysis in force has found, by instance.
func (s *stack) capabilitiesNow() map[string][][]uint32 {
	found := map[string][][]uint32{}
	for _, one := range s.monitor.analyses["probe"].result.Instances() {
		found[one.Instance.Name()] = [][]uint32{one.Reads, one.Writes}
	}
	return found
}

func TestIngestRequests(t *testing.T) {
	s := newIngestingStack(t)
	s.options.NoIngest = true
	s.startIngesting()
	s.document("/corpus/public/2.txt")
	s.document("/corpus/public/deep/3.txt")
	data := s.options.Data
	tests := []struct {
		paths  []string
		remove bool
		before func()
		want   api.IngestResult
	}{
		{paths: []string{"/corpus/public/2.txt", "/corpus/public/2.txt"}, want: api.IngestResult{Added: 1}},
		{paths: []string{filepath.Join(data, "corpus/public/2.txt")}, want: api.IngestResult{Unchanged: 1}},
		{paths: []string{"/corpus"}, want: api.IngestResult{Added: 1, Unchanged: 3}},
		{paths: []string{"/"}, want: api.IngestResult{Unchanged: 4}},
		{paths: []string{"/corpus/public/none", "/corpus/public/1.txt"}, want: api.IngestResult{Unchanged: 1, RefusedTotal: 1,
			Refused: []api.RefusedDocument{{Path: "/corpus/public/none",
				Reason: "there is no such file beneath the data directory; if it was removed, give --remove"}}}},
		{paths: []string{"/corpus/public/1.txt"}, remove: true, want: api.IngestResult{RefusedTotal: 1,
			Refused: []api.RefusedDocument{{Path: "/corpus/public/1.txt",
				Reason: "it still exists; remove the file, and the catalog follows"}}}},
		{paths: []string{"/corpus/public/2.txt"}, remove: true, before: func() {
			s.must(os.Remove(filepath.Join(data, "/corpus/public/2.txt")))
		}, want: api.IngestResult{Removed: 1}},
		{paths: []string{"/corpus/public/deep"}, remove: true, before: func() {
			s.must(os.RemoveAll(filepath.Join(data, "/corpus/public/deep")))
		}, want: api.IngestResult{Removed: 1}},
		{paths: []string{"/corpus/public/deep"}, remove: true, want: api.IngestResult{RefusedTotal: 1,
			Refused: []api.RefusedDocument{{Path: "/corpus/public/deep",
				Reason: "no document is catalogued under this name"}}}},
		{paths: []string{"/../state/audit"}, want: api.IngestResult{RefusedTotal: 1,
			Refused: []api.RefusedDocument{{Path: "/../state/audit",
				Reason: "there is no such file beneath the data directory; if it was removed, give --remove"}}}},
	}
	for _, test := range tests {
		if test.before != nil {
			test.before()
		}
		got := s.ingest(api.IngestRequest{Paths: test.paths, Remove: test.remove})
		got.DurationMicroseconds = 0
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.paths, diff)
		}
	}
	s.expectMeasured("then", map[string]float64{
		"shai_ingested_documents_total added": 2, "shai_ingested_documents_total renewed": 0,
		"shai_ingested_documents_total removed": 2, "shai_ingested_documents_total refused": 0,
		"shai_ingest_seconds": 4,
	})
}

// BenchmarkIngestWhileSessionsRead puts documents into a directory of a monitor, as fast as it
// follows, while a session reads.
func BenchmarkIngestWhileSessionsRead(b *testing.B) {
	s := newIngestingStack(b)
	s.startIngesting()
	var reads atomic.Int64
	var slowest atomic.Int64
	done := make(chan struct{})
	ended := make(chan struct{})
	alice := s.login("alice", "127.0.1.1")
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			begun := time.Now()
			alice.must(fmt.Sprintf("read %d", s.id("/corpus/private/alice/1.txt")))
			slowest.Store(max(slowest.Load(), int64(time.Since(begun))))
			reads.Add(1)
		}
	}()
	made := 0
	for b.Loop() {
		for range 1000 {
			made++
			s.document(fmt.Sprintf("/corpus/public/b%d.txt", made))
		}
		s.awaitDocument(fmt.Sprintf("/corpus/public/b%d.txt", made))
	}
	close(done)
	<-ended
	b.ReportMetric(float64(made)/b.Elapsed().Seconds(), "documents/s")
	b.ReportMetric(float64(reads.Load())/b.Elapsed().Seconds(), "reads/s")
	b.ReportMetric(float64(slowest.Load())/1e6, "slowest-ms")
}
