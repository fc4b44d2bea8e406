// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// serving starts a program that serves users, and returns its sessions.
func serving(t *testing.T, try string, slots uint32) (Task, *testSessions, *scripted) {
	t.Helper()
	return servingAs(t, nil, try, slots)
}

// servingAs starts it as a user.
func servingAs(t *testing.T, user *plan.User, try string, slots uint32) (Task, *testSessions, *scripted) {
	t.Helper()
	spec, decider := servingWorld(t, try)
	sessions := newSessions(t, slots)
	spec.Sessions, spec.Workers, spec.User = sessions, int(slots), user
	check(t, os.Chmod(filepath.Dir(victim(t)), 0o755)) // for that user
	task, err := newBackend(t).Start(t.Context(), spec, decider)
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		check(t, task.Stop(ctx))
	})
	return task, sessions, decider
}

// hasWorkers waits until as many workers as there are slots have a user each.
func (s *testSessions) hasWorkers(t *testing.T) {
	t.Helper()
	for range s.slots {
		s.connect(t, "user")
	}
	waiting.Until(t, "each user has a worker", func() bool {
		return len(s.of(supervision.EventAccepted)) == int(s.slots)
	})
}

// processesOf are those of a task that has a supervisor, without it.
func processesOf(t *testing.T, task Task) []int {
	t.Helper()
	return slices.DeleteFunc(members(t, keeperOf(task)), func(pid int) bool { return pid == keeperOf(task) })
}

// TestManyWorkers: many workers wait at a time; each gets a connection and a socket of its
// own in place of the program's.
func TestManyWorkers(t *testing.T) {
	const workers = 32
	leakFree(t, func(t *testing.T) {
		task, sessions, _ := serving(t, fmt.Sprint("serve ", workers), workers)
		waiting.Until(t, "all workers are there", func() bool { return len(processesOf(t, task)) == 1+workers })
		for range workers {
			connection, greeting := sessions.connect(t, "hello"), make([]byte, 5)
			if _, err := io.ReadFull(connection, greeting); err != nil || string(greeting) != "hello" {
				t.Fatalf("the client read %q, %v", greeting, err)
			}
		}
		waiting.Until(t, "all workers have ended", func() bool {
			return len(sessions.of(supervision.EventEnded)) == workers
		})
		pids := map[int32]bool{int32(task.PID()): true}
		for _, event := range sessions.of(supervision.EventEnded) {
			if !strings.HasSuffix(event.Reason, fmt.Sprint("status ", workerSucceeded)) || pids[event.Worker] {
				t.Errorf("%+v", event)
			}
			pids[event.Worker] = true
		}
	})
}

// TestSupervisedTasksEnd: however a task with sessions ends, its program and its workers
// are gone when Done is closed, and another starts.
func TestSupervisedTasksEnd(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(t *testing.T, task Task)
		want string // of Err
	}{
		"stopped":           {func(t *testing.T, task Task) { check(t, task.Stop(t.Context())) }, ""},
		"killed":            {func(t *testing.T, task Task) { check(t, unix.Kill(task.PID(), unix.SIGKILL)) }, "killed by SIGKILL"},
		"supervisor killed": {func(t *testing.T, task Task) { check(t, unix.Kill(keeperOf(task), unix.SIGKILL)) }, "its supervisor died"},
		"out of time": {func(t *testing.T, task Task) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			check(t, task.Stop(ctx))
		}, "killed by SIGKILL"},
		"supervisor hangs": {func(t *testing.T, task Task) {
			check(t, unix.Kill(keeperOf(task), unix.SIGSTOP))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			check(t, task.Stop(ctx))
		}, "its supervisor died"},
	} {
		t.Run(name, func(t *testing.T) {
			var user *plan.User
			if os.Geteuid() == 0 {
				user = pipelineUser
			}
			leakFree(t, func(t *testing.T) {
				started, sessions, _ := servingAs(t, user, "serve-for-ever", 3)
				sessions.hasWorkers(t)
				processes := processesOf(t, started)
				if len(processes) < 4 {
					t.Errorf("only %d processes", len(processes))
				}
				test.end(t, started)
				<-started.Done()
				waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
				if err := started.Err(); name != "out of time" && fmt.Sprint(err) != either(test.want, "<nil>") {
					t.Errorf("ended with %v", err)
				}
				if _, err := os.Stat(started.(*task).enclosure.Cgroup); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("its cgroup is left: %v", err)
				}
			})
		})
	}
}

func either(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestStopReachesAFork: the program handles SIGTERM although it hangs in a fork that waits
// until a worker is wanted. Without the supervisor's answer it would be killed.
func TestStopReachesAFork(t *testing.T) {
	task, sessions, _ := serving(t, "serve-for-ever", 1)
	sessions.hasWorkers(t) // no other is wanted
	ctx, cancel := context.WithTimeout(t.Context(), waiting.Limit)
	defer cancel()
	check(t, task.Stop(ctx))
	if task.Err() != nil {
		t.Errorf("ended with %v", task.Err())
	}
}

// TestSupervisedLaunchErrors: what the launcher says is what Start says.
func TestSupervisedLaunchErrors(t *testing.T) {
	sessions, refusing := newSessions(t, 1), newSessions(t, 1)
	refusing.begin = errors.New("the monitor has none")
	served := func(change func(*Spec)) func(*Spec) {
		return func(spec *Spec) {
			spec.Serving, spec.Sessions = true, sessions
			change(spec)
		}
	}
	launchErrors(t, "serve-for-ever", map[string]launchError{
		"no program": {served(func(s *Spec) { s.Command = []string{"/nonexistent"} }), "/nonexistent"},
		"bad CPU":    {served(func(s *Spec) { s.CPUs = []int{1023} }), "pin to CPUs [1023]"},
		"no capability": {served(func(s *Spec) { s.Capabilities = []plan.Capability{{Prefix: "/x", Path: "/nonexistent"}} }),
			"open capability"},
		"no sessions": {served(func(s *Spec) { s.Sessions = refusing }), "the monitor has none"},
	})
}

// TestMissingSupervisor: a task with sessions does not start without its supervisor, and
// the error says how to get one. Other tasks start.
func TestMissingSupervisor(t *testing.T) {
	backend := New(Options{Supervisor: "/nonexistent/shai-supervisor"})
	spec, decider := servingWorld(t, "serve-for-ever")
	_, err := backend.Start(t.Context(), spec, decider)
	for _, want := range []string{"/nonexistent/shai-supervisor", "make build", "--supervisor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	spec, decider = world(t, "kill-own")
	task, err := backend.Start(t.Context(), spec, decider)
	check(t, err)
	<-task.Done()
	for program, present := range map[string]bool{"/nonexistent": false, "/bin/true": true} {
		for _, feature := range New(Options{Supervisor: program}).Probe().Features {
			if feature.Name == "supervisor" && feature.Present != present {
				t.Errorf("%+v", feature)
			}
		}
	}
}

// TestManyDescriptors: a task with many descriptors has them at their numbers.
func TestManyDescriptors(t *testing.T) {
	const first, count = wire.FDPipe, 60
	spec, decider := servingWorld(t, fmt.Sprintf("read-all %d %d", first, count))
	for number := first; number < first+count; number++ {
		read, write := pipe(t)
		_, err := fmt.Fprint(write, number)
		check(t, err)
		check(t, write.Close())
		spec.Descriptors[number] = read
	}
	if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
		t.Errorf("errno %v: %v %s", errno, got.err, got.output)
	}
}

// TestSessionOfCaller: the monitor learns whose worker makes a request.
func TestSessionOfCaller(t *testing.T) {
	spec, decider := servingWorld(t, "open-in-session $G/allowed.txt")
	if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
		t.Fatalf("errno %v: %v %s", errno, got.err, got.output)
	}
	accepted := spec.Sessions.(*testSessions).of(supervision.EventAccepted)
	last := decider.opens[len(decider.opens)-1]
	if len(accepted) != 1 || last.Session != accepted[0].Session || last.PID != int(accepted[0].Worker) {
		t.Errorf("request %+v, sessions %+v", last, accepted)
	}
}

// TestKeepers: keepers and supervisors are known as such while their monitor runs.
func TestKeepers(t *testing.T) {
	task, _, _ := serving(t, "serve-for-ever", 1)
	plain, _ := breeder(t, confinedVictim(t, "breed 1"))
	defer func() { _ = plain.Stop(t.Context()) }()
	for pid, want := range map[int]bool{keeperOf(task): true, keeperOf(plain): true, task.PID(): false,
		os.Getpid(): false} {
		if IsKeeper(pid) != want {
			t.Errorf("process %d is a keeper: %v", pid, !want)
		}
		if IsOrphanedSupervisor(pid) {
			t.Errorf("process %d is a supervisor without its monitor", pid)
		}
	}
	// One whose monitor has ended, and nobody's program of that name.
	impostor := exec.Command("/bin/sleep", "1000")
	impostor.Args[0] = supervisorName
	check(t, impostor.Start())
	defer func() { _ = impostor.Process.Kill(); _ = impostor.Wait() }()
	if IsKeeper(impostor.Process.Pid) {
		t.Error("a process that is only called so is a supervisor")
	}
}

// TestSupervisorThatDoesNotRead: its task is ended.
func TestSupervisorThatDoesNotRead(t *testing.T) {
	task, sessions, _ := serving(t, "serve-for-ever", 1)
	supervisor := <-sessions.begun
	check(t, supervisor.Send(supervision.Mode{Mode: wire.ModeShai}))
	check(t, unix.Kill(keeperOf(task), unix.SIGSTOP))
	var err error
	for table := make([]supervision.Region, supervision.RegionsMax); err == nil; {
		err = supervisor.Send(supervision.Regions{First: 1, Regions: table})
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	check(t, unix.Kill(keeperOf(task), unix.SIGCONT))
	<-task.Done()
	if err := supervisor.Send(supervision.Begin{}); err == nil {
		t.Error("a supervisor that has ended takes a record")
	}
}

// TestSupervisorThatIsNotTold: a task whose supervisor cannot be sent a record is ended.
func TestSupervisorThatIsNotTold(t *testing.T) {
	task, sessions, _ := serving(t, "serve-for-ever", 1)
	supervisor := <-sessions.begun
	check(t, supervisor.Send(supervision.Mode{Mode: wire.ModeShai}))
	table := make([]supervision.Region, supervision.RegionsMax+1)
	if err := supervisor.Send(supervision.Regions{First: 1, Regions: table}); err == nil {
		t.Error("a record with too many regions was sent")
	}
	<-task.Done()
}

// TestSetThatCannotBeTold: it is an error, and the task goes on for the users of other sets.
func TestSetThatCannotBeTold(t *testing.T) {
	_, sessions, _ := serving(t, "serve-for-ever", 1)
	supervisor := <-sessions.begun
	if err := supervisor.Send(supervision.Set{Instance: "worker(a\x00b)"}); !errors.Is(err, supervision.ErrNotEncoded) {
		t.Errorf("got %v", err)
	}
	check(t, supervisor.Send(supervision.Mode{Mode: wire.ModeShai}))
}

// TestSupervisedMonitorDies: kill -9 and Ctrl-C of the monitor leave nothing of a task with
// sessions behind, also if its supervisor is stopped.
func TestSupervisedMonitorDies(t *testing.T) {
	path, err := supervisorPath()
	check(t, err)
	for _, end := range []struct {
		signal  unix.Signal
		stopped bool
	}{{unix.SIGKILL, false}, {unix.SIGINT, false}, {unix.SIGKILL, true}} {
		monitor := exec.Command("/proc/self/exe")
		monitor.Env = append(os.Environ(), supervisorVariable+"="+path, monitorMarker+"="+victim(t)+" serve-for-ever")
		monitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		check(t, monitor.Start())
		var processes []int
		waiting.Until(t, "a worker waits", func() bool {
			processes = members(t, monitor.Process.Pid)
			return len(processes) >= 4 // monitor, supervisor, program, worker
		})
		if end.stopped {
			for _, supervisor := range childrenOf(monitor.Process.Pid) {
				check(t, unix.Kill(supervisor, unix.SIGSTOP))
			}
		}
		check(t, unix.Kill(-monitor.Process.Pid, end.signal))
		_ = monitor.Wait()
		waiting.Until(t, "all processes are gone", func() bool { return !alive(processes) })
	}
}
