// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"time"
)

// A run of a task begins with Start, ends with Stop or by itself, and lasts over restarts.

// Start launches the task unless it is running. It returns when the program has begun,
// but does not wait until it is ready. Starts of a pipeline's tasks do not overlap, nor with
// PrepareSets.
//
// With an identity, it does nothing if the task has, or had, the run of this identity, and returns
// ErrBusy if another run goes on.
func (t *Task) Start(ctx context.Context, identity string) error {
	if err := t.pipeline.openKeyValue(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case identity != "" && t.runs.knows(identity):
		return nil
	case t.started != nil && identity != "":
		return ErrBusy
	case t.started != nil:
		return nil
	}
	t.cancelRestart(false)
	t.runs.begin(identity)
	return t.begin(ctx)
}

// GoOn launches the task again after its pipeline was quiesced, in the same run.
func (t *Task) GoOn(ctx context.Context) error {
	if err := t.pipeline.openKeyValue(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started != nil {
		return nil
	}
	if !t.runs.goOn() {
		t.runs.begin("")
	}
	return t.begin(ctx)
}

// begin launches the program of a run. Called with mu held.
func (t *Task) begin(ctx context.Context) error {
	t.deaths, t.restarts, t.lastEnd, t.interrupted = 0, 0, "", false
	t.turn(stateStarting)
	t.message, t.since = "", time.Now()
	t.ready, t.ended, t.stopping = make(chan struct{}), make(chan struct{}), make(chan struct{})
	err := t.launch(ctx)
	if err != nil {
		t.failToStart(err)
	}
	return err
}

// failToStart ends a run whose program does not start. Called with mu held.
func (t *Task) failToStart(err error) {
	t.turn(stateFailed)
	t.message = err.Error()
	t.runs.end(stateFailed, t.message, nil)
	close(t.ready)
	close(t.ended)
}

// Stop ends the program and every process that it forked. After it the task can be
// started again.
func (t *Task) Stop(ctx context.Context) error { return t.stop(ctx, false) }

// StopRun does the same if the run of this identity goes on. One that has not begun never will.
func (t *Task) StopRun(ctx context.Context, identity string) error {
	t.mu.Lock()
	t.runs.forbid(identity)
	t.mu.Unlock()
	if !t.runs.goesOn(identity) {
		return nil
	}
	return t.stop(ctx, false)
}

// stop ends the program. If it only interrupts the run, GoOn continues that.
func (t *Task) stop(ctx context.Context, interrupts bool) error {
	t.mu.Lock()
	started, ended := t.started, t.ended
	t.cancelRestart(interrupts)
	if started != nil && !t.isStopping() {
		t.interrupted = interrupts
		close(t.stopping)
	}
	t.mu.Unlock()
	if started == nil {
		return nil
	}
	if err := started.Stop(ctx); err != nil {
		return err
	}
	<-ended // supervise has seen the end, and waits for no output
	return nil
}

// isStopping reports whether a task that was started is being stopped. Called with mu held.
func (t *Task) isStopping() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// AwaitRun waits until a run has ended, and returns it; ErrUnknownRun if the task has not had it.
func (t *Task) AwaitRun(ctx context.Context, identity string) (*Run, error) {
	_, done, err := t.runs.named(identity)
	if err != nil {
		return nil, err
	}
	select {
	case <-done:
		return t.Run(identity)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run returns a run of the task; ErrUnknownRun if the task has not had it.
func (t *Task) Run(identity string) (*Run, error) {
	found, _, err := t.runs.named(identity)
	return found, err
}
