// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// The states of a task, as status shows them.
const (
	stateStopped   = "Stopped"
	stateStarting  = "Starting"
	stateRunning   = "Running"
	stateSucceeded = "Succeeded"
	stateFailed    = "Failed"
)

// readyLine is the line that a program prints when it can serve.
const readyLine = "ready"

// Task is one task of a pipeline, running or not.
type Task struct {
	pipeline   *Pipeline
	name       string
	spec       manifest.TaskSpec
	roles      []*role     // its own, then those that its program may take
	placements []placement // descriptors it gets at its start
	perSession []placement // descriptors each of its workers gets with a session
	entrance   entrance
	acting     atomic.Pointer[acting] // of the present or last start

	seen observed
	runs *runs // of the tasks that it has replaced, too

	mu       sync.Mutex
	state    string // turn changes it
	message  string
	since    time.Time
	restarts int         // since start was called
	lastEnd  string      // how the program ended before the last of them
	deaths   int         // in a row; see restart.go
	launched time.Time   // start of the current or last program
	waiting  *time.Timer // for a restart
	started  sandbox.Task
	endpoint *endpoint
	ready    chan struct{} // closed when it can serve or has ended
	ended    chan struct{} // closed when it has ended and is not restarted
	stopping chan struct{} // closed when stop has been called
	// interrupted says that stopping ends the program, and not the run.
	interrupted bool
	// completed says that a task that runs once has succeeded with its present specification.
	completed bool
}

// newTask prepares a task, the first of the tasks, and the others, that its program may become.
func newTask(p *Pipeline, tasks []manifest.Task, bind Bind) (_ *Task, err error) {
	t := &Task{pipeline: p, name: tasks[0].Metadata.Name, spec: tasks[0].Spec, runs: new(runs)}
	t.turn(stateStopped)
	if t.roles, err = rolesOf(p, tasks, bind); err != nil {
		return nil, err
	}
	baseline := p.Mode() == wire.ModeBaseline
	for _, place := range t.roles[0].placements {
		switch {
		case place.directory != "" || len(t.spec.Parameters) == 0 || baseline:
			t.placements = append(t.placements, place)
		case place.end.slot == 0:
			t.perSession = append(t.perSession, place)
		}
	}
	for _, r := range t.roles[1:] {
		for _, place := range r.placements {
			if place.directory != "" || baseline {
				t.placements = append(t.placements, place)
			}
		}
	}
	t.entrance = t.newEntrance()
	t.acting.Store(t.newActing())
	return t, nil
}

// idle says that a worker of a start waits for a connection: that makes the task ready, if it
// is the task's last start.
func (t *Task) idle(started sandbox.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started == started {
		t.markReady()
	}
}

// unsealed says in the status of a start why its workers serve one session each.
func (t *Task) unsealed(started sandbox.Task, reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started == started {
		t.message = "each of its workers serves one session: " + reason.Error()
	}
}

// saysReady makes the task ready if this is its last start, of which ready is the channel:
// processes of an earlier one may still write to their output.
func (t *Task) saysReady(ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready == ready {
		t.markReady()
	}
}

// markReady notes that the program can serve. Called with mu held.
func (t *Task) markReady() {
	if t.state == stateStarting {
		t.turn(stateRunning)
		close(t.ready)
	}
}

// launch starts the program. Called with mu held.
func (t *Task) launch(ctx context.Context) (err error) {
	p := t.pipeline
	t.endpoint = nil
	defer func() {
		if err != nil && t.endpoint != nil {
			t.endpoint.close()
		}
	}()
	now := t.newActing()
	spec, release, err := t.sandboxSpec(now)
	if err != nil {
		return err
	}
	defer release()
	t.acting.Store(now)
	output, followed, err := t.followOutput(now)
	if err != nil {
		return err
	}
	defer output.Close()
	spec.Stdout, spec.Stderr = output, output
	sessions := newSupervised(t)
	if t.supervises() {
		spec.Sessions, spec.SessionsPerWorker = sessions, t.sessionLimits().PerWorker
	}
	if spec.Confined && spec.Raises {
		spec.Raising = raising{now, t.endpoint}
	}
	started, err := p.services.Backend.Start(ctx, spec, p)
	if err != nil {
		sessions.finish()
		return fmt.Errorf("start task %s/%s: %w", p.name, t.name, err)
	}
	t.started, t.launched = started, time.Now()
	t.since = t.launched
	t.seen.begin(started, sessions)
	go now.serveMessages(t.endpoint)
	go t.supervise(started, sessions, t.endpoint, followed)
	p.record(audit.Event{Kind: audit.Task, Task: t.name, Operation: "start", Allowed: true,
		Reason: fmt.Sprintf("process %d, mode %s", started.PID(), p.Mode().String())})
	return nil
}

// followOutput returns a pipe for the program's output, and follows it. The channel is
// closed when all ends of the pipe are closed and its content has been read. Called
// with mu held.
func (t *Task) followOutput(now *acting) (output *os.File, followed <-chan struct{}, err error) {
	log, output, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make output pipe of task %s: %w", t.name, err)
	}
	ended, ready := make(chan struct{}), t.ready
	go func() {
		defer close(ended)
		t.follow(log, ready, now)
	}()
	return output, ended, nil
}

// outputGrace is how long the output of a program that has ended may take to end, too. A
// process that the sandbox does not confine and whose keeper was killed can hold it open.
const outputGrace = 5 * time.Second

// supervise waits for the program's end, and starts it again if the task should always
// run. The channel followed is closed when its output has been read.
func (t *Task) supervise(started sandbox.Task, sessions *supervised, e *endpoint, followed <-chan struct{}) {
	<-started.Done()
	t.seen.end()
	sessions.finish()
	e.close()
	select {
	case <-followed: // its last words may be that it is ready
	case <-t.stopping:
	case <-time.After(outputGrace):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = nil
	t.acting.Load().ended.Store(true)
	err := started.Err()
	t.since = time.Now()
	wasReady := t.state == stateRunning
	if t.state == stateStarting {
		close(t.ready)
	}
	switch {
	case t.isStopping():
		t.turn(stateStopped)
		t.message = ""
	case t.spec.Run == "Once" && err == nil:
		t.turn(stateSucceeded)
		t.message, t.completed = "", true
	default:
		t.turn(stateFailed)
		t.message = describeEnd(err)
	}
	t.pipeline.record(audit.Event{Kind: audit.Task, Task: t.name, Operation: "end", Allowed: true,
		Reason: strings.TrimSpace(t.state + " " + t.message)})
	if t.state == stateFailed && t.spec.Run == "Always" && wasReady {
		t.runs.restarted(err)
		t.restart()
		return
	}
	t.endRun(err)
	close(t.ended)
}

// endRun ends the run of a program that has ended, or interrupts it. Called with mu held.
func (t *Task) endRun(err error) {
	if t.interrupted && t.state == stateStopped {
		t.runs.interrupt()
		return
	}
	t.runs.end(t.state, t.message, err)
}

func describeEnd(err error) string {
	if err == nil {
		return "ended by itself"
	}
	return strings.TrimSpace(err.Error())
}

// Status returns the task's status.
func (t *Task) Status() TaskStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	status := TaskStatus{
		Name: t.name, Run: t.run(), State: t.state, Message: t.message, Restarts: t.restarts, LastEnd: t.lastEnd,
		Enforcement: t.enforcement(), Output: t.acting.Load().outputLabel().String(), LastRun: t.runs.last(),
		Completed: t.completed,
	}
	if user := t.user(); user != nil {
		status.User = user.ID
	}
	if t.started != nil {
		status.PID = t.started.PID()
	}
	if !t.since.IsZero() {
		since := t.since
		status.Since = &since
	}
	return status
}
