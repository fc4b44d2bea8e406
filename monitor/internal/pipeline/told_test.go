// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// setsTold counts the records of sets, and checks that as many logins were permitted as were
// asked about.
func setsTold(t *testing.T, to *pipelinetest.Supervisor, permitted int) (sets int) {
	t.Helper()
	binds := 0
	for _, text := range to.Since() {
		switch {
		case strings.HasPrefix(text, "set "):
			sets++
		case strings.HasPrefix(text, "bind ") && strings.HasSuffix(text, " status 0"):
			binds++
		}
	}
	if binds != permitted {
		t.Errorf("%d logins were permitted; want %d", binds, permitted)
	}
	return sets
}

// A set makes a supervisor ask again about all logins that wait: if each answer brought one,
// two logins that wait would never cease to ask. A set that the supervisor has not is told.
func TestAnswersDoNotReplaceTheSet(t *testing.T) {
	p := bare(t)
	p.must(p.SwitchTo(wire.ModeDynamic))
	v, to := superviseBare(t, p)
	const logins = 8
	for number := range uint64(logins) {
		v.Receive(supervision.Events{Events: []supervision.Event{{
			Kind: supervision.EventAccepted, Session: number, Worker: 4000 + int32(number), Mode: wire.ModeDynamic,
			Peer: peerInGermany, Reason: "de",
		}}})
	}
	ask := func(v *supervised) {
		var answers sync.WaitGroup
		for number := range uint64(logins) {
			answers.Go(func() { v.answerBind(supervision.AskBind{Session: number, Principal: "alice", Region: "de"}) })
		}
		answers.Wait()
	}
	inForce := func() *capabilitySet { return p.setOf("worker(alice, de)") }
	to.Since()
	for _, step := range []struct {
		name   string
		change func()
		sets   int
	}{
		{"not foreseen", func() {}, 1},
		{"known", func() {}, 0},
		{"dropped by a change", func() { p.change(nil, facts(fact("friends/carol", "friend", "dave"))) }, 1},
		{"analysed", func() { p.analyze(); to.Since() }, 0},
		{"forgotten", func() { v.tellForgotten(inForce(), "") }, 1},
		{"revoked", func() { p.tellRevoked("worker(alice, de)") }, 1},
		{"known again", func() {}, 0},
	} {
		step.change()
		ask(v)
		if sets := setsTold(t, to, logins); sets != step.sets {
			t.Errorf("%s: the supervisor was told of %d sets; want %d", step.name, sets, step.sets)
		}
	}
	if _, inForce := to.Set("worker(alice, de)"); !inForce {
		t.Error("the supervisor has no set")
	}
	_, other := superviseBare(t, p)
	if !slices.Contains(other.Since(), "set worker(alice, de) alice de flags 3, 3 classes") {
		t.Error("another supervisor was not told of the set")
	}
}

// A set that was dropped while a login was decided on is not told again.
func TestAnswersBringNoFormerSet(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	p.DropSets()
	to.Since()
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.must(v.tellInForce("worker(alice, de)"))
	expectTold(t, to, "of a set that is not in force")
}

// A supervisor goes on without an instance of which it cannot be told, and refuses the logins of its users: when it
// begins, when the set comes into force, and when a bundle is applied.
func TestSupervisorsGoOnWithoutAnInstance(t *testing.T) {
	p := bare(t)
	p.analyze()
	of := *p.setOf("worker(bob, de)")
	of.subject.Instance = "worker(a\x00b)"
	p.sets["worker(bob, de)"] = &of
	v, to := superviseBare(t, p)
	hasOnlyAlice := func(when string) {
		t.Helper()
		if _, has := to.Set("worker(alice, de)"); !has {
			t.Errorf("%s, the supervisor has no set of the other user", when)
		}
		if len(v.inUse()) != 1 {
			t.Errorf("%s, %d sets are in use", when, len(v.inUse()))
		}
	}
	hasOnlyAlice("at the beginning")
	p.feeding.Lock()
	p.tellChanged(&of)
	if err := v.tellSets(); err != nil {
		t.Errorf("all sets are told again: %v", err)
	}
	if err := v.tellSet(&of, 0); !errors.Is(err, errUntold) || !strings.Contains(err.Error(), "is not UTF-8 text") {
		t.Errorf("got %v", err)
	}
	p.feeding.Unlock()
	hasOnlyAlice("afterwards")
}

// TestLateBindingsKeepTheFormerSet: the supervisor binds a session, and reports it after the session's user has
// lost an access. The session keeps that by lazy revocation, so it ends when documents come into the class.
func TestLateBindingsKeepTheFormerSet(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	diary := p.services.state().ClassOf(p.id("/diary/alice/1.txt"))
	bind := func(number uint64) func() {
		return func() { bindIn(v, number, wire.ModeShai, "bob", "worker(bob, de)") }
	}
	to.Late = bind(7)
	p.change(facts(fact("friends/alice", "friend", "bob")), nil)
	bind(8)()
	before, after := v.session(7).bound(), v.session(8).bound()
	if !before.holdsClass(diary) || after.holdsClass(diary) {
		t.Errorf("the sessions have the class: %v before, %v after", before.holdsClass(diary), after.holdsClass(diary))
	}
	to.Since()
	if !p.HasStale([]uint32{diary}) {
		t.Error("no session is known that keeps the class")
	}
	p.services.Binding.Lock()
	defer p.services.Binding.Unlock()
	p.EndStale([]uint32{diary})
	if told := to.Since(); !slices.Contains(told, "end 7") {
		t.Errorf("the supervisor was told %q", told)
	}
}

// fencing passes a fence between the note that a supervisor is told of a set and the record of it, and binds a
// session to the former set then.
type fencing struct {
	sandbox.Supervisor
	v *supervised
}

func (f fencing) Send(record supervision.Record, files ...*os.File) error {
	if _, is := record.(supervision.Set); is {
		f.v.fence()
		bindIn(f.v, 7, wire.ModeShai, "bob", "worker(bob, de)")
	}
	return f.Supervisor.Send(record, files...)
}

// A fence that is sent before a set ends nothing of what is known of the former one.
func TestFencesBeforeASetKeepTheFormerOne(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	former := p.setOf("worker(bob, de)")
	smaller := anotherLike(former)
	smaller.classes = former.classes[:len(former.classes)-1]
	v.to = fencing{to, v}
	p.feeding.Lock()
	p.must(v.tellSet(smaller, 0))
	p.feeding.Unlock()
	if got := v.session(7).bound(); got != former {
		t.Errorf("a session that was bound before the supervisor was told has the set %p; want %p", got, former)
	}
	v.to = to
	p.Fence()
	bindIn(v, 8, wire.ModeShai, "bob", "worker(bob, de)")
	if got := v.session(8).bound(); got != smaller {
		t.Errorf("after a fence, a session has the set %p; want %p", got, smaller)
	}
}

// While documents come and nothing is lost, sets grow without a fence: the former ones are not kept.
func TestSetsThatGrowAreNotKept(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, _ := superviseBare(t, p)
	p.feeding.Lock()
	defer p.feeding.Unlock()
	for last := range uint32(9) {
		grown := anotherLike(p.setOf("worker(bob, de)"))
		grown.classes = append(slices.Clone(grown.classes), slices.Repeat([]uint32{math.MaxUint32}, int(last))...)
		p.must(v.tellSet(grown, 0))
	}
	if kept := len(v.former["worker(bob, de)"]); kept > 0 {
		t.Errorf("%d former sets are kept", kept)
	}
}

// Where neither of two sets has all of the other, it is not known what a late session has: it ends.
func TestLateBindingsToOneOfTwoSetsEnd(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	to.Since()
	to.Late = func() { bindIn(v, 7, wire.ModeShai, "bob", "worker(bob, de)") }
	other := *p.setOf("worker(bob, de)")
	other.classes = slices.Clone(other.classes)
	other.classes[len(other.classes)-1]++
	p.feeding.Lock()
	p.must(v.tellSet(&other, 0))
	p.feeding.Unlock()
	p.Fence()
	if told := to.Since(); !slices.Contains(told, "end 7") || v.session(7).bound() != nil {
		t.Errorf("the supervisor was told %q", told)
	}
}

// TestSessionsAfterAnEndHaveTheNewSet: the sessions that were bound to the former set are ended, so that one
// that is reported then, and goes on, is bound to the new one.
func TestSessionsAfterAnEndHaveTheNewSet(t *testing.T) {
	for _, endFirst := range []bool{true, false} {
		p := bare(t)
		p.analyze()
		v, to := superviseBare(t, p)
		former := p.setOf("worker(bob, de)")
		smaller := *p.setOf("worker(bob, de)")
		smaller.classes = former.classes[:len(former.classes)-1]
		tell := []func(){
			func() { v.tellForgotten(former, lostReason) },
			func() { p.must(v.tellSet(&smaller, 0)) },
		}
		if !endFirst {
			tell = []func(){tell[1], tell[0], tell[1]}
		}
		to.Late = func() { bindIn(v, 7, wire.ModeShai, "bob", "worker(bob, de)") }
		p.feeding.Lock()
		for _, one := range tell {
			one()
		}
		p.feeding.Unlock()
		p.Fence()
		if got := v.session(7).bound(); got != &smaller {
			t.Errorf("ended first: %v: the session has the set %p; want %p, not %p", endFirst, got, &smaller, former)
		}
	}
}
