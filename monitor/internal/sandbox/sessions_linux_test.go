// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
)

// meetings are ways to bring two users together. Each of the protections prevents this by
// itself, by refusing one of the calls.
var meetings = []struct {
	try   string
	lines []protection
	calls []string
}{
	{"serve-two-at-once", []protection{separateWorkers, oneSession}, []string{"clone", "accept4"}},
	{"serve-two-in-turn", []protection{oneSession}, []string{"accept4"}},
	{"serve-in-fork-of-worker", []protection{separateWorkers}, []string{"fork", "clone"}},
	{"overhear-memory", []protection{separateWorkers}, []string{"clone"}},
	{"overhear-vfork", []protection{separateWorkers}, []string{"vfork"}},
	{"overhear-descriptor", []protection{separateWorkers}, []string{"clone"}},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_FS), []protection{separateWorkers}, []string{"clone"}},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_SYSVSEM), []protection{separateWorkers}, []string{"clone"}},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_IO), []protection{separateWorkers}, []string{"clone"}},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_VFORK), []protection{separateWorkers}, []string{"clone"}},
}

// servingWorld is a world in which users connect as often as somebody accepts.
func servingWorld(t *testing.T, try string) (Spec, *scripted) {
	t.Helper()
	spec, decider := world(t, try)
	spec.Serving = true
	var users atomic.Int32
	decider.accept = func(context.Context, Task, Worker) (*Accepted, error) {
		accepted, client, server := session(t)
		t.Cleanup(func() { client.Close(); server.Close() })
		_, err := fmt.Fprintf(client, "user %d", users.Add(1))
		return accepted, err
	}
	return spec, decider
}

// TestUsersDoNotMeet: no two users meet in one process, in memory or at a descriptor,
// and the attempt is recorded. Without the protections they would.
func TestUsersDoNotMeet(t *testing.T) {
	for _, meeting := range meetings {
		t.Run(meeting.try, func(t *testing.T) {
			var every protection
			for _, line := range meeting.lines {
				every |= line
			}
			for _, line := range meeting.lines {
				spec, decider := servingWorld(t, meeting.try)
				spec.waived = every &^ line
				if succeeded, errno, got := attempt(t, spec, decider); succeeded || errno != unix.EPERM {
					t.Errorf("with protection %#x: succeeded %v, errno %v: %v %s", line, succeeded, errno, got.err,
						got.output)
				}
				heard := false
				for _, call := range meeting.calls {
					heard = heard || decider.heard(call)
				}
				if !heard {
					t.Errorf("with protection %#x: refused without a word", line)
				}
			}
			spec, decider := servingWorld(t, meeting.try)
			spec.waived = every
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("without the protections: errno %v, %v %s", errno, got.err, got.output)
			}
		})
	}
}

// TestForksAreCopies: what a program that serves users forks shares nothing with it, has
// its parent, and is in the same namespaces.
func TestForksAreCopies(t *testing.T) {
	fork := func(flags uint64) error {
		r := &request{notification: notification{PID: 1, Arguments: [6]uint64{flags}}, call: call{name: "clone"},
			supervisor: &supervisor{arbiter: arbiter{task: &task{pid: 1}}, listener: -1}}
		return r.fork()
	}
	const forCLibraries = unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID
	for bit := range 32 {
		flag := uint64(1) << bit
		isCopy := flag <= 0xff || flag&forCLibraries != 0
		if err := fork(uint64(unix.SIGCHLD) | flag); (err == nil) != isCopy {
			t.Errorf("clone with flag %#x: %v, want it to be allowed: %v", flag, err, isCopy)
		}
	}
}

// TestWorkersServeOneAfterTheOther is the allowed twin: what the program forks has one
// user each.
func TestWorkersServeOneAfterTheOther(t *testing.T) {
	for _, flags := range []int{0, unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID} {
		try := fmt.Sprint("serve-in-clone ", flags)
		spec, decider := servingWorld(t, try)
		if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
			t.Errorf("%s: errno %v, %v %s, refused %v", try, errno, got.err, got.output, decider.refused)
		}
	}
}

// TestReservation: a process is reserved until it has ended, or has no session. A number
// that the system has given to another process is that one's.
func TestReservation(t *testing.T) {
	sleeper := func() *exec.Cmd {
		command := exec.Command("/bin/sleep", "1000")
		check(t, command.Start())
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		return command
	}
	first, second := sleeper(), sleeper()
	workers := reservations{held: map[int]*worker{}}
	reserved, err := workers.reserve(first.Process.Pid)
	check(t, err)
	if _, err := workers.reserve(first.Process.Pid); !errors.Is(err, errReserved) {
		t.Errorf("a reserved process: %v", err)
	}
	reserved.release()
	if reserved, err = workers.reserve(first.Process.Pid); err != nil {
		t.Fatalf("a process without a session: %v", err)
	}
	// As if the number of a process that has ended were the second one's now, and the
	// end of the first had not been noticed yet.
	check(t, first.Process.Kill())
	<-reserved.Gone()
	workers.mutex.Lock()
	workers.held[second.Process.Pid] = reserved
	workers.mutex.Unlock()
	if _, err := workers.reserve(second.Process.Pid); err != nil {
		t.Errorf("a number that was another's: %v", err)
	}
	check(t, second.Process.Kill())
	waiting.Until(t, "nobody is reserved any more", func() bool {
		workers.mutex.Lock()
		defer workers.mutex.Unlock()
		return len(workers.held) == 0
	})
	if _, err := workers.reserve(second.Process.Pid); err != nil && !errors.Is(err, errGone) {
		t.Errorf("a process that has ended: %v", err)
	}
}
