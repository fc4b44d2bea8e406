// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// dynamicModes are the modes in which the taint is tracked. They decide the same.
var dynamicModes = []wire.Mode{wire.ModeDynamic, wire.ModeDynamicLazy}

// TestRunningTaintOfATask: the collector's declared taint keeps nothing. In a dynamic mode
// what it has read decides, not what was declared.
func TestRunningTaintOfATask(t *testing.T) {
	const open, diary, dropbox = "/open/1.txt", "/diary/alice/1.txt", "/dropbox/1.txt"
	type step struct {
		mode    wire.Mode
		path    string
		flags   int
		allowed bool
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"declared too low, by the declared taint", []step{
			{wire.ModeShai, diary, unix.O_RDONLY, false}, {wire.ModeShai, open, unix.O_WRONLY, true},
		}},
		{"declared too low, reads a secret", []step{
			{wire.ModeDynamic, diary, unix.O_RDONLY, true}, {wire.ModeDynamic, open, unix.O_WRONLY, false},
		}},
		{"has read nothing", []step{{wire.ModeDynamic, open, unix.O_WRONLY, true}}},
		{"has read what the target keeps", []step{
			{wire.ModeDynamic, open, unix.O_RDONLY, true}, {wire.ModeDynamic, dropbox, unix.O_WRONLY, true},
		}},
		{"reads and writes one file", []step{{wire.ModeDynamic, open, unix.O_RDWR, true}}},
		{"has a file open for writing", []step{
			{wire.ModeDynamic, open, unix.O_WRONLY, true}, {wire.ModeDynamic, diary, unix.O_RDONLY, false},
			{wire.ModeDynamic, open, unix.O_RDONLY, true},
		}},
		{"has a file open that keeps the secret", []step{
			{wire.ModeDynamic, dropbox, unix.O_WRONLY, true}, {wire.ModeDynamic, dropbox, unix.O_RDONLY, true},
			{wire.ModeDynamic, dropbox, unix.O_WRONLY, true}, {wire.ModeDynamic, diary, unix.O_RDONLY, false},
		}},
		{"has opened a file for writing in another mode", []step{
			{wire.ModeShai, open, unix.O_WRONLY, true}, {wire.ModeDynamic, diary, unix.O_RDONLY, false},
		}},
		{"has read a secret before the mode was switched", []step{
			{wire.ModeDynamic, diary, unix.O_RDONLY, true}, {wire.ModeShai, open, unix.O_WRONLY, false},
		}},
		{"has read a secret in mode audit", []step{
			{wire.ModeAudit, diary, unix.O_RDONLY, true}, {wire.ModeDynamic, open, unix.O_WRONLY, false},
		}},
		{"has read a secret in mode audit, and the mode is switched to shai", []step{
			{wire.ModeAudit, diary, unix.O_RDONLY, true}, {wire.ModeShai, open, unix.O_WRONLY, false},
			{wire.ModeShai, open, unix.O_RDONLY, true},
		}},
		{"has read a secret in mode audit, which lets it go anywhere", []step{
			{wire.ModeAudit, diary, unix.O_RDONLY, true}, {wire.ModeAudit, open, unix.O_WRONLY, true},
		}},
		{"was refused a secret in mode shai", []step{
			{wire.ModeShai, diary, unix.O_RDONLY, false}, {wire.ModeDynamic, open, unix.O_WRONLY, true},
		}},
	} {
		for _, mode := range dynamicModes {
			p, self := bare(t), os.Getpid()
			collector := p.tasks["collector"]
			collector.starts()
			for i, step := range test.steps {
				p.must(p.SwitchTo(step.mode))
				if step.mode.IsDynamic() {
					p.must(p.SwitchTo(mode))
				}
				verdict := p.opens(pipelinetest.NewTask("collector", self), self, step.path, step.flags)
				if allowed := verdict.Errno == 0; allowed != step.allowed {
					t.Errorf("%s, %v, step %d: allowed %v, want %v (%s)", test.name, mode, i, allowed, step.allowed,
						verdict.Reason)
				}
			}
		}
	}
}

// TestOutputIsUnderTheRunningTaint: what a task prints after it has read more than its declared
// taint keeps is not under that taint any more; after its next start it is again.
func TestOutputIsUnderTheRunningTaint(t *testing.T) {
	p, self := bare(t), os.Getpid()
	p.must(p.SwitchTo(wire.ModeDynamic))
	collector := p.tasks["collector"]
	mayRead := func(who string) bool {
		label := collector.acting.Load().outputLabel()
		return collector.mayReadLog(label, Reader{Principal: who, Region: "de"}) == nil
	}
	for _, step := range []struct {
		name, reads string
		start       bool
		bob, carol  bool
	}{
		{name: "started", start: true, bob: true, carol: true},
		{name: "has read open data", reads: "/open/1.txt", bob: true, carol: true},
		{name: "has read what alice's friends may read", reads: "/diary/alice/1.txt", bob: true},
		{name: "started again", start: true, bob: true, carol: true},
	} {
		if step.start {
			collector.starts()
		}
		if step.reads != "" {
			if verdict := p.opens(pipelinetest.NewTask("collector", self), self, step.reads, unix.O_RDONLY); verdict.Errno != 0 {
				t.Errorf("%s: refused (%s)", step.name, verdict.Reason)
			}
		}
		if bob, carol := mayRead("bob"), mayRead("carol"); bob != step.bob || carol != step.carol {
			t.Errorf("%s: bob reads the log: %v, carol: %v", step.name, bob, carol)
		}
	}
}

// TestAuditedReadsCountLater: what mode audit has let a task read does not make its writes worth
// a record in mode audit, since in mode shai the read would have been refused. In other modes it
// counts, for what the task prints, too; and the mode stays while the task could write it to what
// it holds.
func TestAuditedReadsCountLater(t *testing.T) {
	const open, diary = "/open/1.txt", "/diary/alice/1.txt"
	for _, test := range []struct {
		name   string
		opens  []string // for writing, in mode audit, before it reads the diary
		leaves bool     // the mode may be switched
	}{{"holds nothing", nil, true}, {"holds an open file", []string{open}, false}} {
		for _, mode := range append([]wire.Mode{wire.ModeShai}, dynamicModes...) {
			p, self := bare(t), os.Getpid()
			collector := p.tasks["collector"]
			collector.starts()
			p.must(p.SwitchTo(wire.ModeAudit))
			opens := func(path string, flags int) bool {
				return p.opens(pipelinetest.NewTask("collector", self), self, path, flags).Errno == 0
			}
			mayRead := func(who string) bool {
				label := collector.acting.Load().outputLabel()
				return collector.mayReadLog(label, Reader{Principal: who, Region: "de"}) == nil
			}
			for _, path := range test.opens {
				opens(path, unix.O_WRONLY)
			}
			p.records()
			opens(diary, unix.O_RDONLY)
			if !p.recorded("would be denied: ") || !opens(open, unix.O_WRONLY) || p.recorded("would be denied: ") {
				t.Errorf("%s: not the read is recorded as to be denied, but the write", test.name)
			}
			if !mayRead("carol") {
				t.Errorf("%s: in mode audit the log is under another label", test.name)
			}
			collector.starts() // without the write
			for _, path := range test.opens {
				opens(path, unix.O_WRONLY)
			}
			opens(diary, unix.O_RDONLY)
			if err := p.SwitchTo(mode); (err == nil) != test.leaves {
				t.Errorf("%s: %v", test.name, err)
			}
			if !test.leaves {
				continue
			}
			if mayRead("carol") || !mayRead("bob") || opens(open, unix.O_WRONLY) {
				t.Errorf("%s, mode %v: what was read in mode audit does not count", test.name, mode)
			}
		}
	}
}

// TestNoReadIsBetweenModes: a read that mode audit allows comes before the switch, which finds
// it, or is decided on in the other mode.
func TestNoReadIsBetweenModes(t *testing.T) {
	const open, diary = "/open/1.txt", "/diary/alice/1.txt"
	p, self := bare(t), os.Getpid()
	process := pipelinetest.NewTask("collector", self)
	for range 500 {
		p.must(p.SwitchTo(wire.ModeAudit))
		p.tasks["collector"].starts()
		p.opens(process, self, open, unix.O_WRONLY)
		reads := make(chan bool)
		go func() { reads <- p.opens(process, self, diary, unix.O_RDONLY).Errno == 0 }()
		err := p.SwitchTo(wire.ModeShai)
		if read := <-reads; read && err == nil {
			t.Fatal("it reads the diary in mode audit, and can write it in mode shai")
		}
		p.tasks["collector"].starts()
	}
}

// TestZygotesAreNotAudited: what a task's program reads before a session, each later session has,
// in whatever mode. So mode audit does not let it read what mode shai would not. A session's reads
// it does: they end with the session, which stays in mode audit.
func TestZygotesAreNotAudited(t *testing.T) {
	p, self := bare(t), os.Getpid()
	p.tasks["worker"].starts()
	p.must(p.SwitchTo(wire.ModeAudit))
	zygote := pipelinetest.NewTask("worker", self)
	if p.opens(zygote, self, "/open/1.txt", unix.O_RDONLY).Errno != 0 {
		t.Error("what everybody may read is refused")
	}
	p.records()
	if p.opens(zygote, self, "/diary/alice/1.txt", unix.O_RDONLY).Errno == 0 {
		t.Error("its later sessions have alice's diary")
	}
	if got := p.records(); len(got) != 1 || got[0].Allowed || got[0].Task != "worker" {
		t.Errorf("recorded: %+v", got)
	}
	if carol := p.begins(wire.ModeAudit, "carol", unchanged); !p.reads(carol, "/diary/alice/1.txt").Allowed {
		t.Error("mode audit refuses a session's read")
	}
}

// begins begins a session of a user in region de whose capability set is given.
func (f *fixture) begins(mode wire.Mode, principal string, change func(*capabilitySet)) *session {
	f.t.Helper()
	holds, err := f.capabilities(f.tasks["worker"], sessionOf(principal, "de"))
	f.must(err)
	given := anotherLike(holds)
	change(given)
	s := &session{pipeline: f.Pipeline, task: f.tasks["worker"], slot: &slot{}, region: "de", mode: mode,
		worker: liveWorker{}}
	f.sessions.byProcess[s.worker.PID()] = s
	s.hold(given, s.withConnection(given.subject, principal))
	return s
}

func unchanged(*capabilitySet) {}

// sends asks for a write to the user's connection.
func (s *session) sends() sandbox.Verdict {
	return s.pipeline.Send(context.Background(), pipelinetest.NewTask("worker", 1),
		sandbox.Caller{PID: s.worker.PID()}, wire.FDConnectionChecked)
}

// reads asks for a document.
func (f *fixture) reads(s *session, name string) policy.Decision {
	f.t.Helper()
	conduit, found := f.services.conduitNamed(name)
	if !found {
		f.t.Fatalf("no conduit %s", name)
	}
	return f.decide(nil, s.actor(), policy.Read, conduit)
}

// TestRunningTaintOfASession: a session reads what it wants, and says nothing to its user any
// more once it has read what the user may not read.
func TestRunningTaintOfASession(t *testing.T) {
	for _, test := range []struct {
		user, document string
		leaves         bool
	}{
		{"alice", "/diary/alice/1.txt", true}, {"bob", "/diary/alice/1.txt", true},
		{"carol", "/diary/alice/1.txt", false}, {"carol", "/open/1.txt", true},
	} {
		for _, mode := range dynamicModes {
			f := bare(t)
			s := f.begins(mode, test.user, unchanged)
			if before := s.sends(); before.Errno != 0 {
				t.Errorf("%v: %s has read nothing and says nothing: %s", mode, test.user, before.Reason)
			}
			if found := f.reads(s, test.document); !found.Allowed {
				t.Errorf("%v: %s does not read %s: %s", mode, test.user, test.document, found.Reason)
			}
			if after := s.sends(); (after.Errno == 0) != test.leaves {
				t.Errorf("%v: %s has read %s and says more: %v (%s)", mode, test.user, test.document, after.Errno == 0,
					after.Reason)
			}
		}
	}
}

// TestBothDynamicModesDecideTheSame: over random sequences of reads, writes to the user and changes
// of facts, a session in mode dynamic-lazy gets the answers of one in mode dynamic, as do tasks
// that open files.
func TestBothDynamicModesDecideTheSame(t *testing.T) {
	f, self := bare(t), os.Getpid()
	friend, isFriend := facts(fact("friends/alice", "friend", "carol")), false
	answers := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		user := rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(r, "user")
		var sessions []*session
		for _, mode := range dynamicModes {
			sessions = append(sessions, f.begins(mode, user, unchanged))
		}
		tasks := []*acting{f.tasks["collector"].starts(), f.tasks["collector"].starts()}
		same := func(what string, ask func(i int) bool) {
			eager, lazy := ask(0), ask(1)
			if eager != lazy {
				r.Fatalf("%s: allowed %v in mode dynamic, %v in mode dynamic-lazy", what, eager, lazy)
			}
			answers[what+fmt.Sprint(eager)] = true
		}
		document := rapid.SampledFrom(pipelinetest.BareDocuments)
		r.Repeat(map[string]func(*rapid.T){
			"read": func(r *rapid.T) {
				name := document.Draw(r, "name")
				same("read", func(i int) bool { return f.reads(sessions[i], name).Allowed })
			},
			"send": func(*rapid.T) {
				same("send", func(i int) bool {
					f.sessions.byProcess[sessions[i].worker.PID()] = sessions[i]
					return sessions[i].sends().Errno == 0
				})
			},
			"open": func(r *rapid.T) {
				name := document.Draw(r, "name")
				flags := rapid.SampledFrom([]int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR}).Draw(r, "flags")
				delete(f.sessions.byProcess, self)
				same("open", func(i int) bool {
					f.must(f.SwitchTo(dynamicModes[i]))
					f.tasks["collector"].acting.Store(tasks[i])
					return f.opens(pipelinetest.NewTask("collector", self), self, name, flags).Errno == 0
				})
			},
			"change a fact": func(*rapid.T) {
				if isFriend {
					f.change(friend, nil)
				} else {
					f.change(nil, friend)
				}
				isFriend = !isFriend
			},
		})
	})
	for _, answer := range []string{"readtrue", "sendtrue", "sendfalse", "opentrue", "openfalse"} {
		if !answers[answer] {
			t.Errorf("no %s in any sequence", answer)
		}
	}
}

// TestRunningTaintUnderARelaxedPolicy: what only a policy in mode Audit forbids leaves, and is
// recorded with each write.
func TestRunningTaintUnderARelaxedPolicy(t *testing.T) {
	for _, mode := range dynamicModes {
		f := bare(t)
		f.apply(strings.Replace(pipelinetest.Bare, "{name: diary}\nspec:\n", "{name: diary}\nspec:\n  mode: Audit\n",
			1))
		s := f.begins(mode, "carol", unchanged)
		f.records()
		f.reads(s, "/diary/alice/1.txt")
		for range 2 {
			if verdict := s.sends(); verdict.Errno != 0 || !f.recorded("would be denied: ") {
				t.Errorf("%v: it leaves: %v (%s), or is not recorded", mode, verdict.Errno == 0, verdict.Reason)
			}
		}
		f.expectMeasured(mode.String(), map[string]float64{"shai_would_deny_total Audit diary taint": 2})
	}
}

// TestUncheckedEndsKeepWhatIsRead: nobody asks about writes to pipes and tuples, so a session
// that has them reads nothing that they do not keep. What can be read from them is part of its
// taint.
func TestUncheckedEndsKeepWhatIsRead(t *testing.T) {
	mine := `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: mine}
spec: {text: 'policy mine { read :- sKeyIs("alice"), sRegionIs("de"). update :- true. }'}
---
`
	for _, test := range []struct {
		name     string
		manifest string
		grants   []analysis.Other // of the key-value store
		own, bob bool             // alice reads her document, and bob's
		leaves   bool             // … and says more, having read nothing
	}{
		{"a pipe that keeps everything", pipelinetest.Probe, nil, true, true, true},
		{"a pipe that keeps alice's", mine + strings.Replace(pipelinetest.Probe, "to: search\n      policy: {name: internal}",
			"to: search\n      policy: {name: mine}", 1), nil, true, false, true},
		{"a tuple to write", pipelinetest.Probe,
			[]analysis.Other{{Set: "histories", Conduit: "history:alice/de", Write: true}}, true, false, true},
		{"a tuple to read", pipelinetest.Probe,
			[]analysis.Other{{Set: "profiles", Conduit: "profile:alice"}}, true, true, true},
		{"bob's tuple to read", pipelinetest.Probe,
			[]analysis.Other{{Set: "profiles", Conduit: "profile:bob"}}, true, true, false},
		{"a tuple without a policy", pipelinetest.Probe,
			[]analysis.Other{{Set: "histories", Conduit: "other:alice", Write: true}}, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := probe(t, SessionLimits{})
			f.apply(test.manifest)
			begin := func(mode wire.Mode) *session {
				return f.begins(mode, "alice", func(holds *capabilitySet) {
					holds.others = test.grants
					if test.grants != nil {
						holds.keyValue = "user"
					}
				})
			}
			for _, mode := range dynamicModes {
				if verdict := begin(mode).sends(); (verdict.Errno == 0) != test.leaves {
					t.Errorf("%v: it says something: %v (%s)", mode, verdict.Errno == 0, verdict.Reason)
				}
				for document, want := range map[string]bool{
					"/corpus/private/alice/1.txt": test.own, "/corpus/private/bob/1.txt": test.bob,
				} {
					if found := f.reads(begin(mode), document); found.Allowed != want {
						t.Errorf("%v, %s: read %v (%s)", mode, document, found.Allowed, found.Reason)
					}
				}
			}
		})
	}
}

// TestHeldDirectories: the files of a directory that a task gets as a whole are one conduit:
// each of them is open for writing as long as the task runs.
func TestHeldDirectories(t *testing.T) {
	directory := policy.Conduit{Name: "/index/any"}
	held := &tracked{directories: []heldDirectory{{"/index", directory}}, running: decision.NewRunning(nil, nil)}
	for name, want := range map[string]string{
		"/index/0/a": "/index/any", "/index/b": "/index/any", "/index2/b": "/index2/b", "/index": "/index",
	} {
		if got := held.within(policy.Conduit{Name: name}).Name; got != want {
			t.Errorf("%s is within %s, want %s", name, got, want)
		}
	}
	f := decision.Flow{What: policy.Write, Conduit: policy.Conduit{Name: "/index/b"}}
	if found := held.decide(f, wire.ModeDynamic, bare(t).services.state(), time.Now()); found.Allowed {
		t.Error("a directory without a policy is written to")
	}
}
