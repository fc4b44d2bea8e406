// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
)

// needCgroup skips a test on a machine without cgroups for tasks.
func needCgroup(t *testing.T) {
	t.Helper()
	path, err := makeCgroup()
	if err != nil {
		t.Skipf("tasks have no cgroup here: %v", err)
	}
	removeCgroup(path)
}

// chainSpec is a program in mode baseline of which one process makes a successor and ends,
// as the successor does, and so on.
func chainSpec(t *testing.T) Spec {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a task that has the monitor's user could leave its cgroup")
	}
	spec := confinedVictim(t, "chain")
	check(t, os.Chmod(filepath.Dir(victim(t)), 0o755))
	spec.Confined, spec.User = false, pipelineUser
	return spec
}

// A list may never show the process of the moment, and a signal to a group does not reach
// it. Without the cgroup and the namespace, TestStopIsBounded's error is all that is left.
func TestChainsEnd(t *testing.T) {
	for name, waived := range map[string]plan.Protection{"cgroup": 0, "namespace": plan.TaskCgroup} {
		t.Run(name, func(t *testing.T) {
			if waived == 0 {
				needCgroup(t)
			}
			spec := chainSpec(t)
			spec.waived = waived
			task, _ := breeder(t, spec)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			check(t, task.Stop(ctx))
		})
	}
}

// In mode baseline a process that has left its group ends with the cgroup or the namespace,
// if the keeper cannot find it any more. Without both it runs on.
func TestLeftGroupWithoutKeeper(t *testing.T) {
	needCgroup(t)
	needRoot(t)
	for _, waived := range []plan.Protection{0, plan.TaskCgroup, plan.TaskCgroup | plan.TaskNamespace} {
		spec := Spec{Spec: plan.Spec{Name: "daemon",
			Command: []string{"/bin/sh", "-c", "setsid setsid -f sleep 1000; echo ready; sleep 1000"}}, waived: waived}
		task, processes := breeder(t, spec)
		var left []int
		waiting.Until(t, "one process has left the group", func() bool {
			program := members(t, task.PID())
			left = slices.DeleteFunc(members(t, keeperOf(task)), func(pid int) bool {
				return pid == keeperOf(task) || slices.Contains(program, pid)
			})
			return len(left) == 1
		})
		check(t, unix.Kill(keeperOf(task), unix.SIGKILL))
		<-task.Done()
		if waived&plan.TaskNamespace != 0 {
			check(t, unix.Kill(left[0], unix.SIGKILL)) // it runs
		}
		waiting.Until(t, "all processes are gone", func() bool { return !alive(append(left, processes...)) })
	}
}

// A launcher that has not entered its cgroup yet ends, too: it would become a task that
// nobody ends.
func TestKillReachesTheLauncher(t *testing.T) {
	needCgroup(t)
	e, err := enclose(Spec{Spec: plan.Spec{User: pipelineUser}}, plan.Plan{})
	check(t, err)
	defer e.remove()
	outside := exec.Command("/bin/sleep", "1000")
	outside.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	check(t, outside.Start())
	defer func() { _ = outside.Process.Kill() }()
	e.kill(outside.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- outside.Wait() }()
	select {
	case <-ended:
	case <-time.After(waiting.Limit):
		t.Error("a launcher outside of its cgroup runs on")
	}
}

func keeperOf(started Task) int { return started.(*task).keeper }

// halt stops a process, and returns when all its threads have stopped: until then, one may
// still read what it is told.
func halt(t *testing.T, pid int) {
	t.Helper()
	check(t, unix.Kill(pid, unix.SIGSTOP))
	waiting.Until(t, "every thread has stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		check(t, err)
		return !slices.ContainsFunc(threads, func(path string) bool {
			text, err := os.ReadFile(path)
			return err != nil || !strings.HasPrefix(string(text[strings.LastIndexByte(string(text), ')')+1:]), " T ")
		})
	})
}

// cgroupOf returns a process's cgroup of version 2.
func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	check(t, err)
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "0::"); found {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// Every task has a cgroup, which is gone when the task has ended, also if its keeper was
// killed.
func TestTasksHaveACgroup(t *testing.T) {
	needCgroup(t)
	for _, confined := range []bool{true, false} {
		for _, keeperDies := range []bool{true, false} {
			spec := confinedVictim(t, "breed 3")
			spec.Confined = confined
			started, processes := breeder(t, spec)
			own := started.(*task).enclosure.Cgroup
			for _, pid := range processes {
				if name := cgroupOf(t, pid); filepath.Base(name) != filepath.Base(own) {
					t.Errorf("confined %v: process %d is in %s, not in %s", confined, pid, name, own)
				}
			}
			if keeper := keeperOf(started); keeperDies {
				check(t, unix.Kill(keeper, unix.SIGKILL))
			} else {
				check(t, started.Stop(t.Context()))
			}
			<-started.Done()
			if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("confined %v: the cgroup %s is left: %v", confined, own, err)
			}
			waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
		}
	}
}

func TestAbandonedCgroupsAreRemoved(t *testing.T) {
	needCgroup(t)
	ended := exec.Command("/bin/true")
	check(t, ended.Run())
	parent, err := tasksCgroup()
	check(t, err)
	monitor, err := monitorName(ended.Process.Pid)
	check(t, err)
	abandoned := filepath.Join(parent, cgroupPrefix+monitor+"-1")
	check(t, os.Mkdir(abandoned, 0o755))
	// Beginning with another digit, its namespace is not this one.
	another := filepath.Join(parent, cgroupPrefix+"1"+monitor+"-1")
	check(t, os.Mkdir(another, 0o755))
	used, err := makeCgroup()
	check(t, err)
	New(Options{})
	if _, err := os.Stat(abandoned); err == nil {
		t.Error("the cgroup of a monitor that has ended is left")
	}
	if err := os.Remove(another); err != nil {
		t.Errorf("the cgroup of a monitor in another PID namespace: %v", err)
	}
	if err := os.Remove(used); err != nil {
		t.Errorf("the cgroup of a running monitor: %v", err)
	}
}

// TestLeaks: whose processes have to be searched for when it ends.
func TestLeaks(t *testing.T) {
	const unheld = plan.TaskCgroup | plan.TaskNamespace
	filter, user := []bpf.RawInstruction{{}}, pipelineUser
	for _, test := range []struct {
		name   string
		spec   Spec
		filter []bpf.RawInstruction
		leaks  bool
		cgroup bool // whether this needs one
	}{
		{"confined", Spec{waived: unheld}, filter, false, false},
		{"baseline", Spec{waived: unheld}, nil, true, false},
		{"baseline with a user of its own", Spec{Spec: plan.Spec{User: user}, waived: unheld}, nil, true, false},
		{"baseline in a namespace", Spec{waived: plan.TaskCgroup}, nil, os.Geteuid() != 0, false},
		{"baseline with a cgroup", Spec{}, nil, true, true},
		{"baseline with a cgroup and a user of its own", Spec{Spec: plan.Spec{User: user}}, nil, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.cgroup {
				needCgroup(t)
			}
			e, err := enclose(test.spec, plan.Plan{Filter: test.filter})
			check(t, err)
			defer e.remove()
			if e.Leaks != test.leaks || e.Cgroup == "" && test.cgroup {
				t.Errorf("%+v, leaks should be %v", e, test.leaks)
			}
		})
	}
}

// TestStopIsBounded: if a task cannot be killed, here because its keeper is stopped, Stop
// says what is left.
func TestStopIsBounded(t *testing.T) {
	started, _ := breeder(t, confinedVictim(t, "ignore-term"))
	keeper := keeperOf(started)
	halt(t, keeper)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := started.Stop(ctx)
	if want := fmt.Sprintf("process %d, has 1 children [%d]", keeper, started.PID()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	check(t, unix.Kill(keeper, unix.SIGCONT))
	check(t, started.Stop(ctx))
}

// counting is an enclosure that counts what its keeper does.
type counting struct {
	enclosure
	kills, searches int
}

func (c *counting) kill(program int) {
	c.kills++
	c.enclosure.kill(program)
}

func (c *counting) killLeaked() map[int]bool {
	found := c.enclosure.killLeaked()
	if found != nil {
		c.searches++
	}
	return found
}

// TestEndingIsOneStep: the keeper of a hundred processes kills once, and does not search
// the machine's processes for each.
func TestEndingIsOneStep(t *testing.T) {
	const children = 100
	if state := os.Getenv(againMarker); state != "" {
		check(t, becomeReaper())
		counted := &counting{enclosure: enclosure{Leaks: state == "leaks"}}
		program, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c",
			fmt.Sprintf("for i in $(seq %d); do sleep 1000 & done", children)}, &syscall.ProcAttr{
			Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true}})
		check(t, err)
		k := keeper{main: program, mayKill: true, enclosure: counted}
		k.reap()
		fmt.Printf("kills %d searches %d\n", counted.kills, counted.searches)
		return
	}
	for state, most := range map[string]int{"leaks": 3, "holds": 0} {
		output := again(t, state, nil)
		var kills, searches int
		if _, err := fmt.Sscanf(output, "kills %d searches %d", &kills, &searches); err != nil {
			t.Fatalf("%s: %v: %s", state, err, output)
		}
		if kills != 1 || searches > most {
			t.Errorf("%s: killed %d times, searched %d times; want once, and at most %d", state, kills, searches, most)
		}
	}
}
