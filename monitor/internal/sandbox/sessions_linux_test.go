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
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
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

// sharings are ways in which the workers of a program could share something, the
// protection that prevents each, and how it fails.
var sharings = []attack{
	{"share-memory anonymous", nothingShared, unix.EPERM},
	{"share-memory table", nothingShared, unix.EPERM},
	{"share-memory device /dev/zero", nothingShared, unix.EPERM},
	{"share-memory file $W/old.txt", nothingShared, unix.EPERM},
	{"share-memory validated $W/old.txt", nothingShared, unix.EPERM},
	{"share-descriptor pipe", nothingShared, unix.EPERM},
	{"share-descriptor socketpair", nothingShared, unix.EPERM},
	{"share-descriptor eventfd", nothingShared, unix.EPERM},
	{"share-descriptor offset $G/allowed.txt", nothingShared, unix.EPERM},
	{"share-descriptor pipe-in-place 0", reservedNumbers, unix.EPERM},
	{"share-descriptor pipe-in-place 16", reservedNumbers, unix.EPERM},
	{"share-descriptor table-offset", nothingShared, unix.ESPIPE},
	{"share-descriptor table-read", nothingShared, unix.EACCES},
	{"share-descriptor flags 1", nothingShared, unix.EPERM},
	{"share-signal process", nothingShared, unix.EPERM},
	{"share-signal thread", nothingShared, unix.EPERM},
	{"share-signal any-thread", nothingShared, unix.EPERM},
	{"share-signal queue", nothingShared, unix.EPERM},
	{"share-signal queue-thread", nothingShared, unix.EPERM},
	{"share-signal group", nothingShared, unix.EPERM},
	{"share-signal everybody", nothingShared, unix.EPERM},
	{"share-signal worker 10", nothingShared, unix.EPERM}, // SIGUSR1
}

// servingWorld is a world in which users connect as often as somebody accepts.
func servingWorld(t *testing.T, try string) (Spec, *scripted) {
	t.Helper()
	spec, decider := world(t, try)
	spec.Serving = true
	table, err := os.Open(filepath.Join(spec.Perimeter[0].Path, "allowed.txt"))
	check(t, err)
	t.Cleanup(func() { table.Close() })
	spec.Descriptors[wire.FDClasses] = table
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

// TestWorkersShareNothing: what a worker leaves behind, no other process of the task finds.
func TestWorkersShareNothing(t *testing.T) {
	for _, sharing := range sharings {
		t.Run(sharing.try, func(t *testing.T) {
			spec, decider := servingWorld(t, sharing.try)
			if succeeded, errno, got := attempt(t, spec, decider); succeeded || errno != sharing.errno {
				t.Errorf("succeeded %v, errno %v, want %v: %v %s", succeeded, errno, sharing.errno, got.err, got.output)
			}
			spec, decider = servingWorld(t, sharing.try)
			spec.waived = sharing.off
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("without the protection: errno %v, %v %s", errno, got.err, got.output)
			}
		})
	}
}

// TestProgramsEndTheirWorkers is the allowed twin, with what a worker does to itself.
func TestProgramsEndTheirWorkers(t *testing.T) {
	for _, try := range []string{"share-signal worker 15", "share-signal worker 9", "share-signal self", "closefrom",
		"set-flags 7"} {
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
