// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// twoTasks is a pipeline of two tasks. The victim makes a file that only its user may read, and
// waits. The attacker reads the file, and tries to reach the victim's process, of which it is told
// the number.
const twoTasks = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "policy open { read :- true. update :- true. }"}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: victim}
spec:
  command:
    - /usr/bin/python3
    - -Ic
    - |
      import os, signal
      number = os.open("/shared/private", os.O_WRONLY | os.O_CREAT, 0o600)
      os.write(number, b"for the attacker")
      os.close(number)
      os.rename("/shared/private", "/shared/given")
      print("ready", flush=True)
      signal.pause()
  runtimeName: system
  environment: [{name: PASSWORD, value: "open sesame"}]
  taint: {name: open}
  writes: [shared]
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: attacker}
spec:
  run: Once
  command:
    - /usr/bin/python3
    - -Ic
    - |
      import ctypes, errno, os, resource
      victim = int(open("/shared/number").read())
      libc = ctypes.CDLL(None, use_errno=True)
      def call(*arguments):
          if libc.syscall(*arguments) < 0:
              raise OSError(ctypes.get_errno(), "call")
      PTRACE_SEIZE, PTRACE, PROCESS_VM_READV, PIDFD_SEND_SIGNAL = 0x4206, 101, 310, 424
      buffer = ctypes.create_string_buffer(1)
      here, there = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 1), (ctypes.c_ulong * 2)(0, 1)
      attempts = {
          "own": lambda: os.kill(os.getpid(), 0),
          "signal": lambda: os.kill(victim, 0),
          "pidfd": lambda: call(PIDFD_SEND_SIGNAL, os.pidfd_open(victim), 0, None, 0),
          "trace": lambda: call(PTRACE, PTRACE_SEIZE, victim, 0, 0),
          "memory": lambda: call(PROCESS_VM_READV, victim, here, 1, there, 1, ctypes.c_ulong(0)),
          "memory file": lambda: open(f"/proc/{victim}/mem", "rb").close(),
          "environment": lambda: open(f"/proc/{victim}/environ").read(),
          "descriptors": lambda: os.listdir(f"/proc/{victim}/fd"),
          "priority": lambda: os.setpriority(os.PRIO_PROCESS, victim, 1),
          "limits": lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE),
      }
      with open("/shared/report", "w") as out:
          print("given", open("/shared/given").read(), file=out)
          for name, attempt in attempts.items():
              try:
                  attempt()
                  print(name, "reached", sep=": ", file=out)
              except OSError as error:  # nothing is at address 0 of the victim
                  print(name, "reached" if error.errno == errno.EFAULT else "refused", sep=": ", file=out)
  runtimeName: system
  taint: {name: open}
  writes: [shared]
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: pair}
spec:
  mode: MODE
  tasks: [victim, attacker]
  conduits:
    - {name: shared, kind: file, directory: true, paths: [{path: "/shared/**", policy: {name: open}}]}
`

// attacked runs the two tasks and returns what the attacker has reached, by the name of the attempt.
func (s *stack) attacked() map[string]bool {
	s.t.Helper()
	victim, err := s.monitor.StartTask(s.t.Context(), "pair", "victim")
	s.must(err)
	shared := filepath.Join(s.options.Data, "shared")
	waiting.Until(s.t, "the victim has made its file", func() bool {
		_, err := os.Stat(filepath.Join(shared, "given"))
		return err == nil
	})
	s.must(os.WriteFile(filepath.Join(shared, "number"), []byte(strconv.Itoa(victim.PID)), 0o644))
	_, err = s.monitor.StartTask(s.t.Context(), "pair", "attacker")
	s.must(err)
	status, err := s.monitor.WaitTask(s.t.Context(), "pair", "attacker")
	s.must(err)
	text, err := os.ReadFile(filepath.Join(shared, "report"))
	if err != nil || status.State != "Succeeded" || !strings.HasPrefix(string(text), "given for the attacker\n") {
		s.t.Fatalf("%s %s: %q, %v", status.State, status.Message, text, err)
	}
	reached := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, outcome, _ := strings.Cut(strings.TrimSpace(line), ": "); outcome != "" {
			reached[name] = outcome == "reached"
		}
	}
	return reached
}

// Tasks of a pipeline reach none of each other's processes, in any mode, and each reads what
// another has made for its own user. In mode baseline, where no filter refuses the attempts, this is
// because they are different users.
func TestTasksOfAPipelineAreSeparate(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only the superuser can start tasks as other users")
	}
	for _, mode := range []string{"shai", "dynamic", "audit", "baseline", "baseline, one user"} {
		t.Run(mode, func(t *testing.T) {
			s := newStack(t)
			given, isShared := strings.CutSuffix(mode, ", one user")
			s.manifests = map[string]string{"pair.yaml": strings.ReplaceAll(twoTasks, "MODE", given)}
			s.open()
			if isShared {
				s.monitor.separatesTasks = func() bool { return false }
			} else if !s.monitor.separatesTasks() {
				t.Skip("the file system of the test's data has no id-mapped mounts")
			}
			s.apply()
			for name, reached := range s.attacked() {
				if want := isShared || name == "own"; reached != want {
					t.Errorf("%s: reached %v, want %v", name, reached, want)
				}
			}
			s.checkOwners(isShared)
		})
	}
}

// A session opens a document that only the pipeline's user may read, as one that a task has made:
// natively, by its number, and by its path, on which the monitor decides. A document that only a
// third user may read stays closed. Its worker is neither this user nor any other task's.
func TestSessionsOwnThePipelinesDocuments(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only the superuser can start tasks as other users")
	}
	const mine, foreign = "/corpus/private/alice/1.txt", "/corpus/private/alice/2.txt"
	s := newStack(t)
	s.document(mine)
	s.document(foreign)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.open()
	if !s.monitor.separatesTasks() {
		t.Skip("the file system of the test's data has no id-mapped mounts")
	}
	s.apply()
	user := s.pipeline().User()
	for name, owner := range map[string]uint32{mine: user.ID, foreign: user.ID + 1} { // another task's
		path := filepath.Join(s.options.Data, name)
		s.must(os.Chown(path, int(owner), 0))
		s.must(os.Chmod(path, 0o600))
	}
	s.analyze()
	s.startWorkers()
	alice := s.login("alice", "127.0.1.1")
	if !alice.natively(mine) || alice.natively(foreign) {
		t.Errorf("natively: its own %v, a foreign one %v", alice.natively(mine), alice.natively(foreign))
	}
	for name, want := range map[string]string{mine: "text " + mine, foreign: "error EACCES"} {
		if got := alice.must(fmt.Sprintf("read %d", s.id(name))); !strings.HasPrefix(got, want) {
			t.Errorf("%s by its number: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]bool{mine: true, foreign: false} {
		got := alice.must("native " + filepath.Join(s.options.Data, name))
		if isOpen := !strings.HasPrefix(got, "error "); isOpen != want {
			t.Errorf("%s by its path: %s", name, got)
		}
	}
	worker := s.pipeline().Task("worker").Status()
	if worker.User == user.ID || worker.User == 0 {
		t.Errorf("the task with sessions is user %d, the pipeline %d", worker.User, user.ID)
	}
}

// checkOwners checks that the files of the two tasks belong to the pipeline's user, and that the
// tasks run as others, unless they share it.
func (s *stack) checkOwners(isShared bool) {
	s.t.Helper()
	p := s.monitor.pipelines["pair"]
	users := map[uint32]bool{p.User().ID: true}
	for _, task := range p.Status().Tasks {
		users[task.User] = true
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", task.PID))
		if task.PID != 0 && (err != nil || !strings.Contains(string(text), fmt.Sprintf("Uid:\t%d\t", task.User))) {
			s.t.Errorf("%s does not run as user %d: %v", task.Name, task.User, err)
		}
	}
	if len(users) == 1 != isShared || !isShared && len(users) != 3 {
		s.t.Errorf("the pipeline and its two tasks have the users %v", users)
	}
	for _, name := range []string{"given", "report"} {
		info, err := os.Stat(filepath.Join(s.options.Data, "shared", name))
		s.must(err)
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != p.User().ID || stat.Gid != p.User().Group {
			s.t.Errorf("%s belongs to user %d and group %d, not to the pipeline's %d", name, stat.Uid, stat.Gid, p.User().ID)
		}
	}
}
