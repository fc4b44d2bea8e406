// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
)

// needShell skips the test on a bare kernel.
func needShell(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("its tasks are scripts: %v", err)
	}
}

// rounding is what the four numbers that "times" prints may be too much.
const rounding = 4 * 5 * time.Millisecond

// timeSaid reads a line that "times" has printed.
func timeSaid(t *testing.T, lines *bufio.Reader) (total time.Duration) {
	t.Helper()
	line, err := lines.ReadString('\n')
	check(t, err)
	for _, word := range strings.Fields(line) {
		used, err := time.ParseDuration(word)
		check(t, err)
		total += used
	}
	return total
}

// The processor time of a task is at least what its program says that it and its children have
// used, with a cgroup and without one, while it runs and afterwards; it never shrinks.
func TestProcessorTime(t *testing.T) {
	needShell(t)
	const work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
	for name, waived := range map[string]plan.Protection{"cgroup": 0, "processes": plan.TaskCgroup} {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			check(t, err)
			defer read.Close()
			// "times" prints what the shell has used, and then its children that have ended.
			script := work + "; (" + work + "); times; sleep 1000"
			task, err := newBackend(t).Start(t.Context(), Spec{waived: waived, Stdout: write,
				Spec: plan.Spec{Name: "busy", Command: []string{"/bin/sh", "-c", script}}}, nil)
			write.Close()
			check(t, err)
			lines := bufio.NewReader(read)
			var said time.Duration
			for range 2 {
				said += timeSaid(t, lines)
			}
			running := task.CPU()
			if said == 0 || running.Task+rounding < said {
				t.Errorf("the program says %v, and the kernel %v", said, running.Task)
			}
			if running.Supervisor <= 0 {
				t.Error("its parent has used no time")
			}
			check(t, unix.Kill(task.PID(), unix.SIGKILL))
			<-task.Done()
			ended := task.CPU()
			if ended.Task < running.Task || ended.Supervisor < running.Supervisor {
				t.Errorf("it has used %+v, and after its end %+v", running, ended)
			}
			// The kernel may add the time of children to that of a parent that has ended, too.
			if ended.Supervisor-running.Supervisor >= said {
				t.Errorf("its parent has used %v, and after the end %v", running.Supervisor, ended.Supervisor)
			}
		})
	}
}

// The time that a program has used when it ends counts, whether anybody has looked before or not.
func TestProcessorTimeOfAProgramThatEnds(t *testing.T) {
	needShell(t)
	// The shell counts what the process used before it was in its cgroup, too, and rounds to hundredths.
	const tick = 10 * time.Millisecond
	for name, waived := range map[string]plan.Protection{"cgroup": 0, "processes": plan.TaskCgroup} {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			check(t, err)
			defer read.Close()
			const script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; times"
			task, err := newBackend(t).Start(t.Context(), Spec{waived: waived, Stdout: write,
				Spec: plan.Spec{Name: "busy", Command: []string{"/bin/sh", "-c", script}}}, nil)
			write.Close()
			check(t, err)
			said := timeSaid(t, bufio.NewReader(read))
			<-task.Done()
			if ended := task.CPU(); said <= tick || ended.Task < said-tick {
				t.Errorf("the program has used %v, and is counted with %v", said, ended.Task)
			}
		})
	}
}

// What is asked of a process that is not there is nothing, and what is asked again and again
// while programs end never shrinks.
func TestProcessorTimeOfNobody(t *testing.T) {
	needShell(t)
	const nobody = 1 << 30
	if used := (enclosure{}).measure(nobody); used != (CPU{}) {
		t.Errorf("%+v", used)
	}
	task, err := newBackend(t).Start(t.Context(), Spec{waived: plan.TaskCgroup,
		Spec: plan.Spec{Name: "breeding", Command: []string{"/bin/sh", "-c", "while :; do (:); done"}}}, nil)
	check(t, err)
	before := task.CPU()
	waiting.Until(t, "it has used a tenth of a second", func() bool {
		now := task.CPU()
		if now.Task < before.Task {
			t.Fatalf("%v after %v", now.Task, before.Task)
		}
		before = now
		return now.Task > 100*time.Millisecond
	})
	check(t, unix.Kill(task.PID(), unix.SIGKILL))
	<-task.Done()
}
