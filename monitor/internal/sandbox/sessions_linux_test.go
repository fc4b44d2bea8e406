// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// meetings are ways to bring two users together, and the calls that are refused. The
// supervisor, of which nothing can be waived, refuses the one of those that is there
// without the protection as well.
var meetings = []struct {
	try   string
	calls []string
	again string // refused without the protection; "": the attempt then succeeds
}{
	{"serve-two-at-once", []string{"clone"}, "accept4"},
	{"serve-in-fork-of-worker", []string{"clone"}, "accept4"},
	{"overhear-memory 0", []string{"clone"}, ""},
	{fmt.Sprint("overhear-memory ", unix.CLONE_VFORK), []string{"clone"}, ""},
	{"overhear-descriptor", []string{"clone"}, ""},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_FS), []string{"clone"}, ""},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_SYSVSEM), []string{"clone"}, ""},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_IO), []string{"clone"}, ""},
	{fmt.Sprint("serve-in-clone ", unix.CLONE_VFORK), []string{"clone"}, ""},
}

// sharings are ways in which the workers of a program could share something, the
// protection that prevents each, and how it fails.
var sharings = []attack{
	{"share-memory anonymous", plan.NothingShared, unix.EPERM},
	{"share-memory table", plan.NothingShared, unix.EPERM},
	{"share-memory device /dev/zero", plan.NothingShared, unix.EPERM},
	{"share-memory file $W/old.txt", plan.NothingShared, unix.EPERM},
	{"share-memory validated $W/old.txt", plan.NothingShared, unix.EPERM},
	{"share-descriptor pipe", plan.NothingShared, unix.EPERM},
	{"share-descriptor socketpair", plan.NothingShared, unix.EPERM},
	{"share-descriptor eventfd", plan.NothingShared, unix.EPERM},
	{"share-descriptor offset $G/allowed.txt", plan.NothingShared, unix.EPERM},
	{"share-descriptor pipe-in-place 0", plan.ReservedNumbers, unix.EPERM},
	{"share-descriptor pipe-in-place 16", plan.ReservedNumbers, unix.EPERM},
	{"share-descriptor table-offset", plan.NothingShared, unix.ESPIPE},
	{"share-descriptor table-read", plan.NothingShared, unix.EACCES},
	{"share-descriptor rollback-read", plan.NothingShared, unix.EACCES},
	{"share-descriptor flags 1", plan.NothingShared, unix.EPERM},
	{"share-signal process", plan.NothingShared, unix.EPERM},
	{"share-signal thread", plan.NothingShared, unix.EPERM},
	{"share-signal any-thread", plan.NothingShared, unix.EPERM},
	{"share-signal queue", plan.NothingShared, unix.EPERM},
	{"share-signal queue-thread", plan.NothingShared, unix.EPERM},
	{"share-signal group", plan.NothingShared, unix.EPERM},
	{"share-signal everybody", plan.NothingShared, unix.EPERM},
	{"share-signal all", plan.NothingShared, unix.EPERM},
	{"share-signal worker 10", plan.NothingShared, unix.EPERM}, // SIGUSR1
	{"share-signal worker 15", plan.NothingShared, unix.EPERM},
	{"share-signal worker 9", plan.NothingShared, unix.EPERM},
}

// servingWorld is a world in which two users have connected.
func servingWorld(t *testing.T, try string) (Spec, *scripted) {
	t.Helper()
	spec, decider := world(t, try)
	sessions := newSessions(t, 2)
	spec.Serving, spec.Sessions, spec.SessionsPerWorker = true, sessions, 1000
	table, err := os.Open(filepath.Join(spec.Perimeter[0].Path, "allowed.txt"))
	check(t, err)
	t.Cleanup(func() { table.Close() })
	spec.Descriptors[wire.FDClasses] = table
	for user := range 2 {
		sessions.connect(t, fmt.Sprint("user ", user+1))
	}
	return spec, decider
}

// TestUsersDoNotMeet: no two users meet in one process, in memory or at a descriptor,
// and the attempt is recorded.
func TestUsersDoNotMeet(t *testing.T) {
	for _, meeting := range meetings {
		t.Run(meeting.try, func(t *testing.T) {
			spec, decider := servingWorld(t, meeting.try)
			refuses(t, spec, decider, meeting.calls...)
			spec, decider = servingWorld(t, meeting.try)
			spec.waived = plan.SeparateWorkers
			if meeting.again != "" {
				refuses(t, spec, decider, meeting.again)
			} else if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("without the protection: errno %v, %v %s", errno, got.err, got.output)
			}
		})
	}
	// The supervisor alone prevents these. Twins are in TestWorkersServe.
	for _, try := range []string{"serve-two-in-turn", "serve-itself"} {
		spec, decider := servingWorld(t, try)
		refuses(t, spec, decider, "accept4")
	}
}

// refuses checks that an attempt fails with EPERM, and that one of the calls was reported.
func refuses(t *testing.T, spec Spec, decider *scripted, calls ...string) {
	t.Helper()
	if succeeded, errno, got := attempt(t, spec, decider); succeeded || errno != unix.EPERM {
		t.Errorf("with protections %#x off: succeeded %v, errno %v: %v %s", spec.waived, succeeded, errno, got.err, got.output)
	}
	if !slices.ContainsFunc(calls, decider.heard) {
		t.Errorf("with protections %#x off: refused without a word", spec.waived)
	}
}

// TestWorkersServe is the allowed twin: what the program forks has one user.
func TestWorkersServe(t *testing.T) {
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
	const several = 2 // so that the task has the roll-back code
	for _, sharing := range sharings {
		t.Run(sharing.try, func(t *testing.T) {
			spec, decider := servingWorld(t, sharing.try)
			spec.SessionsPerWorker = several
			if succeeded, errno, got := attempt(t, spec, decider); succeeded || errno != sharing.errno {
				t.Errorf("succeeded %v, errno %v, want %v: %v %s", succeeded, errno, sharing.errno, got.err, got.output)
			}
			spec, decider = servingWorld(t, sharing.try)
			spec.waived, spec.SessionsPerWorker = sharing.off, several
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("without the protection: errno %v, %v %s", errno, got.err, got.output)
			}
		})
	}
}

// TestWhatWorkersDoToThemselves is the allowed twin, with what a program does to itself.
func TestWhatWorkersDoToThemselves(t *testing.T) {
	for _, try := range []string{"share-signal self", "closefrom", "set-flags 7"} {
		spec, decider := servingWorld(t, try)
		if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
			t.Errorf("%s: errno %v, %v %s, refused %v", try, errno, got.err, got.output, decider.refused)
		}
	}
}
