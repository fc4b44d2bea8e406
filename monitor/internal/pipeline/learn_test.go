// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// learning is the bare pipeline, whose workers are not expected to read offers, with a session
// of bob's in each mode. It notes what is reported as unforeseen.
type learning struct {
	*fixture
	to       *pipelinetest.Supervisor
	in       map[wire.Mode]*session
	reported []analysis.Access
}

func newLearning(t *testing.T) *learning {
	l := &learning{fixture: bare(t), in: map[wire.Mode]*session{}}
	l.apply(strings.Replace(pipelinetest.Bare, `        - {path: "/offer/**"`,
		"    - name: offers\n      kind: file\n      ingress: true\n      paths:\n        - {path: \"/offer/**\"", 1))
	l.analyze()
	l.services.Unforeseen = func(_ string, access analysis.Access) { l.reported = append(l.reported, access) }
	var v *supervised
	v, l.to = superviseBare(t, l.fixture)
	for number, mode := range []wire.Mode{wire.ModeShai, wire.ModeDynamic, wire.ModeAudit} {
		event := supervision.Event{
			Session: uint64(number), Worker: 4000 + int32(number), Mode: mode, Peer: peerInGermany,
		}
		accepted, bound := event, event
		accepted.Kind, accepted.Reason = supervision.EventAccepted, "de"
		bound.Kind, bound.Principal, bound.Instance = supervision.EventBound, "bob", "worker(bob, de)"
		v.Receive(supervision.Events{Events: []supervision.Event{accepted, bound}})
		l.in[mode] = v.session(uint64(number))
	}
	l.to.Since()
	return l
}

// opens opens a document in a session and returns what was reported.
func (l *learning) opens(mode wire.Mode, document string) []analysis.Access {
	l.t.Helper()
	l.reported = nil
	s := l.in[mode]
	if file, errno := s.openConduit(nil, s.actor(), l.id(document)); errno == 0 {
		file.Close()
	}
	return l.reported
}

func (l *learning) classOf(document string) uint32 {
	return l.services.state().ClassOf(l.id(document))
}

// An access that was not foreseen is reported once in mode shai, if the policies allow it. Mode
// dynamic decides on every access, and mode audit records every one that was not foreseen.
func TestWhatIsReportedAsUnforeseen(t *testing.T) {
	l := newLearning(t)
	bob := analysis.Instance{Task: "worker", Arguments: []string{"bob", "de"}}
	for _, mode := range []wire.Mode{wire.ModeDynamic, wire.ModeAudit} {
		if reported := l.opens(mode, "/offer/1.txt"); len(reported) > 0 {
			t.Errorf("in mode %v %v was reported", mode, reported)
		}
	}
	if reported := l.opens(wire.ModeShai, "/dropbox/1.txt"); len(reported) > 0 {
		t.Errorf("of what the policies refuse, %v was reported", reported)
	}
	reported := l.opens(wire.ModeShai, "/offer/1.txt")
	if len(reported) != 1 || reported[0].Class != l.classOf("/offer/1.txt") || reported[0].Instance.Name() != bob.Name() {
		t.Errorf("%v was reported", reported)
	}
	if reported := l.opens(wire.ModeShai, "/offer/1.txt"); len(reported) > 0 {
		t.Errorf("a second time %v was reported", reported)
	}
	l.services.Unforeseen = nil
	l.in[wire.ModeShai].learnt = nil
	if reported := l.opens(wire.ModeShai, "/offer/1.txt"); len(reported) > 0 {
		t.Errorf("with learning off %v was reported", reported)
	}
}

// A set that has grown goes to the live sessions in mode shai, and to no others. Without the
// class it goes to none.
func TestGrownSetsGoToLiveSessions(t *testing.T) {
	l := newLearning(t)
	access := analysis.Access{Instance: analysis.Instance{Task: "worker", Arguments: []string{"bob", "de"}},
		Class: l.classOf("/offer/1.txt")}
	if l.Publish(access) {
		t.Error("a set without the class was published")
	}
	expectTold(t, l.to, "of a set without the class")
	_, affected, err := l.result.Extend(t.Context(), l.services.state(), []analysis.Access{access},
		analysis.Options{Now: time.Now()})
	l.must(err)
	if len(affected) != 1 {
		t.Fatalf("%d instances have gained something", len(affected))
	}
	l.must(l.Grow(affected[0].After))
	expectTold(t, l.to, "of a set that has grown", "set worker(bob, de) bob de flags 3, 3 classes")
	if !l.Publish(access) {
		t.Error("the set was not published")
	}
	expectTold(t, l.to, "of a set for live sessions", "set worker(bob, de) bob de flags 7, 3 classes")
	for mode, s := range l.in {
		if got := s.bound().holdsClass(access.Class); got != (mode == wire.ModeShai) {
			t.Errorf("in mode %v the session has the class: %v", mode, got)
		}
	}
	l.DropSets()
	if l.Publish(access) {
		t.Error("a set that is not in force was published")
	}
}
