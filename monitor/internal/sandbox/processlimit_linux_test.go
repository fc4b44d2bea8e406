// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// counted returns a file of the cgroup that limits a task's processes.
func counted(t *testing.T, started Task, file string) string {
	t.Helper()
	e := enclosureOf(started)
	text, err := os.ReadFile(filepath.Join(cmp.Or(e.Counted, e.Cgroup), file))
	check(t, err)
	return strings.TrimSpace(string(text))
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
		{"multiply", true, tries, plan.ProcessLimit, tries},
		{"multiply", false, tries, plan.ProcessLimit, tries},
		{"multiply-threads", false, tries + 1, 0, tries},
		{"multiply-threads", false, tries, 0, tries - 1},
		{"multiply-threads", false, tries, plan.ProcessLimit, tries},
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
				for _, cgroup := range []string{e.Cgroup, e.Counted} {
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
		{true, 0, limit}, {false, 0, limit}, {false, plan.ProcessLimit, net},
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
				if test.waived == 0 && strings.HasSuffix(counted(t, bomb, "pids.events"), "max 0") {
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

// A task that serves users gets all its workers, within its limit.
func TestWorkersAreWithinTheLimit(t *testing.T) {
	needPids(t)
	task, sessions, _ := serving(t, "serve-for-ever", 8)
	sessions.hasWorkers(t)
	if got := counted(t, task, "pids.current"); got != "9" {
		t.Errorf("%s processes, want the program and 8 workers", got)
	}
	if got := counted(t, task, "pids.max"); got != "41" {
		t.Errorf("at most %s processes, want 41", got)
	}
}

// Who asks for a limit that cannot be set gets an error; without it, the task starts.
func TestLimitThatCannotBeSet(t *testing.T) {
	if os.Getenv(againMarker) != "" {
		_, err := enclose(Spec{Spec: plan.Spec{Limits: plan.Limits{Processes: 100}}}, plan.Plan{})
		_, other := enclose(Spec{}, plan.Plan{})
		fmt.Printf("%v; %v; %v\n", errors.Is(err, plan.ErrUnsupported), err, other)
		return
	}
	needRoot(t)
	output := again(t, "no rights",
		&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: pipelineUser.ID, Gid: pipelineUser.Group}})
	for _, want := range []string{"true; limit the task to 100 processes (shai doctor", "; <nil>\n"} {
		if !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
}

func enclosureOf(started Task) enclosure { return started.(*task).enclosure }
