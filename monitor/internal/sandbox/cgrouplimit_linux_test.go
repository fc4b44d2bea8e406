// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
)

// needPids skips a test on a machine that cannot limit the processes of tasks.
func needPids(t *testing.T) {
	t.Helper()
	e, err := enclose(Spec{Spec: plan.Spec{Limits: plan.Limits{Processes: 100}}}, plan.Plan{})
	if err != nil {
		t.Skip(err)
	}
	e.remove()
}

// limited returns a file of the cgroup in which a controller limits a task.
func limited(t *testing.T, started Task, file string) string {
	t.Helper()
	e := enclosureOf(started)
	for _, cgroup := range append(e.Limited, e.Cgroup) {
		text, err := os.ReadFile(filepath.Join(cgroup, file))
		if err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatalf("no cgroup of the task has %s", file)
	return ""
}

// A task makes as many processes and threads as its limit, and no more, if it has one.
func TestProcessesAreLimited(t *testing.T) {
	needPids(t)
	const tries = 60
	for _, test := range []struct {
		try      string
		confined bool
		limit    uint64
		waived   plan.Protection
		made     int
	}{
		{"multiply", true, tries + 1, 0, tries},
		{"multiply", false, tries + 1, 0, tries},
		{"multiply", true, tries, 0, tries - 1},
		{"multiply", false, tries, 0, tries - 1},
		{"multiply", false, tries, plan.TaskCgroup, tries - 1}, // a namespace
		{"multiply", true, tries, plan.TaskLimits, tries},
		{"multiply", false, tries, plan.TaskLimits, tries},
		{"multiply-threads", false, tries + 1, 0, tries},
		{"multiply-threads", false, tries, 0, tries - 1},
		{"multiply-threads", false, tries, plan.TaskLimits, tries},
	} {
		t.Run(fmt.Sprintf("%s, confined %v, limit %d, waived %b", test.try, test.confined, test.limit, test.waived),
			func(t *testing.T) {
				spec := confinedVictim(t, fmt.Sprintf("%s %d", test.try, tries))
				spec.Confined, spec.Limits.Processes, spec.waived = test.confined, test.limit, test.waived
				task, output := started(t, spec)
				if line := output(); line != fmt.Sprintln(test.made) {
					t.Errorf("made %s, want %d", line, test.made)
				}
				e := enclosureOf(task)
				check(t, task.Stop(t.Context()))
				for _, cgroup := range append(e.Limited, e.Cgroup) {
					if _, err := os.Stat(cgroup); cgroup != "" && !errors.Is(err, os.ErrNotExist) {
						t.Errorf("the cgroup %s is left: %v", cgroup, err)
					}
				}
			})
	}
}

// A fork bomb meets its limit, and other tasks start and end meanwhile. It has one user,
// who may have so many processes that the machine goes on in any case.
func TestForkBomb(t *testing.T) {
	needPids(t)
	needRoot(t)
	const limit, net = 60, 150
	for _, test := range []struct {
		confined bool
		waived   plan.Protection
		most     int
	}{
		{true, 0, limit}, {false, 0, limit}, {false, plan.TaskLimits, net},
	} {
		t.Run(fmt.Sprintf("confined %v, waived %b", test.confined, test.waived), func(t *testing.T) {
			spec := confinedVictim(t, fmt.Sprint("explode ", net))
			check(t, os.Chmod(filepath.Dir(victim(t)), 0o755))
			spec.Confined, spec.User, spec.waived = test.confined, pipelineUser, test.waived
			spec.Limits.Processes = limit
			bomb, output := started(t, spec)
			if line := output(); line != "ready\n" {
				t.Fatalf("the program said %q", line)
			}
			waiting.Until(t, "no more processes can be made", func() bool {
				if test.waived == 0 && strings.HasSuffix(limited(t, bomb, "pids.events"), "max 0") {
					return false
				}
				return len(members(t, bomb.PID())) == test.most
			})
			other := confinedVictim(t, "multiply 10")
			other.Limits.Processes = 20
			task, output := started(t, other)
			if line := output(); line != "10\n" {
				t.Errorf("another task made %s, want 10", line)
			}
			check(t, task.Stop(t.Context()))
			check(t, bomb.Stop(t.Context()))
		})
	}
}

// needController skips a test on a machine on which a controller cannot limit tasks.
func needController(t *testing.T, limits plan.Limits) {
	t.Helper()
	e, err := enclose(Spec{Spec: plan.Spec{Limits: limits}}, plan.Plan{})
	if err != nil {
		t.Skip(err)
	}
	e.remove()
}

// python returns a task that runs a program in Python.
func python(t *testing.T, program string, confined bool, limits plan.Limits) Spec {
	t.Helper()
	const interpreter = "/usr/bin/python3"
	if _, err := os.Stat(interpreter); err != nil {
		t.Skipf("no python: %v", err)
	}
	return Spec{Spec: plan.Spec{Command: []string{interpreter, "-I", "-c", program}, Runtime: runtimeOf(),
		WorkingDirectory: "/", Confined: confined, Limits: limits}}
}

// All processes of a task together have the memory that it may take, and it ends when they need
// more.
func TestMemoryOfATaskIsLimited(t *testing.T) {
	needController(t, plan.Limits{TotalMemory: 100 << 20})
	const halves = `import os, signal
def take():
    return bytearray(60 << 20)
read, write = os.pipe()
if os.fork() == 0:
    kept = take()
    os.write(write, b"x")
    signal.pause()
os.close(write)
kept = take()
print("done" if os.read(read, 1) == b"x" else "alone", flush=True)
`
	for _, test := range []struct {
		name   string
		limit  uint64
		waived plan.Protection
		want   bool
	}{
		{"within the limit", 400 << 20, 0, true},
		{"beyond the limit", 100 << 20, 0, false},
		{"beyond the limit, which is off", 100 << 20, plan.TaskLimits, true},
	} {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", test.name, confined), func(t *testing.T) {
				spec := python(t, halves, confined, plan.Limits{TotalMemory: test.limit})
				spec.waived = test.waived
				got := run(t, spec, &scripted{})
				if done := strings.Contains(got.output, "done"); done != test.want {
					t.Errorf("done %v, want %v; ended with %v, output:\n%s", done, test.want, got.err, got.output)
				}
			})
		}
	}
}

// The kernel holds a task back that would take more processor time than it may.
func TestProcessorTimeOfATaskIsLimited(t *testing.T) {
	needController(t, plan.Limits{CPU: 100})
	const spin = "print('ready', flush=True)\nwhile True: pass\n"
	for _, test := range []struct {
		name string
		cpu  uint64
		held bool
	}{
		{"a tenth of a processor", 100, true},
		{"more than the machine has", 1 << 20, false},
	} {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", test.name, confined), func(t *testing.T) {
				task, output := started(t, python(t, spin, confined, plan.Limits{CPU: test.cpu}))
				if line := output(); line != "ready\n" {
					t.Fatalf("the program said %q", line)
				}
				figures := func() map[string]int {
					found := map[string]int{}
					for line := range strings.Lines(limited(t, task, "cpu.stat")) {
						name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
						found[name], _ = strconv.Atoi(value)
					}
					return found
				}
				if test.held { // on a busy machine it takes a while until the task has more than its share
					held := func() bool { return figures()["nr_throttled"] > 0 }
					waiting.Until(t, "the kernel holds the task back", held)
				}
				counted := func() bool { return figures()["nr_periods"] > 10 }
				waiting.Until(t, "the kernel has counted some periods", counted)
				if held := figures()["nr_throttled"] > 0; held != test.held {
					t.Errorf("held back %v, want %v: %v", held, test.held, figures())
				}
				check(t, task.Stop(t.Context()))
			})
		}
	}
}

// A task that serves users gets all its workers, within its limit.
func TestWorkersAreWithinTheLimit(t *testing.T) {
	needPids(t)
	task, sessions, _ := serving(t, "serve-for-ever", 8)
	sessions.hasWorkers(t)
	if got := limited(t, task, "pids.current"); got != "9" {
		t.Errorf("%s processes, want the program and 8 workers", got)
	}
	if got := limited(t, task, "pids.max"); got != "41" {
		t.Errorf("at most %s processes, want 41", got)
	}
}

// Who asks for a limit that cannot be set gets an error; without it, the task starts.
func TestLimitThatCannotBeSet(t *testing.T) {
	if os.Getenv(againMarker) != "" {
		_, err := enclose(Spec{Spec: plan.Spec{Limits: plan.Limits{Processes: 100}}}, plan.Plan{})
		_, other := enclose(Spec{}, plan.Plan{})
		_, processors := enclose(Spec{Spec: plan.Spec{Limits: plan.Limits{CPU: 100}}}, plan.Plan{})
		_, memory := enclose(Spec{Spec: plan.Spec{Limits: plan.Limits{TotalMemory: 100 << 20}}}, plan.Plan{})
		fmt.Printf("%v; %v; %v; %v; %v\n", errors.Is(err, plan.ErrUnsupported), err, other,
			errors.Is(processors, plan.ErrUnsupported), errors.Is(memory, plan.ErrUnsupported))
		return
	}
	needRoot(t)
	output := again(t, "no rights",
		&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: pipelineUser.ID, Gid: pipelineUser.Group}})
	for _, want := range []string{"true; limit the task to 100 processes (shai doctor", "; <nil>; true; true\n"} {
		if !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
}

func enclosureOf(started Task) enclosure { return started.(*task).enclosure }
