// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"testing"
	"time"

	"shai.dev/monitor/internal/sandbox"
)

func TestRestartDelay(t *testing.T) {
	for deaths, want := range map[int]time.Duration{
		1: 0, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second, 7: 32 * time.Second, 8: time.Minute,
		9: time.Minute, 1 << 40: time.Minute,
	} {
		if got := restartDelay(deaths); got != want {
			t.Errorf("after %d deaths %v, want %v", deaths, got, want)
		}
	}
}

// Workers of an earlier program do not make the present one ready.
func TestWorkersOfAnEarlierStart(t *testing.T) {
	present := &sandboxedTask{}
	task := &Task{state: stateStarting, ready: make(chan struct{}), started: present}
	task.idle(&sandboxedTask{})
	if task.state != stateStarting {
		t.Error("ready by a worker of an earlier program")
	}
	task.idle(present)
	if task.state != stateRunning {
		t.Errorf("not ready by its own worker: %s", task.state)
	}
}

// sandboxedTask stands for one start of a program.
type sandboxedTask struct {
	sandbox.Task
	_ byte // so that each has an address of its own
}

// What a process of an earlier program says does not make the present one ready: where
// there are no cgroups, it may live on when the keeper was killed.
func TestReadinessOfAnEarlierStart(t *testing.T) {
	earlier, present := make(chan struct{}), make(chan struct{})
	task := &Task{state: stateStarting, ready: present}
	task.saysReady(earlier)
	if task.state != stateStarting {
		t.Error("the earlier program's word made the present one ready")
	}
	task.saysReady(present)
	if task.state != stateRunning {
		t.Errorf("the present program said that it is ready, and is %s", task.state)
	}
}
