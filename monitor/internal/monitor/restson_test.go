// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
)

// publicRule is the read rule of the manifest's policy public.
const publicRule = `read       :- sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }.`

// A document whose policy asks for another document is not read natively any more when that one goes, or
// gets another policy: neither by a live session nor by a later one.
func TestDocumentsThatPoliciesAskForGoAndChange(t *testing.T) {
	const asked, about = "/corpus/friends/bob/1.txt", "/corpus/public/1.txt"
	tests := map[string]struct {
		rule   string
		change func(s *stack)
	}{
		"it goes": {`read :- sKeyIs(_), cIdExists(1).`, func(s *stack) {
			s.must(os.Remove(filepath.Join(s.options.Data, asked)))
			s.ingest(api.IngestRequest{Paths: []string{"/corpus"}})
		}},
		"its class stays": {`read :- sKeyIs(_), cIdExists(1).`, func(s *stack) {
			s.document("/corpus/friends/bob/2.txt")
			s.ingest(api.IngestRequest{Paths: []string{"/corpus"}})
			s.must(os.Remove(filepath.Join(s.options.Data, asked)))
			s.ingest(api.IngestRequest{Paths: []string{"/corpus"}})
		}},
		"its owner chooses": {`read :- sKeyIs(_), hasPol(1, P), isAsRestrictive(this.update, P.read). update :- sKeyIs("alice").`,
			func(s *stack) {
				_, err := s.monitor.ChoosePolicy(s.t.Context(), s.choice(asked, `private(owner: "bob")`, "bob", "bob"))
				s.must(err)
			}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newIngestingStack(t)
			s.options.NoIngest = true
			s.must(os.RemoveAll(filepath.Join(s.options.Data, "/corpus/private")))
			s.document(asked)
			s.withChoices()
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], publicRule, test.rule, 1)
			s.startIngesting()
			if id := s.id(asked); id != 1 {
				t.Fatalf("%s has number %d", asked, id)
			}
			alice := s.login("alice", "127.0.1.1")
			s.expect("before", alice.reading(about), "text "+about+", asked 0")
			test.change(s)
			followed := s.capabilitiesNow()
			if answer := alice.reading(about); answer != "text "+about+", asked 0" { // as lazy revocation lets it
				t.Errorf("the live session: %s", answer)
			}
			alice.connection.Close()
			s.expect("a later session", s.login("alice", "127.0.1.1").reading(about),
				"error EACCES withheld 1, asked 1")
			s.analyze()
			if diff := cmp.Diff(s.capabilitiesNow(), followed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A live session that keeps a document which its user loses in a step does not read the content that the
// document gets in the same step.
func TestNewContentIsNotReadByWhatGoesWithIt(t *testing.T) {
	const asked, next = "/corpus/friends/bob/1.txt", "/corpus/public/1.txt"
	s := newIngestingStack(t)
	s.options.NoIngest = true
	s.must(os.RemoveAll(filepath.Join(s.options.Data, "/corpus/private")))
	s.document(asked)
	s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], publicRule,
		`read :- sKeyIs(_), cIdExists(1).`, 1)
	s.startIngesting()
	alice := s.login("alice", "127.0.1.1")
	s.expect("before", alice.reading(next), "text "+next+", asked 0")
	s.must(os.Remove(filepath.Join(s.options.Data, asked)))
	s.must(os.Remove(filepath.Join(s.options.Data, next)))
	s.document(next)
	_, err := s.monitor.ingest([]string{asked, next})
	s.must(err)
	if answer, err := alice.say("mode"); err == nil {
		t.Errorf("the session goes on: %s", answer)
	}
}
