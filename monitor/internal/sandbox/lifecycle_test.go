// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
)

// members are the processes that descend from root, root included, that are alive.
func members(t *testing.T, root int) []int {
	t.Helper()
	parents := parentsOf(t)
	var found []int
	for process := range parents {
		for ancestor := process; ancestor > 1; ancestor = parents[ancestor] {
			if ancestor == root {
				found = append(found, process)
				break
			}
		}
	}
	return found
}

// breeder starts a program with three forked workers and returns all processes
// of the task.
func breeder(t *testing.T, spec Spec) (Task, []int) {
	t.Helper()
	read, write, err := os.Pipe()
	check(t, err)
	defer read.Close()
	spec.Stdout = write
	task, err := newBackend(t).Start(t.Context(), spec, &scripted{})
	write.Close()
	check(t, err)
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the program said %q, %v", line, err)
	}
	return task, members(t, task.PID())
}

// TestNothingOutlivesATask: however it ends, every process is gone when Done is
// closed, in the sandbox and in mode baseline.
func TestNothingOutlivesATask(t *testing.T) {
	ends := map[string]func(t *testing.T, task Task){
		"stopped": func(t *testing.T, task Task) { check(t, task.Stop(t.Context())) },
		"killed":  func(t *testing.T, task Task) { check(t, unix.Kill(task.PID(), unix.SIGKILL)) },
		"keeper killed": func(t *testing.T, task Task) {
			keeper, err := ParentOf(task.PID())
			check(t, err)
			check(t, unix.Kill(keeper, unix.SIGKILL))
		},
	}
	for name, end := range ends {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", name, confined), func(t *testing.T) {
				leakFree(t, func(t *testing.T) {
					spec := confinedVictim(t, "breed 3")
					spec.Confined = confined
					task, processes := breeder(t, spec)
					if len(processes) != 4 {
						t.Errorf("%d processes, want 4", len(processes))
					}
					end(t, task)
					<-task.Done()
					waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
					if task.Err() == nil {
						t.Error("no word of how it ended")
					}
				})
			})
		}
	}
}

// TestStopKills: a program that ignores SIGTERM is killed when time is up.
func TestStopKills(t *testing.T) {
	task, processes := breeder(t, confinedVictim(t, "ignore-term"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, task.Stop(ctx))
	if alive(processes) {
		t.Error("something is left")
	}
	if task.Err() == nil || task.Err().Error() != "killed by SIGKILL" {
		t.Errorf("ended with %v", task.Err())
	}
}

// TestMonitorDies: kill -9 and Ctrl-C of the monitor leave nothing behind.
func TestMonitorDies(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGINT} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			self, err := ownProgram()
			check(t, err)
			monitor := exec.Command(self)
			monitor.Env = append(os.Environ(),
				monitorMarker+"="+strings.Join(confinedVictim(t, "breed 3").Command, " "))
			monitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output, err := monitor.StdoutPipe()
			check(t, err)
			check(t, monitor.Start())
			if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("the program said %q, %v", line, err)
			}
			processes := members(t, monitor.Process.Pid)
			if len(processes) != 6 { // monitor, keeper, program, three workers
				t.Errorf("%d processes, want 6", len(processes))
			}
			// To the group, as a terminal does it.
			check(t, unix.Kill(-monitor.Process.Pid, signal))
			_ = monitor.Wait()
			waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
		})
	}
}

// launchError is a specification at fault, and what its start says.
type launchError struct {
	change func(spec *Spec)
	want   string
}

// launchErrors checks that a start that fails says why, leaves nothing running and
// nothing open.
func launchErrors(t *testing.T, try string, tests map[string]launchError) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			leakFree(t, func(t *testing.T) {
				spec := confinedVictim(t, try)
				test.change(&spec)
				task, err := newBackend(t).Start(t.Context(), spec, &scripted{})
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "victim") {
					t.Errorf("got %v, %v; want %q and the task's name", task, err, test.want)
				}
			})
		})
	}
}
