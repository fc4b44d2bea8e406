// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/waiting"
)

// forking is a pipeline whose task makes processes and waits for ever.
const forking = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: worker}
spec:
  command: [/usr/bin/python3, -Ic, "import os, signal; os.fork(); os.fork(); signal.pause()"]
  runtimeName: system
  taint: {name: open}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: probe}
spec: {mode: MODE, tasks: [worker]}
`

// startForking runs a task in a monitor that is a process of its own, and returns the
// monitor and its four processes, without the keeper.
func startForking(t *testing.T, s *stack, mode string) (monitor *exec.Cmd, task []int) {
	t.Helper()
	s.manifests = map[string]string{"pipeline.yaml": strings.ReplaceAll(forking, "MODE", mode)}
	monitor, _ = s.startMonitorProcess()
	awaitSnapshot(t, s.options.State)
	waiting.Until(t, "the task has forked", func() bool {
		parent := parents(t)
		task = slices.DeleteFunc(descendants(t, monitor.Process.Pid), func(pid int) bool {
			return parent[pid] == monitor.Process.Pid
		})
		return len(task) == 4
	})
	return monitor, task
}

// living leaves out the processes that have ended.
func living(t *testing.T, processes []int) []int {
	all := parents(t)
	return slices.DeleteFunc(slices.Clone(processes), func(pid int) bool { _, lives := all[pid]; return !lives })
}

// hasStopped reports whether every thread of a process is stopped. The signal that stops
// them reaches one after the other.
func hasStopped(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of process %d: %q, %v", pid, threads, err)
	}
	return !slices.ContainsFunc(threads, func(path string) bool {
		text, err := os.ReadFile(path)
		return err != nil || !strings.HasPrefix(string(text[strings.LastIndex(string(text), ")")+1:]), " T ")
	})
}

// When monitor and keeper are killed together, the task's children run on, with the rights
// of a bundle that may be replaced next. The next monitor ends them before it serves.
func TestMonitorAndKeeperAreKilled(t *testing.T) {
	for _, mode := range []string{"shai", "baseline"} {
		t.Run(mode, func(t *testing.T) {
			if !isSuperuser() {
				t.Skip("only the superuser's tasks have users of their own")
			}
			s := newStack(t)
			monitor, task := startForking(t, s, mode)
			family := append(descendants(t, monitor.Process.Pid), monitor.Process.Pid)
			keepers := slices.DeleteFunc(family, func(pid int) bool { return slices.Contains(task, pid) })
			// Stopped first, neither keeper nor monitor sees the end of the other.
			for _, pid := range keepers {
				s.must(syscall.Kill(pid, syscall.SIGSTOP))
				waiting.Until(t, "every thread has stopped", func() bool { return hasStopped(t, pid) })
			}
			for _, pid := range keepers {
				s.must(syscall.Kill(pid, syscall.SIGKILL))
			}
			_ = monitor.Wait()
			waiting.Until(t, "monitor, keeper and main process have ended", func() bool {
				return len(living(t, keepers)) == 0 && len(living(t, task)) == len(task)-1
			})
			s.open()
			if left := living(t, task); len(left) > 0 {
				t.Errorf("processes %v run on under the next monitor", left)
			}
			want := fmt.Sprintf("and are ended: %d", len(task)-1)
			if !slices.ContainsFunc(s.records(), func(r audit.Record) bool {
				return r.Kind == audit.Task && r.Pipeline == "probe" && strings.HasSuffix(r.Reason, want)
			}) {
				t.Errorf("the audit log does not say %q", want)
			}
		})
	}
}

// chaining is a program of which one process makes a successor outside of its process
// group and ends, as the successor does, and so on. All of them hold a named pipe open.
const chaining = `import os, signal
os.open("PIPE", os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork():
            os._exit(0)
signal.pause()`

// In mode baseline a keeper may never find a process that forks and ends. The remedy is to
// kill the monitor: the next one ends all of them.
func TestChainsEndWithTheNextMonitor(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only the superuser's tasks have users of their own")
	}
	s := newStack(t)
	pipe := filepath.Join(openDirectory(t), "pipe")
	s.must(syscall.Mkfifo(pipe, 0o600))
	s.must(os.Chmod(pipe, 0o666))
	held, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	s.must(err)
	defer held.Close()
	program, err := json.Marshal(strings.ReplaceAll(chaining, "PIPE", pipe))
	s.must(err)
	text := strings.ReplaceAll(forking, "MODE", "baseline")
	s.manifests = map[string]string{"pipeline.yaml": strings.ReplaceAll(text,
		`"import os, signal; os.fork(); os.fork(); signal.pause()"`, string(program))}
	numbers, err := s.options.TaskIDs.Of(s.options.Data, "probe", "worker")
	s.must(err)
	user := numbers.Tasks["worker"]
	t.Cleanup(func() { // a chain that runs on would never end
		rest := exec.Command("/bin/sh", "-c", "kill -9 -1")
		rest.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		_ = rest.Run()
	})
	monitor, _ := s.startMonitorProcess()
	runs := func() bool { // whether any process holds the pipe, which no list might show
		connection, err := held.SyscallConn()
		s.must(err)
		count := -1
		s.must(connection.Control(func(number uintptr) {
			count, err = syscall.Read(int(number), make([]byte, 1))
		}))
		return count != 0 && errors.Is(err, syscall.EAGAIN)
	}
	waiting.Until(t, "the task runs", runs)
	parent := parents(t)
	keeper := slices.DeleteFunc(descendants(t, monitor.Process.Pid), func(pid int) bool {
		return parent[pid] != monitor.Process.Pid
	})
	s.must(monitor.Process.Signal(syscall.SIGSTOP)) // so that it does not see its keeper end
	waiting.Until(t, "every thread has stopped", func() bool { return hasStopped(t, monitor.Process.Pid) })
	for _, pid := range keeper {
		s.must(syscall.Kill(pid, syscall.SIGKILL))
	}
	s.must(monitor.Process.Kill())
	_ = monitor.Wait()
	s.open()
	waiting.Until(t, "nothing of the chain runs", func() bool { return !runs() })
}

// A supervisor whose monitor was killed ends by itself, and holds the address of its pipeline
// until then: the next monitor serves nobody before.
func TestSupervisorsOfAnEarlierMonitorAreAwaited(t *testing.T) {
	program, err := os.ReadFile("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shai-supervisor")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	// It reads until the other program ends.
	supervisor, other := exec.Command(path, "/proc/0/exe", "-"), exec.Command("/bin/sleep", "1")
	if supervisor.Stdin, err = other.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Start(), supervisor.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = supervisor.Wait(), other.Wait() }()
	m := startedBare(t, bareOptions(t))
	defer func() { _ = m.Close() }()
	if left := living(t, []int{supervisor.Process.Pid}); len(left) > 0 {
		t.Error("the monitor has begun before the supervisor of an earlier one has ended")
	}
}

// A benchmark runs several monitors on one data directory, whose tasks have the same user.
// None ends the tasks of another.
func TestTasksOfARunningMonitorGoOn(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only the superuser's tasks have users of their own")
	}
	s := newStack(t)
	_, task := startForking(t, s, "shai")
	s.options.State = filepath.Join(filepath.Dir(s.options.State), "other")
	s.open()
	if left := living(t, task); len(left) != len(task) {
		t.Errorf("of the processes %v only %v run on", task, left)
	}
}
