// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// supervised is the monitor's side of one start of a task that has a supervisor: the
// supervisor serves the sessions with what the monitor has prepared (feed.go), asks about
// the rest (questions.go), and reports what happens (reports.go). It is safe for concurrent
// use.
type supervised struct {
	pipeline *Pipeline
	task     *Task
	started  sandbox.Task // set by Begin, as is to
	to       sandbox.Supervisor
	regions  regionTable // that the supervisor was told of; guarded by the pipeline's feeding

	mu       sync.Mutex
	sessions map[uint64]*session      // by the supervisor's number
	told     map[string]toldSet       // by instance; changed in told.go
	former   map[string][]formerSet   // by instance: to which bindings may be reported; changed likewise
	current  map[keyed]string         // the instance whose set it has; changed likewise
	fences   map[uint64]chan struct{} // that the supervisor has not passed; see fence
	last     uint64                   // number of the last fence
	owed     uint32                   // bindings that the audit log has not promised to record
	retrying bool                     // a timer will try to pay again
	unsealed sync.Once                // reports the first worker that cannot be sealed
	counts   atomic.Pointer[supervision.Counts]
	finished chan struct{} // closed by finish
}

var _ sandbox.Sessions = (*supervised)(nil)

func newSupervised(t *Task) *supervised {
	return &supervised{
		pipeline: t.pipeline, task: t, sessions: map[uint64]*session{}, told: map[string]toldSet{},
		current: map[keyed]string{}, former: map[string][]formerSet{},
		fences: map[uint64]chan struct{}{}, finished: make(chan struct{}),
	}
}

// Begin implements [sandbox.Sessions]. It tells the supervisor everything, and from then on
// all changes.
func (v *supervised) Begin(started sandbox.Task, to sandbox.Supervisor) error {
	p := v.pipeline
	v.started, v.to, v.owed = started, to, promises
	p.feeding.Lock()
	defer p.feeding.Unlock()
	for _, tell := range []func() error{
		v.tellSettings, v.tellSlots, v.tellStore, v.tellKeys, v.tellRegions, v.tellSets,
	} {
		if err := tell(); err != nil {
			return fmt.Errorf("prepare the sessions of task %s/%s: %w", p.name, v.task.name, err)
		}
	}
	v.pay()
	p.supervised = append(p.supervised, v)
	return to.Send(supervision.Begin{})
}

// Receive implements [sandbox.Sessions]. Questions are answered beside it: they may have to
// wait for a change of facts.
func (v *supervised) Receive(record supervision.Record) {
	switch r := record.(type) {
	case supervision.Events:
		for _, event := range r.Events {
			v.report(event)
		}
		v.pay()
	case supervision.AskBind:
		go v.answerBind(r)
	case supervision.AskRecord:
		go v.answerRecord(r)
	case supervision.Fenced:
		v.passed(r.Number)
	case supervision.Counts:
		v.count(r)
	}
}

// send sends a record to the supervisor. After an error the sandbox ends the task, so the
// caller need not care.
func (v *supervised) send(record supervision.Record, files ...*os.File) {
	if err := v.to.Send(record, files...); err != nil {
		v.pipeline.services.Logger.Debug("supervisor", "pipeline", v.pipeline.name, "task", v.task.name, "error", err)
	}
}

// finish ends what the supervisor has left: sessions, and transfers that nobody will read.
// Called once, when the task has ended. It is no error if Begin was not called.
func (v *supervised) finish() {
	p := v.pipeline
	p.feeding.Lock()
	p.supervised = slices.DeleteFunc(p.supervised, func(other *supervised) bool { return other == v })
	p.feeding.Unlock()
	v.mu.Lock()
	left := v.sessions
	v.sessions = map[uint64]*session{}
	v.mu.Unlock()
	for _, s := range left {
		v.ended(s, supervision.Event{Reason: "the supervisor has ended"})
	}
	close(v.finished)
	if v.to == nil {
		return
	}
	for _, channels := range v.task.entrance.slots.channels {
		for _, channel := range channels {
			channel.drain()
		}
	}
}

// fenceLimit is how long a supervisor may take to pass a fence. It sleeps in no other
// place than its loop.
const fenceLimit = 10 * time.Second

// fence returns when everything that was sent before is in force: no later binding is by
// what was before. A supervisor that does not pass it in time is ended; then fence returns
// when its sessions have ended, too.
func (v *supervised) fence() {
	v.mu.Lock()
	v.last++
	number, passed := v.last, make(chan struct{})
	v.fences[number] = passed
	v.mu.Unlock()
	v.send(supervision.Fence{Number: number})
	select {
	case <-passed:
	case <-v.finished:
	case <-v.started.Done():
	case <-time.After(fenceLimit):
		v.pipeline.services.Logger.Error("the supervisor does not answer; its task is ended", "pipeline", v.pipeline.name,
			"task", v.task.name)
		if err := v.kill(); err != nil {
			v.pipeline.services.Logger.Error("sessions may go on by what was before a change", "pipeline", v.pipeline.name,
				"task", v.task.name, "error", err)
		}
	}
}

// kill ends the task and its sessions at once. It returns when their processes have ended,
// or cannot be ended. The end of the task is reported by itself.
func (v *supervised) kill() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return v.started.Stop(ctx) //nolint:wrapcheck // names the task
}

// passed ends the wait for a fence, and for those before it.
func (v *supervised) passed(number uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for earlier, passed := range v.fences {
		if earlier <= number {
			close(passed)
			delete(v.fences, earlier)
		}
	}
	v.dropFormer(number)
}

// session returns a live session by its number, nil if there is none.
func (v *supervised) session(number uint64) *session {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sessions[number]
}

// supervisedWorker is the worker of a session that a supervisor serves.
type supervisedWorker struct {
	of      *supervised
	session uint64
	pid     int
	gone    chan struct{} // closed when the supervisor has reported the session's end
}

var _ sandbox.Worker = supervisedWorker{}

func (w supervisedWorker) PID() int { return w.pid }

// Kill implements [sandbox.Worker].
func (w supervisedWorker) Kill() {
	w.of.send(supervision.End{Session: w.session, Reason: "the monitor has ended it"})
}

func (w supervisedWorker) Gone() <-chan struct{} { return w.gone }

// Ended implements [sandbox.Worker].
func (w supervisedWorker) Ended() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// Fence returns when every supervisor of the pipeline acts by what it was told, and has
// reported what it did before.
func (p *Pipeline) Fence() {
	p.feeding.Lock()
	live := slices.Clone(p.supervised)
	p.feeding.Unlock()
	for _, v := range live {
		v.fence()
	}
}

// live lists the sessions of the pipeline by slot, those too that supervisors have not
// reported yet.
func (p *Pipeline) live() []*session {
	p.Fence()
	return p.sessions.live()
}

// supervises reports whether the sessions of a task have a supervisor.
func (t *Task) supervises() bool {
	return len(t.spec.Parameters) > 0 && t.pipeline.Mode() != wire.ModeBaseline &&
		t.pipeline.services.Backend.Supervises()
}
