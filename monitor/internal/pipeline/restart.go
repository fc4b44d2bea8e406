// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"time"
)

// A task that dies again and again is restarted with growing delays: immediately after
// the first death, after one second the next time, and then after twice the last delay,
// up to the longest. When the task has run for a while, its deaths are forgotten.
const (
	firstDelay   = time.Second
	longestDelay = time.Minute
	healthyTime  = time.Minute
)

// restartDelay returns the delay after a number of consecutive deaths.
func restartDelay(deaths int) time.Duration {
	if deaths <= 1 {
		return 0
	}
	delay := firstDelay
	for range deaths - 2 {
		if delay = min(2*delay, longestDelay); delay == longestDelay {
			break
		}
	}
	return delay
}

// restart starts a task again that had been ready and then died, immediately or later. It
// leaves a task alone that never became ready, since it would fail in the same way again.
// Called with mu held.
func (t *Task) restart() {
	if time.Since(t.launched) >= healthyTime {
		t.deaths = 0
	}
	t.deaths++
	t.restarts++
	t.pipeline.counts.Restarted(t.name)
	t.lastEnd, t.message = t.message, ""
	t.turn(stateStarting)
	t.ready = make(chan struct{})
	delay := restartDelay(t.deaths)
	if delay == 0 {
		t.relaunch()
		return
	}
	t.message = fmt.Sprintf("it has died %d times in a row and starts again in %v", t.deaths, delay)
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waiting == timer {
			t.waiting, t.message = nil, ""
			t.relaunch()
		}
	})
	t.waiting = timer
}

// relaunch starts the program again. Called with mu held.
func (t *Task) relaunch() {
	if err := t.launch(t.pipeline.services.Context); err != nil {
		t.failToStart(err)
	}
}

// cancelRestart stops a task that waits for its restart, or only interrupts its run. Called with
// mu held.
func (t *Task) cancelRestart(interrupts bool) {
	if t.waiting == nil {
		return
	}
	t.waiting.Stop()
	t.waiting = nil
	t.turn(stateStopped)
	t.message, t.interrupted = "", interrupts
	t.endRun(nil)
	close(t.ready)
	close(t.ended)
}
