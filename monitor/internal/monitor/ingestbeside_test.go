// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// analyzeSlowly begins a full analysis, which stops at its first report of a phase until resume is
// called. ended gets its error.
func (s *stack) analyzeSlowly(phase string) (resume func(), ended chan error) {
	reached, release := make(chan struct{}), make(chan struct{})
	stopped := sync.OnceFunc(func() {
		close(reached)
		<-release
	})
	ended = make(chan error, 1)
	go func() {
		_, err := s.monitor.Analyze(s.t.Context(), api.AnalyzeRequest{}, func(p api.Progress) {
			if p.Phase == phase {
				stopped()
			}
		})
		ended <- err
	}()
	resume = sync.OnceFunc(func() { close(release) })
	s.t.Cleanup(resume)
	<-reached
	return resume, ended
}

// Documents come, change and go while an analysis runs. What it has found is in force afterwards for
// the documents that there are then, and what is left is decided as after any other document.
func TestDocumentsDoNotWaitForAnAnalysis(t *testing.T) {
	for _, phase := range []string{"instances", "capability sets"} {
		t.Run(phase, func(t *testing.T) {
			s := newIngestingStack(t)
			s.options.NoIngest = true
			s.document("/corpus/public/1.txt")
			s.startIngesting()
			alice := s.login("alice", "127.0.1.1")
			resume, ended := s.analyzeSlowly(phase)

			s.document("/corpus/private/alice/2.txt") // of a known class
			s.document("/corpus/friends/bob/1.txt")   // of a new class
			s.document("/corpus/private/carol/1.txt") // of one that alice may not read
			public := filepath.Join(s.options.Data, "/corpus/public/1.txt")
			s.must(os.Remove(public)) // the only one of its class
			own := filepath.Join(s.options.Data, "/corpus/private/alice/1.txt")
			s.must(os.Rename(own, own+".old")) // a document, too
			s.document("/corpus/private/alice/1.txt")
			taken := make(chan api.IngestResult, 1)
			go func() {
				all := api.IngestRequest{Paths: []string{"/corpus"}}
				result, err := s.monitor.Ingest(t.Context(), all, func(api.Progress) {})
				if err != nil {
					t.Error(err)
				}
				taken <- result
			}()
			waiting.Until(t, "they are catalogued", func() bool { return len(taken) > 0 })
			result := <-taken
			result.DurationMicroseconds = 0
			if diff := cmp.Diff(api.IngestResult{Added: 4, Renewed: 1, Removed: 1}, result); diff != "" {
				t.Error(diff)
			}
			if len(ended) > 0 {
				t.Fatal("the analysis did not run any more")
			}
			s.expect("meanwhile, of a known class", alice.reading("/corpus/private/alice/2.txt"),
				"text /corpus/private/alice/2.txt, asked 0")

			resume()
			s.must(<-ended)
			other := s.login("alice", "127.0.1.2")
			waiting.Until(t, "what came is native", func() bool {
				return other.reading("/corpus/friends/bob/1.txt") == "text /corpus/friends/bob/1.txt, "+askedWhenGrown
			})
			s.settle()
			got := s.capabilitiesNow()
			s.analyze()
			if diff := cmp.Diff(s.capabilitiesNow(), got); diff != "" {
				t.Errorf("a full run finds something else: %s", diff)
			}
		})
	}
}

// An analysis that has found an access which rests on a document that goes meanwhile does not put it in
// force.
func TestAnalysesFollowDocumentsThatGoMeanwhile(t *testing.T) {
	for _, phase := range []string{"instances", "capability sets"} {
		t.Run(phase, func(t *testing.T) {
			const asked, about = "/corpus/friends/bob/1.txt", "/corpus/public/1.txt"
			s := newIngestingStack(t)
			s.options.NoIngest = true
			s.must(os.RemoveAll(filepath.Join(s.options.Data, "/corpus/private")))
			s.document(asked)
			s.document(about)
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], publicRule,
				`read :- sKeyIs(_), cIdExists(1).`, 1)
			s.startIngesting()
			resume, ended := s.analyzeSlowly(phase)
			s.must(os.Remove(filepath.Join(s.options.Data, asked)))
			s.ingest(api.IngestRequest{Paths: []string{"/corpus"}})
			resume()
			s.must(<-ended)
			got := s.capabilitiesNow()
			alice := s.login("alice", "127.0.1.1")
			if answer := alice.reading(about); strings.HasPrefix(answer, "text") {
				t.Errorf("alice reads what nobody may read any more: %s", answer)
			}
			s.analyze()
			if diff := cmp.Diff(s.capabilitiesNow(), got); diff != "" {
				t.Errorf("a full run finds something else: %s", diff)
			}
		})
	}
}

// A change of facts does wait: an analysis that has begun before it would allow what it takes.
func TestFactsWaitForAnAnalysis(t *testing.T) {
	s := newIngestingStack(t)
	s.options.NoIngest = true
	s.document("/corpus/friends/bob/1.txt")
	s.startIngesting()
	resume, ended := s.analyzeSlowly("instances")
	changed := make(chan error, 1)
	go func() {
		less := api.FactChange{Remove: []api.Fact{apiFact("friends/bob", "friend", "alice")}}
		_, err := s.monitor.ChangeFacts(t.Context(), less)
		changed <- err
	}()
	s.document("/corpus/public/1.txt")
	s.ingest(api.IngestRequest{Paths: []string{"/corpus/public"}})
	if len(changed) > 0 {
		t.Error("the facts have changed while an analysis ran")
	}
	resume()
	s.must(<-ended)
	s.must(<-changed)
	s.settle()
	got := s.capabilitiesNow()
	s.analyze()
	if diff := cmp.Diff(s.capabilitiesNow(), got); diff != "" {
		t.Errorf("a full run finds something else: %s", diff)
	}
}

// BenchmarkIngestBesideAnalysis catalogues documents while the analysis of many users runs.
func BenchmarkIngestBesideAnalysis(b *testing.B) {
	s := newIngestingStack(b)
	s.options.NoIngest = true
	const users = 2000
	for n := range users {
		s.principal(fmt.Sprint("u", n), "de")
		s.document(fmt.Sprintf("/corpus/private/u%d/1.txt", n))
	}
	s.open()
	s.apply()
	var analysis, slowest time.Duration
	made := 0
	for b.Loop() {
		ended := make(chan error, 1)
		begun := time.Now()
		go func() {
			_, err := s.monitor.Analyze(b.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
			analysis = max(analysis, time.Since(begun))
			ended <- err
		}()
		for len(ended) == 0 {
			made++
			name := fmt.Sprintf("/corpus/public/b%d.txt", made)
			s.document(name)
			at := time.Now()
			s.ingest(api.IngestRequest{Paths: []string{name}})
			slowest = max(slowest, time.Since(at))
		}
		s.must(<-ended)
	}
	b.ReportMetric(float64(analysis.Milliseconds()), "analysis-ms")
	b.ReportMetric(float64(slowest.Microseconds())/1e3, "slowest-ingest-ms")
	b.ReportMetric(float64(made)/float64(b.N), "documents/analysis")
}
