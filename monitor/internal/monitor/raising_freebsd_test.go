// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
)

// TestRaisingOnFreeBSD tells what stands against a raise here, and not on Linux: a task may fork,
// send descriptors to itself, and put anything at a reserved number.
func TestRaisingOnFreeBSD(t *testing.T) {
	const (
		raised  = "raised"
		changed = "opened or closed something else"
		holds   = "error EBUSY registration as personal: refused by the monitor: the task holds "
	)
	for name, script := range map[string][][2]string{
		"a child": {{"child", "forked"}, {"raise personal close", "the task has other processes"}, {"reap", "reaped"},
			{"raise personal close", raised}},
		"a descriptor on its way": {{"open public wc /public/notice", "opened"}, {"pass public", "passed"},
			{"close public", "closed"}, {"raise personal", holds}, {"raise personal close", raised},
			{"take public", "error ENOTSOCK"}},
		"a pipe of its own": {{"pipe mine", "opened"}, {"raise personal close", raised}, {"write mine", "error EBADF"}},
		"a copy of a pipe": {{"number printed 32", "opened"}, {"dup printed copy", "opened"},
			{"raise personal close", raised}, {"write copy", "error EBADF"}},
		"a copy that it may keep": {{"number told 96", "opened"}, {"dup told copy", "opened"},
			{"raise personal close", raised}, {"write copy", "written"}},
		"at a reserved number": {{"open public wc /public/notice", "opened"}, {"at public 40", "opened"},
			{"close public", "closed"}, {"number hidden 40", "opened"}, {"write hidden", "written"},
			{"raise personal", "/public/notice (descriptor 40)"}, {"raise personal close", raised},
			{"write hidden", "error EBADF"}},
		"a mapping to read": {{"open public wc /public/notice", "opened"}, {"size public", "sized"},
			{"close public", "closed"}, {"open notice r /public/notice", "opened"}, {"map notice", "mapped"},
			{"raise personal close", "mapping of /public/notice"}, {"unmap notice", "unmapped"},
			{"raise personal close", raised}},
		// What a process places is verified.
		"nothing is placed": {{"number printed 32", "opened"}, {"cheat personal none", changed},
			{"write printed", "written"}, {"raise personal close", raised}, {"write printed", "error EBADF"}},
		"more is opened":                 {{"cheat personal more", changed}, {"raise personal close", raised}},
		"something on its way to itself": {{"cheat personal early", "something waits in the socket"}},
		"a write that goes on": {{"open public wc /public/notice", "opened"}, {"later public", "begun"},
			{"close public", "closed"}, {"raise personal close", "aio(4)"}, {"finish", "written"},
			{"raise personal close", raised}},
		"many descriptors": {{"open public wc /public/notice", "opened"}, {"copies public 2000", "2000 copies"},
			{"raise personal close", raised}, {"write public", "error EBADF"}},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []string
			for _, line := range script {
				commands = append(commands, line[0])
			}
			s := newRaising(t)
			printed := strings.Split(s.drafts("shai", commands...), "\n")
			for i, line := range script {
				if i >= len(printed) || !strings.Contains(printed[i], line[1]) {
					t.Fatalf("%q: want %q; it printed %q", line[0], line[1], printed)
				}
			}
		})
	}
}

// What another context of the process holds cannot be seen.
func TestContextsKeepATaintFromRising(t *testing.T) {
	printed := newRaising(t).drafts("shai", "context made", "raise personal close")
	want := []string{"error ENOENT", "raised"}
	if _, err := unix.SysctlUint32("shai.version"); err == nil {
		want = []string{"opened", "the task has contexts"}
	}
	for i, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		if i >= len(want) || !strings.Contains(line, want[i]) {
			t.Fatalf("it printed %q; want %q", printed, want)
		}
	}
}

// disturbed signals to the task while it is examined.
type disturbed struct {
	sandbox.Raising
	t    *testing.T
	task func() int
}

func (d disturbed) Receive(record []byte, caller sandbox.Stopped) error {
	return d.Raising.Receive(record, disturbedProcess{caller, d})
}

type disturbedProcess struct {
	sandbox.Stopped
	disturbed
}

func (p disturbedProcess) Writable() ([]sandbox.Handle, error) {
	handles, err := p.Stopped.Writable()
	pid := p.task()
	for _, signal := range []unix.Signal{unix.SIGUSR1, unix.SIGCONT} {
		if err := unix.Kill(pid, signal); err != nil {
			p.t.Error(err)
		}
	}
	if state := stateOf(p.t, pid); state != stopped {
		p.t.Errorf("while it is examined its state is %d", state)
	}
	return handles, err
}

const stopped = 4 // SSTOP

func stateOf(t *testing.T, pid int) byte {
	t.Helper()
	entry, err := unix.SysctlRaw("kern.proc.pid", pid)
	if err != nil || len(entry) <= kinfoState || int(binary.NativeEndian.Uint32(entry[kinfoPID:])) != pid {
		t.Fatalf("process %d: %v", pid, errors.Join(err))
	}
	return entry[kinfoState]
}

// Nobody else makes the process go on, and it loses no signal.
func TestSignalsToAnExaminedTask(t *testing.T) {
	s := newRaising(t)
	s.raising = func(to sandbox.Raising) sandbox.Raising {
		return disturbed{to, t, func() int { return s.monitor.pipelines["raising"].Task("drafting").Status().PID }}
	}
	printed := s.drafts("shai", "count", "raise personal close", "counted")
	if printed != "counting\nraised\n1\n" {
		t.Errorf("it printed %q", printed)
	}
}
