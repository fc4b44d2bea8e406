// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Running returns the names of the running tasks, in the pipeline's order.
func (p *Pipeline) Running() []string {
	var names []string
	for _, name := range p.order {
		if state := p.tasks[name].Status().State; state == stateRunning || state == stateStarting {
			names = append(names, name)
		}
	}
	return names
}

// StopTimeout limits the time in which tasks end by themselves.
const StopTimeout = 5 * time.Second

// Quiesce ends every task and every session. No session begins until Readmit. The tasks' runs go
// on with GoOn, or end with EndRuns. An error means that some may still be running.
func (p *Pipeline) Quiesce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StopTimeout)
	defer cancel()
	failures := make([]error, len(p.order))
	var group sync.WaitGroup
	for i, name := range p.order {
		group.Go(func() {
			if err := p.tasks[name].stop(ctx, true); err != nil {
				failures[i] = fmt.Errorf("stop task %s/%s: %w", p.name, name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(append(failures, p.awaitSessions())...)
}

// sessionsEnd limits the time in which the sessions of a pipeline end after their workers
// have ended.
const sessionsEnd = 30 * time.Second

// awaitSessions returns when no session uses the pipeline's conduits any more. No session
// begins until Readmit.
func (p *Pipeline) awaitSessions() error {
	if left := p.stopSlots(sessionsEnd); left > 0 {
		return fmt.Errorf("pipeline %s: sessions that have not ended: %d", p.name, left)
	}
	return nil
}

// EndRuns ends the runs that Quiesce has interrupted, unless they go on in the pipeline that has
// replaced this one.
func (p *Pipeline) EndRuns() {
	for _, task := range p.tasks {
		task.runs.abandon()
	}
}

// Readmit lets sessions begin again.
func (p *Pipeline) Readmit() {
	for _, task := range p.tasks {
		task.entrance.slots.resume()
	}
}

// Close releases the resources of a pipeline that has been quiesced, or whose tasks were never
// started.
func (p *Pipeline) Close() {
	p.closeConduits()
	p.counts.Close()
	if store := p.keyValueStore(); store != nil {
		if err := store.Close(); err != nil {
			p.services.Logger.Warn("key-value store", "error", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, holds := range p.sets {
		holds.close()
	}
	clear(p.sets)
	p.stale.inForce.Store(0)
}

// Shutdown ends the pipeline for good.
func (p *Pipeline) Shutdown(ctx context.Context) {
	if err := p.Quiesce(ctx); err != nil {
		p.services.Logger.Error("pipeline did not stop", "pipeline", p.name, "error", err)
	}
	p.EndRuns()
	p.Close()
}

// Inherit takes over what the tasks of the pipeline have done that this one replaces: their runs and,
// if a task's specification is the same, that it was run to its end. A changed policy is no reason
// to run such a task again, such as an indexer: its output is under the policies of the conduits
// that it wrote to.
func (p *Pipeline) Inherit(old *Pipeline) {
	for name, task := range p.tasks {
		before := old.tasks[name]
		if before == nil {
			continue
		}
		task.inherit(before)
	}
}

func (t *Task) inherit(before *Task) {
	before.mu.Lock()
	state, message, since, completed := before.state, before.message, before.since, before.completed
	before.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = before.runs
	if !reflect.DeepEqual(before.spec, t.spec) {
		return
	}
	t.completed = completed
	if state == stateSucceeded {
		t.turn(state)
		t.message, t.since = message, since
	}
}
