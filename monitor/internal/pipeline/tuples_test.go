// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"testing"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/wire"
)

// victimWorker notes that it was killed.
type victimWorker struct {
	liveWorker
	killed *bool
}

func (w victimWorker) Kill() { *w.killed = true }

// TestTuplesThatAreAdded: the store gives live sessions what it gives the user that they act as.
// In a dynamic mode it is a part of the running taint before, or the session ends.
func TestTuplesThatAreAdded(t *testing.T) {
	own, others := "/corpus/private/alice/1.txt", "/corpus/private/bob/1.txt"
	profile := []analysis.Other{{Set: "profiles", Conduit: "profile:alice"}}
	history := append(profile, analysis.Other{Set: "histories", Conduit: "history:alice/de", Write: true})
	stranger := append(profile, analysis.Other{Set: "profiles", Conduit: "profile:bob"})
	for _, test := range []struct {
		name, user  string
		mode        wire.Mode
		reads       string // before
		added       []analysis.Other
		ends        bool
		leaves, bob bool // afterwards: says something, and reads bob's document
	}{
		{"nothing", "user", wire.ModeDynamic, "", profile, false, true, true},
		{"a tuple to write", "user", wire.ModeDynamic, own, history, false, true, false},
		{"a tuple to write, lazily", "user", wire.ModeDynamicLazy, own, history, false, true, false},
		{"a tuple to write after bob's document", "user", wire.ModeDynamic, others, history, true, false, true},
		{"the same, lazily", "user", wire.ModeDynamicLazy, others, history, true, false, true},
		{"bob's tuple to read", "user", wire.ModeDynamic, own, stranger, false, false, true},
		{"a tuple of another user", "other", wire.ModeDynamic, others, history, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := probe(t, SessionLimits{})
			f.apply(pipelinetest.Probe)
			s := f.begins(test.mode, "alice", func(holds *capabilitySet) { holds.others, holds.keyValue = profile, "user" })
			killed := false
			s.worker = victimWorker{killed: &killed}
			if test.reads != "" && !f.reads(s, test.reads).Allowed {
				t.Fatal("it reads nothing")
			}
			f.permitTuples(f.services.state(), "user", profile)
			f.permitTuples(f.services.state(), "other", profile)
			f.permitTuples(f.services.state(), test.user, test.added)
			if killed != test.ends {
				t.Errorf("ended: %v, want %v", killed, test.ends)
			}
			if left := s.sends(); (left.Errno == 0) != test.leaves {
				t.Errorf("it says something: %v (%s)", left.Errno == 0, left.Reason)
			}
			if found := f.reads(s, others); found.Allowed != test.bob {
				t.Errorf("it reads bob's document: %v (%s)", found.Allowed, found.Reason)
			}
		})
	}
}

// TestTuplesThatWereAdded: a session that the monitor learns of later has what the store has given
// its user meanwhile, which is not in its set yet.
func TestTuplesThatWereAdded(t *testing.T) {
	f := probe(t, SessionLimits{})
	f.apply(pipelinetest.Probe)
	f.permitTuples(f.services.state(), "user", []analysis.Other{{Set: "profiles", Conduit: "profile:bob"}})
	for user, leaves := range map[string]bool{"user": false, "other": true, "": true} {
		s := f.begins(wire.ModeDynamic, "alice", func(holds *capabilitySet) { holds.keyValue = user })
		if left := s.sends(); (left.Errno == 0) != leaves {
			t.Errorf("as %q it says something: %v (%s)", user, left.Errno == 0, left.Reason)
		}
	}
}
