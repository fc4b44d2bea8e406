// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// parentsOf has the parent of every process.
func parentsOf(t *testing.T) map[int]int {
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
	return parents
}

func alive(processes []int) bool {
	for _, process := range processes {
		if unix.Kill(process, 0) == nil {
			return true
		}
	}
	return false
}

// TestLeftGroup: in mode baseline a program can leave its process group; the
// keeper gets it all the same.
func TestLeftGroup(t *testing.T) {
	read, write, err := os.Pipe()
	check(t, err)
	defer read.Close()
	task, err := newBackend(t).Start(t.Context(), Spec{Spec: plan.Spec{Name: "daemon",
		Command: []string{"/bin/sh", "-c", "setsid setsid -f sleep 1000; echo ready; sleep 1000"}}, Stdout: write}, nil)
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
	waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
}

// TestLaunchErrors: a start that fails says why, leaves nothing running and
// nothing open.
func TestLaunchErrors(t *testing.T) {
	launchErrors(t, "fork", map[string]launchError{
		"no program": {func(s *Spec) { s.Command = []string{"/nonexistent"} },
			"execute /nonexistent: no such file"},
		"program not runtime": {func(s *Spec) { s.Runtime = nil }, "not in the task's runtime"},
		"relative program":    {func(s *Spec) { s.Command = []string{"cat"} }, "absolute path"},
		"no working directory": {func(s *Spec) { s.WorkingDirectory = "/nonexistent" },
			"working directory /nonexistent"},
		"no runtime": {func(s *Spec) { s.Runtime = append(s.Runtime, "/nonexistent") }, "grant /nonexistent"},
		"no capability": {func(s *Spec) { s.Capabilities = []plan.Capability{{Prefix: "/x", Path: "/nonexistent"}} },
			"open capability"},
		"bad descriptor": {func(s *Spec) { s.Descriptors = map[int]*os.File{2: os.Stdin} }, "descriptor 2"},
		"bad CPU":        {func(s *Spec) { s.CPUs = []int{1023} }, "pin to CPUs [1023]"},
	})
}

// TestStartIsCancelled: a context that ends ends the start.
func TestStartIsCancelled(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := newBackend(t).Start(ctx, newGround(t).spec(t, "breed 3"), nil); err == nil {
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
