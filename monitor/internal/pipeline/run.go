// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/sandbox"
)

// Run is one run of a task. It begins when somebody starts the task, and ends when its program
// has ended and is not started again by itself. A swap of bundles interrupts a run: the task is
// started again as the same run.
type Run struct {
	// ID is what the one who started it has called it; else random.
	ID      string     `json:"id"`
	State   string     `json:"state"` // "Running", "Succeeded", "Failed" or "Stopped"
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"` // nil: it goes on
	// ExitStatus is its program's, the last time; nil: it has not exited.
	ExitStatus *int   `json:"exitStatus,omitempty"`
	Signal     string `json:"signal,omitempty"`   // that killed its program
	Message    string `json:"message,omitempty"`  // how it ended, or why it did not start
	Restarts   int    `json:"restarts,omitempty"` // how often its program was started again
	// Denials counts the accesses that were denied to its program and its sessions.
	Denials uint64 `json:"denials,omitempty"`
	// Refusals are the first different ones of them, at most 8.
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Refusal is a kind of access that was denied during a run. It names nothing that the program
// has chosen, such as a path: what a program asks for may tell what it has read.
type Refusal struct {
	Operation string `json:"operation"`          // "read", "open" or the name of a system call
	Conduits  string `json:"conduits,omitempty"` // their name in the pipeline; empty for what belongs to none
	Policy    string `json:"policy,omitempty"`   // that forbids it; empty if none does
	Count     uint64 `json:"count"`
}

// The errors of runs besides those of starting a task.
var (
	ErrBusy       = errors.New("another run of it goes on")
	ErrUnknownRun = errors.New("it has no such run")
)

const (
	runsKept     = 16 // of each task, the last ones
	refusalsKept = 8  // of each run, the first ones
)

// runs are the last runs of a task, of all its lives: the pipelines of one bundle after the other
// share them.
type runs struct {
	mu    sync.Mutex
	known []*run // oldest first
}

type run struct {
	Run
	interrupted bool          // by a swap of bundles that goes on
	done        chan struct{} // closed when it has ended
}

// begin adds a run that goes on.
func (r *runs) begin(id string) {
	if id == "" {
		id = rand.Text()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := &run{Run: Run{ID: id, State: stateRunning, Started: time.Now()}, done: make(chan struct{})}
	r.known = append(r.known, begun)
	r.known = r.known[max(0, len(r.known)-runsKept):]
}

// current returns the run that goes on, nil if none does. Called with mu held.
func (r *runs) current() *run {
	if len(r.known) == 0 || r.known[len(r.known)-1].Ended != nil {
		return nil
	}
	return r.known[len(r.known)-1]
}

// end ends the run that goes on. err is how its program has ended, nil if it was not started or
// has ended well.
func (r *runs) end(state, message string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.current(); now != nil {
		now.describe(err, state == stateSucceeded)
		now.end(state, message)
	}
}

func (r *run) end(state, message string) {
	ended := time.Now()
	r.State, r.Message, r.Ended, r.interrupted = state, message, &ended, false
	close(r.done)
}

// describe notes how the program has ended.
func (r *run) describe(err error, well bool) {
	var how sandbox.Ended
	switch {
	case well:
		r.ExitStatus, r.Signal = new(int), ""
	case errors.As(err, &how) && how.Signal != "":
		r.ExitStatus, r.Signal = nil, how.Signal
	case errors.As(err, &how):
		r.ExitStatus, r.Signal = &how.Status, ""
	}
}

// restarted notes that the program is started again in the same run.
func (r *runs) restarted(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.current(); now != nil {
		now.describe(err, err == nil)
		now.Restarts++
	}
}

// interrupt notes that the program was ended and will be started again in the same run.
func (r *runs) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.current(); now != nil {
		now.interrupted = true
	}
}

// goOn notes that the interrupted run goes on. It reports whether there is one.
func (r *runs) goOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.current()
	if now == nil || !now.interrupted {
		return false
	}
	now.interrupted = false
	now.Restarts++
	return true
}

// abandon ends a run that was interrupted and does not go on.
func (r *runs) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.current(); now != nil && now.interrupted {
		now.end(stateStopped, "the task is no longer in force")
	}
}

// find returns a run by its identity, nil if it is not known. Called with mu held.
func (r *runs) find(id string) *run {
	at := slices.IndexFunc(r.known, func(one *run) bool { return one.ID == id })
	if at < 0 {
		return nil
	}
	return r.known[at]
}

// knows reports whether a run was begun with this identity.
func (r *runs) knows(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(id) != nil
}

// forbid keeps a run that has not begun from beginning, if its start should be asked for late.
func (r *runs) forbid(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.find(id) != nil {
		return
	}
	now := time.Now()
	never := &run{Run: Run{ID: id, Started: now}, done: make(chan struct{})}
	never.end(stateStopped, "it was stopped before it began")
	at := len(r.known)
	if r.current() != nil {
		at-- // the one that goes on stays the last one
	}
	r.known = slices.Insert(r.known, at, never)
	r.known = r.known[max(0, len(r.known)-runsKept):]
}

// goesOn reports whether a run with this identity goes on.
func (r *runs) goesOn(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.current()
	return now != nil && now.ID == id
}

// copied returns a copy for callers: the run itself changes.
func (r *run) copied() *Run {
	copied := r.Run
	copied.Refusals = slices.Clone(r.Refusals)
	return &copied
}

// last returns the run that goes on or was the last one, nil if there was none.
func (r *runs) last() *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) == 0 {
		return nil
	}
	return r.known[len(r.known)-1].copied()
}

// named returns a run, and the channel that is closed when it has ended.
func (r *runs) named(id string) (*Run, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.find(id)
	if found == nil {
		return nil, nil, ErrUnknownRun
	}
	return found.copied(), found.done, nil
}

// denied counts a denied access.
func (r *runs) denied(operation, conduits, policy string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.current()
	if now == nil {
		return
	}
	now.Denials++
	for i, known := range now.Refusals {
		if known.Operation == operation && known.Conduits == conduits && known.Policy == policy {
			now.Refusals[i].Count++
			return
		}
	}
	if len(now.Refusals) < refusalsKept {
		now.Refusals = append(now.Refusals, Refusal{operation, conduits, policy, 1})
	}
}

// noteDenial counts a denied access in its task's run.
func (p *Pipeline) noteDenial(task, operation, conduits, policy string) {
	if t := p.tasks[task]; t != nil {
		t.runs.denied(operation, conduits, policy)
	}
}
