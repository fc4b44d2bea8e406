// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// members are the processes that descend from root, root included, that are
// alive.
func members(t *testing.T, root int) []int {
	t.Helper()
	parents := map[int]int{}
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	check(t, err)
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		process, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[process], _ = strconv.Atoi(fields[1])
	}
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

func alive(processes []int) bool {
	for _, process := range processes {
		if unix.Kill(process, 0) == nil {
			return true
		}
	}
	return false
}

// breeder starts a program with three forked workers and returns all processes
// of the task.
func breeder(t *testing.T, spec Spec) (Task, []int) {
	t.Helper()
	read, write, err := os.Pipe()
	check(t, err)
	defer read.Close()
	spec.Stdout = write
	task, err := New().Start(t.Context(), spec, &scripted{})
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
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", task.PID()))
			check(t, err)
			var keeper int
			_, rest, _ := strings.Cut(string(text), "PPid:\t")
			_, err = fmt.Sscan(rest, &keeper)
			check(t, err)
			check(t, unix.Kill(keeper, unix.SIGKILL))
		},
	}
	for name, end := range ends {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", name, confined), func(t *testing.T) {
				leakFree(t, func(t *testing.T) {
					spec := newGround(t).spec(t, "breed 3")
					spec.Confined = confined
					task, processes := breeder(t, spec)
					if len(processes) != 4 {
						t.Errorf("%d processes, want 4", len(processes))
					}
					end(t, task)
					<-task.Done()
					eventually(t, "all processes are gone", func() bool { return !alive(processes) })
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
	task, processes := breeder(t, newGround(t).spec(t, "ignore-term"))
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

// TestLeftGroup: in mode baseline a program can leave its process group; the
// keeper gets it all the same.
func TestLeftGroup(t *testing.T) {
	read, write, err := os.Pipe()
	check(t, err)
	defer read.Close()
	task, err := New().Start(t.Context(), Spec{Name: "daemon", Stdout: write,
		Command: []string{"/bin/sh", "-c", "setsid setsid -f sleep 1000; echo ready; sleep 1000"}}, nil)
	write.Close()
	check(t, err)
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the program said %q, %v", line, err)
	}
	processes := slices.DeleteFunc(members(t, os.Getpid()), func(process int) bool { return process == os.Getpid() })
	if len(processes) < 3 { // keeper, the program, and the one that left
		t.Errorf("only %d processes", len(processes))
	}
	check(t, unix.Kill(task.PID(), unix.SIGKILL))
	<-task.Done()
	eventually(t, "all processes are gone", func() bool { return !alive(processes) })
}

// TestMonitorDies: kill -9 and Ctrl-C of the monitor leave nothing behind.
func TestMonitorDies(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGINT} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			monitor := exec.Command("/proc/self/exe")
			monitor.Env = append(os.Environ(), monitorMarker+"="+victim(t)+" breed 3")
			monitor.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
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
			eventually(t, "all processes are gone", func() bool { return !alive(processes) })
		})
	}
}

// TestLaunchErrors: a start that fails says why, leaves nothing running and
// nothing open.
func TestLaunchErrors(t *testing.T) {
	good := newGround(t).spec(t, "fork")
	tests := map[string]struct {
		change func(spec *Spec)
		want   string
	}{
		"no program":           {func(s *Spec) { s.Command = []string{"/nonexistent"} }, "execute /nonexistent: no such file"},
		"program not runtime":  {func(s *Spec) { s.Runtime = nil }, "permission denied"},
		"relative program":     {func(s *Spec) { s.Command = []string{"cat"} }, "absolute path"},
		"no working directory": {func(s *Spec) { s.WorkingDirectory = "/nonexistent" }, "working directory /nonexistent"},
		"no runtime":           {func(s *Spec) { s.Runtime = append(s.Runtime, "/nonexistent") }, "grant /nonexistent"},
		"no capability":        {func(s *Spec) { s.Capabilities = []Capability{{"/x", "/nonexistent"}} }, "open capability"},
		"bad descriptor":       {func(s *Spec) { s.Descriptors = map[int]*os.File{2: os.Stdin} }, "descriptor 2"},
		"bad CPU":              {func(s *Spec) { s.CPUs = []int{1023} }, "pin to CPUs [1023]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			leakFree(t, func(t *testing.T) {
				spec := good
				spec.Waived = 0
				test.change(&spec)
				task, err := New().Start(t.Context(), spec, &scripted{})
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "victim") {
					t.Errorf("got %v, %v; want %q and the task's name", task, err, test.want)
				}
			})
		})
	}
}

// TestStartIsCancelled: a context that ends ends the start.
func TestStartIsCancelled(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := New().Start(ctx, newGround(t).spec(t, "breed 3"), nil); err == nil {
			t.Error("started")
		}
	})
}

// TestCPUs: a pinned task runs on its CPU and cannot change that.
func TestCPUs(t *testing.T) {
	for _, cpu := range []int{0, 1} {
		spec, decider := world(t, fmt.Sprint("cpus ", cpu))
		spec.CPUs = []int{cpu}
		if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
			t.Errorf("CPU %d: errno %v: %s", cpu, errno, got.output)
		}
	}
}

// TestInherited: a task has its standard descriptors, every reserved number, and
// nothing else (trap 10). This process has much more open.
func TestInherited(t *testing.T) {
	for _, confined := range []bool{true, false} {
		spec, _ := world(t, "")
		spec.Command = []string{"/bin/sh", "-c", "cd /proc/self/fd && echo *"}
		spec.Runtime, spec.Confined = runtimeOf("/proc"), confined
		spec.Descriptors[wire.FDReservedEnd-1] = spec.Descriptors[wire.FDConnection]
		leaked, err := os.Open("/etc/passwd")
		check(t, err)
		defer leaked.Close()
		if confined {
			// The sandbox has neither chdir nor fork and exec; the shell's glob opens the directory.
			spec.Command = []string{"/bin/sh", "-c", "echo /proc/self/fd/*"}
		}
		got := run(t, spec, &scripted{})
		numbers := strings.Fields(strings.ReplaceAll(got.output, "/proc/self/fd/", ""))
		for _, text := range numbers {
			number, err := strconv.Atoi(text)
			// The one above is the glob's own directory.
			if err != nil || number > wire.FDReservedEnd {
				t.Errorf("confined %v: descriptor %q is open", confined, text)
			}
		}
		if len(numbers) < wire.FDReservedEnd {
			t.Errorf("confined %v: only %d descriptors: %s", confined, len(numbers), got.output)
		}
	}
}

// TestBaseline: without the sandbox the same program reads the secret.
func TestBaseline(t *testing.T) {
	spec, _ := world(t, "open $S/secret.txt")
	spec.Confined = false
	if _, _, got := attempt(t, spec, nil); got.output != "secret" {
		t.Errorf("got %q, %v", got.output, got.err)
	}
}
