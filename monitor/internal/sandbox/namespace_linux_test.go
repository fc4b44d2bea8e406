// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
)

// A task in a PID namespace sees its own processes only, by its own numbers; the monitor
// sees it by the monitor's.
func TestNumbersInANamespace(t *testing.T) {
	needRoot(t)
	const numbers = "echo $$ $(cat /proc/$$/comm) $(ls /proc | grep -c '^[0-9]'); sleep 1000"
	for name, test := range map[string]struct {
		waived plan.Protection
		inside bool
	}{
		"namespace": {plan.TaskCgroup, true},
		"none":      {plan.TaskCgroup | plan.TaskNamespace, false},
	} {
		t.Run(name, func(t *testing.T) {
			task, output := started(t, Spec{
				Spec: plan.Spec{Name: "numbers", Command: []string{"/bin/sh", "-c", numbers}}, waived: test.waived})
			line := output()
			var own, count int
			if _, err := fmt.Sscanf(line, "%d sh %d", &own, &count); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			if (own == task.PID()) == test.inside || (count < 10) != test.inside {
				t.Errorf("process %d calls itself %d and sees %d processes", task.PID(), own, count)
			}
			if parent := parentOf(task.PID()); parent != keeperOf(task) {
				t.Errorf("process %d is a child of %d, not of its keeper", task.PID(), parent)
			}
			check(t, task.Stop(t.Context()))
		})
	}
}

// In a namespace a keeper that does not answer is killed, and all processes end with it.
func TestStoppedKeeperOfANamespace(t *testing.T) {
	needRoot(t)
	spec := Spec{Spec: plan.Spec{Name: "daemon",
		Command: []string{"/bin/sh", "-c", "setsid setsid -f sleep 1000; echo ready; sleep 1000"}}, waived: plan.TaskCgroup}
	task, processes := breeder(t, spec)
	processes = append(processes, members(t, keeperOf(task))...)
	halt(t, keeperOf(task))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, task.Stop(ctx))
	if alive(processes) {
		t.Error("a process is left")
	}
}

// How a program in a namespace ends is what its status says, as elsewhere, and its
// processes have ended by then.
func TestEndInANamespace(t *testing.T) {
	needRoot(t)
	for _, waived := range []plan.Protection{plan.TaskCgroup, 0} {
		task, output := started(t, Spec{Spec: plan.Spec{Name: "daemon",
			Command: []string{"/bin/sh", "-c", "setsid setsid -f sleep 1000; echo ready; read -r line; exit 3"}}, waived: waived})
		if line := output(); line != "ready\n" {
			t.Fatalf("the program said %q", line)
		}
		var processes []int
		waiting.Until(t, "the process has left", func() bool {
			processes = members(t, keeperOf(task))
			return len(processes) >= 3 || task.Err() != nil
		})
		<-task.Done()
		if err := task.Err(); err == nil || err.Error() != "exited with status 3" {
			t.Errorf("waived %b: %v", waived, err)
		}
		if alive(processes) {
			t.Errorf("waived %b: a process is left", waived)
		}
	}
}

// started starts a task; output returns its first line.
func started(t *testing.T, spec Spec) (task Task, output func() string) {
	t.Helper()
	read, write, err := os.Pipe()
	check(t, err)
	t.Cleanup(func() { read.Close() })
	spec.Stdout, spec.Stderr = write, write
	task, err = newBackend(t).Start(t.Context(), spec, &scripted{})
	write.Close()
	check(t, err)
	return task, func() string {
		var line strings.Builder
		for one := make([]byte, 1); !strings.HasSuffix(line.String(), "\n"); line.Write(one) {
			if count, err := read.Read(one); count != 1 {
				t.Fatalf("after %q: %v", line.String(), err)
			}
		}
		return line.String()
	}
}
