// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// tracked is the running taint of one session in a dynamic mode, or of one start of a task
// without parameters. It is safe for concurrent use.
//
// The monitor sees each open, and each write to a checked descriptor. What a subject can use
// without being seen counts as used: what it holds open for reading is part of its taint from
// the beginning, and nothing is read that one of the conduits that it holds open for writing
// does not keep. A file that was opened for writing counts as open until the subject ends.
type tracked struct {
	declared    policy.Label
	prints      bool           // what it prints goes to the task's log
	leaving     policy.Conduit // the user's connection, of a session
	directories []heldDirectory

	mu      sync.Mutex
	running *decision.Running
	beyond  policy.Label // of what it has read although the declared taint does not keep it
	// audited is the label of what mode audit alone has let it read. It joins beyond in other modes.
	audited policy.Label
}

// heldDirectory is a directory whose names a task changes without being asked.
type heldDirectory struct {
	name    string // "/index"
	conduit policy.Conduit
}

// actor is who a decision is for.
type actor struct {
	decision.Subject
	mode    wire.Mode
	tracked *tracked        // nil: decided by the declared taint
	holds   *capabilitySet  // of the session that it is; nil: it is a task, or has no user
	allowed *allowedClasses // likewise
}

// decide decides on an access of the actor.
func (who actor) decide(f decision.Flow, state *catalog.State, now time.Time) decision.Decision {
	if who.tracked == nil {
		return decision.Decide(f, state, now)
	}
	return who.tracked.decide(f, who.mode, state, now)
}

// trackSession returns the running taint of a session whose user is known.
func (s *session) trackSession(holds *capabilitySet) *tracked {
	p := s.pipeline
	read, written := p.endsOf(s.placements())
	readTuples, writtenTuples := p.tuplesOf(p.tuplesPermitted(holds), p.services.state())
	for _, tuple := range readTuples {
		read = append(read, tuple.Label())
	}
	return &tracked{declared: holds.subject.Taint, leaving: s.task.entrance.egress(),
		running: decision.NewRunning(read, append(written, writtenTuples...))}
}

// track returns the running taint of a task without parameters that is about to start. Unless
// it asks about each file, it opens natively what its declared taint may read.
func (a *acting) track() *tracked {
	own := a.role.Load()
	taint := own.subject.Taint
	read, _ := a.task.pipeline.endsOf(own.ends())
	if a.asks {
		read = append(read, a.listed...)
	} else {
		read = append(read, taint)
	}
	return &tracked{declared: taint, prints: true, directories: a.writes,
		running: decision.NewRunning(read, a.held(own, nil))}
}

// held returns what the task can write to in a role without being asked: besides files that are
// open, its ends of pipes and channels, and its directories.
func (a *acting) held(r *role, open []policy.Conduit) []policy.Conduit {
	_, written := a.task.pipeline.endsOf(r.ends())
	for _, directory := range a.writes {
		written = append(written, directory.conduit)
	}
	return append(written, open...)
}

// mayHold refuses conduits that do not keep everything that the subject has read, before it can
// write to them without being asked.
func (t *tracked) mayHold(who decision.Subject, conduits []policy.Conduit, state *catalog.State, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conduit := range conduits {
		found := t.running.Decide(decision.Flow{Who: who, What: policy.Write, Conduit: conduit}, state, now)
		if !found.Allowed {
			return fmt.Errorf("the task has read what %s does not keep (start it again): %s", conduit.Name, found.Reason)
		}
	}
	return nil
}

// raise replaces the declared taint by one that is at least as restrictive. The task is
// stopped, read are the labels of the pipes and channels that it can read now, and held is what
// it can write to now.
func (t *tracked) raise(declared policy.Label, read []policy.Label, held []policy.Conduit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.declared = declared
	t.running.Raise(append(read, declared), held)
}

// endsOf returns the labels of the pipes and channels that are read, and those that are
// written to.
func (p *Pipeline) endsOf(places []placement) (read []policy.Label, written []policy.Conduit) {
	for _, place := range places {
		if place.directory != "" || place.end.checked {
			continue
		}
		conduit, found := p.channelConduit(place.end.conduit, place.end.slot)
		if !found {
			conduit = policy.Conduit{Name: place.end.conduit} // nobody may read or write it
		}
		if place.end.writer {
			written = append(written, conduit)
		} else {
			read = append(read, conduit.Label())
		}
	}
	return read, written
}

// decide decides on an access in a mode, and notes its effect.
func (t *tracked) decide(f decision.Flow, mode wire.Mode, state *catalog.State, now time.Time) decision.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(mode)
	if !mode.IsDynamic() {
		return t.decideDeclared(f, mode, state, now)
	}
	if f.What == policy.Read {
		return t.read(f, mode == wire.ModeDynamicLazy, state, now)
	}
	f.Conduit = t.within(f.Conduit)
	found := t.running.Decide(f, state, now)
	if found.Allowed && f.What == policy.Write && f.Update == nil {
		t.running.Hold(f.Conduit)
	}
	return found
}

// read decides on a read. If nothing that was read could flow on without a decision, a lazy
// one is only logged. Otherwise the policies are evaluated at once, also for the user's
// connection: the next write finds the answer.
func (t *tracked) read(f decision.Flow, lazy bool, state *catalog.State, now time.Time) decision.Decision {
	if lazy && !t.prints && t.running.Log(f.Conduit) {
		return decision.Decision{Decision: policy.Decision{Allowed: true, Reason: "logged for the next write"}}
	}
	found := t.running.Read(f, state, now)
	switch {
	case !found.Allowed:
	case t.prints:
		t.notePrinting(f, state, now)
	case !lazy:
		f.What, f.Conduit = policy.Leave, t.leaving
		t.running.Decide(f, state, now)
	}
	return found
}

// mayRead decides whether what is read could be used: the user may get it, and nothing that the subject can
// write to without being asked forbids it. It notes nothing.
func (t *tracked) mayRead(f decision.Flow, state *catalog.State, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running.Keeps(f.Who, f.Conduit.Label(), state, now).Allowed {
		return false
	}
	f.Who.Taint = f.Conduit.Label()
	f.What, f.Conduit = policy.Leave, t.leaving
	return decision.Decide(f, state, now).Allowed
}

// notePrinting notes a read that the declared taint does not keep: what the task prints is
// under that taint, unless it has read more.
func (t *tracked) notePrinting(f decision.Flow, state *catalog.State, now time.Time) {
	f.Who.Taint = t.declared
	if !decision.Decide(f, state, now).ByEveryPolicy() {
		t.beyond = t.beyond.Join(f.Conduit.Label())
	}
}

// decideDeclared decides by the declared taint, and by what was read beyond it in other modes.
// The mode may become dynamic later, so the effect is noted.
func (t *tracked) decideDeclared(
	f decision.Flow, mode wire.Mode, state *catalog.State, now time.Time,
) decision.Decision {
	f.Who.Taint = t.declared.Join(t.beyond)
	found := decision.Decide(f, state, now)
	switch {
	case !found.Allowed && mode != wire.ModeAudit:
	case f.What == policy.Read:
		t.running.Add(f.Conduit)
		if !found.Allowed {
			t.audited = t.audited.Join(f.Conduit.Label())
		}
	case f.What == policy.Write && f.Update == nil:
		t.running.Hold(t.within(f.Conduit))
	}
	return found
}

// within returns the directory that the subject holds and that a conduit is in, else the
// conduit itself.
func (t *tracked) within(conduit policy.Conduit) policy.Conduit {
	for _, directory := range t.directories {
		if strings.HasPrefix(conduit.Name, directory.name+"/") {
			return directory.conduit
		}
	}
	return conduit
}

// settle makes what mode audit has let the subject read count in another mode. In mode audit it
// does not count: what follows is recorded as it would be if the read had been refused.
func (t *tracked) settle(mode wire.Mode) {
	if mode != wire.ModeAudit {
		t.beyond, t.audited = t.beyond.Join(t.audited), policy.Label{}
	}
}

// keepsAudited decides whether what the subject can write to without being asked keeps what
// mode audit alone has let it read.
func (t *tracked) keepsAudited(who decision.Subject, state *catalog.State, now time.Time) decision.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running.Keeps(who, t.audited, state, now)
}

// mayLeaveAudit returns an error if a running task can write, without being asked again, what does
// not keep what mode audit has let it read: no other mode could refuse it the write. It takes no
// task's mu, which is held while a program is started: its opens wait for the mode.
func (p *Pipeline) mayLeaveAudit() error {
	for _, name := range p.order {
		now := p.tasks[name].acting.Load()
		if now.tracked == nil || now.ended.Load() {
			continue
		}
		found := now.tracked.keepsAudited(now.role.Load().subject, p.services.state(), time.Now())
		if !found.Allowed {
			return fmt.Errorf("mode audit has let task %s read what it should not, and %s", name, found.Reason)
		}
	}
	return nil
}

// readSoFar returns the label of everything that the subject has read; see [decision.Running.Label].
func (t *tracked) readSoFar() (label policy.Label, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running.Label()
}

// label returns the label of what the subject prints in a mode.
func (t *tracked) label(mode wire.Mode) policy.Label {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(mode)
	return t.declared.Join(t.beyond)
}
