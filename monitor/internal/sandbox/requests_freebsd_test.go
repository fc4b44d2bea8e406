// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

const secretText = "secret"

// TestAnswers: an open by path is decided by the real path of the file that the monitor
// has pinned, and the descriptor in the answer allows only what was decided.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		try   string
		path  string // that is decided on
		errno unix.Errno
	}{
		{"ask $S/secret.txt", "$S/secret.txt", unix.EACCES},
		{"ask $G/escape", "$S/secret.txt", unix.EACCES},
		{"ask ../secret/link", "$S/secret.txt", unix.EACCES},
		{"ask /shai/view/../secret/secret.txt", "$S/secret.txt", unix.EACCES},
		{"ask-from 16 ../secret/secret.txt", "$S/secret.txt", unix.EACCES},
		{"ask-from 16 escape", "$S/secret.txt", unix.EACCES},
		{"ask-from 18 secret.txt", "$S/secret.txt", unix.EACCES},
		{"ask $S/secret.txt 0x400000", "$S/secret.txt", unix.EACCES},
		{"ask $G/allowed.txt 1", "$G/allowed.txt", unix.EACCES},
		{"ask $G/new.txt 0x201", "$G/new.txt", unix.EACCES},
		{"ask $G/allowed.txt", "$G/allowed.txt", 0},
		{"ask-from 16 link", "$G/allowed.txt", 0},
		{"ask-write $G/allowed.txt", "$G/allowed.txt", unix.ENOTCAPABLE},
		{"ask-list $G", "", unix.ENOTCAPABLE}, // its names are the program's, and nothing else
		{"ask-forked $G", "$G", 0},
		{"ask-list $S", "$S", unix.EACCES},
		{"ask $G 0x400000", "", 0}, // to look at
		{"ask $R/allowed.txt", "", 0},
		{"ask $R/linked.txt", "$R/linked.txt", unix.EACCES},
		{"ask-list $R", "", unix.ENOTCAPABLE},
		{"ask $W/old.txt 0xa01", "", unix.EEXIST},
		{"ask $G/missing.txt", "", unix.ENOENT},
		{"ask $G/allowed.txt/x", "", unix.ENOTDIR},
		{"ask $G/allowed.txt 0x40000", "", unix.EINVAL}, // O_EXEC
	} {
		t.Run(test.try, func(t *testing.T) {
			g := newGround(t)
			spec, decider := worldOn(t, g, test.try)
			succeeded, errno, got := attempt(t, spec, decider)
			if succeeded != (test.errno == 0) || errno != test.errno {
				t.Errorf("failed with %v, want %v: %v %s", errno, test.errno, got.err, got.output)
			}
			if strings.Contains(got.output, secretText) {
				t.Errorf("the secret came out: %q", got.output)
			}
			var paths []string
			for _, open := range decider.opens {
				paths = append(paths, open.Path)
			}
			want := g.expand(strings.Fields(test.path))
			if fmt.Sprint(paths) != fmt.Sprint(want) {
				t.Errorf("decided on %v, want %v", paths, want)
			}
		})
	}
}

// TestAsker: the process that asks is the one that sent the record, which the kernel
// says; a fork is not the program.
func TestAsker(t *testing.T) {
	for try, program := range map[string]bool{"ask $S/secret.txt": true, "ask-forked $S/secret.txt": false} {
		spec, _ := world(t, try)
		asked := make(chan OpenRequest, 1)
		decider := &scripted{open: func(request OpenRequest) Verdict {
			asked <- request
			return Verdict{}
		}}
		if succeeded, _, got := attempt(t, spec, decider); !succeeded {
			t.Errorf("%s: %v %s", try, got.err, got.output)
			continue
		}
		request := <-asked
		if (request.PID == request.Task.PID()) != program || request.PID <= 0 {
			t.Errorf("%s: process %d asked, the program is %d", try, request.PID, request.Task.PID())
		}
	}
}

// TestCheckedWrites: a checked number is written to on what the answer brings, and that
// comes with a decision only.
func TestCheckedWrites(t *testing.T) {
	for _, test := range []struct {
		try     string
		allowed bool
		errno   unix.Errno
	}{
		{"ask-send 8", true, 0}, {"ask-send 128", true, 0},
		{"ask-send 8", false, unix.EPERM}, {"ask-send 128", false, unix.EPERM},
		{"ask-send 7", true, unix.EACCES}, {"ask-send 129", true, unix.EBADF},
	} {
		t.Run(fmt.Sprint(test.try, " ", test.allowed), func(t *testing.T) {
			spec, decider := world(t, test.try)
			decider.send = func(int) Verdict {
				if test.allowed {
					return Verdict{}
				}
				return Verdict{Errno: unix.EPERM}
			}
			if _, errno, got := attempt(t, spec, decider); errno != test.errno {
				t.Errorf("failed with %v, want %v: %v %s", errno, test.errno, got.err, got.output)
			}
		})
	}
}

// TestTraps: refused calls are signalled once a task has asked for it. The victim's
// run-time system dies of the signal.
func TestTraps(t *testing.T) {
	for try, want := range map[string]string{"trap unasked $S/secret.txt": "exited with status 1",
		"trap asked $S/secret.txt": "exited with status 2"} {
		spec, decider := world(t, try)
		got := run(t, spec, decider)
		if got.err == nil || got.err.Error() != want ||
			strings.Contains(got.output, "SIGTRAP") != strings.Contains(try, " asked") {
			t.Errorf("%s: ended with %v, want %s:\n%s", try, got.err, want, got.output)
		}
	}
}

// TestNoRoomForDescriptors: what a task cannot take is closed, and the monitor keeps
// nothing.
func TestNoRoomForDescriptors(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		spec, decider := world(t, "exhaust $G/allowed.txt")
		if _, errno, got := attempt(t, spec, decider); errno != unix.EMFILE {
			t.Errorf("errno %v, want EMFILE: %v %s", errno, got.err, got.output)
		}
	})
}

// begun is a session that a test has begun.
type begun struct {
	worker Worker
	client *os.File
}

// sessionsOf lets a victim serve sessions, and gives them to the test.
func sessionsOf(t *testing.T, spec *Spec, decider *scripted) (sessions <-chan begun, next *os.File) {
	t.Helper()
	read, next, err := os.Pipe()
	check(t, err)
	spec.Descriptors[wire.FDPipe] = read
	t.Cleanup(func() { read.Close(); next.Close() })
	list := make(chan begun, 8)
	decider.accept = func(_ context.Context, _ Task, worker Worker) (*Accepted, error) {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		list <- begun{worker, os.NewFile(uintptr(ends[0]), "client")}
		return &Accepted{Connection: wire.FDConnection,
			Descriptors: map[int]*os.File{wire.FDConnection: os.NewFile(uintptr(ends[1]), "connection")}}, nil
	}
	return list, next
}

// TestSessions: a process serves one session after the other; each is over when its
// socket is closed, and the process lives on.
func TestSessions(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		spec, decider := world(t, "serve 3")
		sessions, next := sessionsOf(t, &spec, decider)
		task, err := newBackend(t).Start(t.Context(), spec, decider)
		check(t, err)
		for range 3 {
			s := <-sessions
			text, err := io.ReadAll(s.client)
			if want := fmt.Sprint("hello from ", task.PID()); string(text) != want || err != nil {
				t.Errorf("%q, %v, want %q", text, err, want)
			}
			s.client.Close()
			select {
			case <-s.worker.Gone():
				t.Error("the session is over before its end")
			default:
			}
			_, err = next.Write([]byte("x"))
			check(t, err)
			<-s.worker.Gone()
			s.worker.Kill() // too late: must hurt nobody
		}
		<-task.Done()
		if task.Err() != nil {
			t.Error(task.Err())
		}
	})
}

// TestOverlappingSessions: a process has one session at a time.
func TestOverlappingSessions(t *testing.T) {
	spec, decider := world(t, "serve-overlapping")
	sessions, _ := sessionsOf(t, &spec, decider)
	handOver := decider.accept
	var first Worker
	decider.accept = func(ctx context.Context, task Task, worker Worker) (*Accepted, error) {
		if first != nil {
			select {
			case <-first.Gone():
			default:
				t.Error("the second session begins before the first is over")
			}
		}
		first = worker
		return handOver(ctx, task, worker)
	}
	if succeeded, _, got := attempt(t, spec, decider); !succeeded {
		t.Errorf("%v %s", got.err, got.output)
	}
	for range 2 {
		(<-sessions).client.Close()
	}
}

// TestKilledSession: a worker that is killed is gone, with its process.
func TestKilledSession(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		spec, decider := world(t, "serve 1")
		sessions, _ := sessionsOf(t, &spec, decider)
		task, err := newBackend(t).Start(t.Context(), spec, decider)
		check(t, err)
		s := <-sessions
		if _, err := io.ReadAll(s.client); err != nil {
			t.Error(err)
		}
		s.client.Close()
		s.worker.Kill()
		<-s.worker.Gone()
		<-task.Done()
		if task.Err() == nil || task.Err().Error() != "killed by SIGKILL" {
			t.Errorf("ended with %v", task.Err())
		}
	})
}

// TestLeftByASession: processes that a session forked end with the session. A task that
// serves no users may leave processes.
func TestLeftByASession(t *testing.T) {
	for serving, left := range map[bool]int{true: 1, false: 2} {
		spec, decider := world(t, "serve-leaving")
		spec.Serving, spec.waived = serving, plan.NothingShared // Go's program has threads
		sessions, _ := sessionsOf(t, &spec, decider)
		task, err := newBackend(t).Start(t.Context(), spec, decider)
		check(t, err)
		s := <-sessions
		s.client.Close()
		<-s.worker.Gone()
		keeper, err := ParentOf(task.PID())
		check(t, err)
		if found := members(t, keeper); len(found) != 1+left { // and the keeper
			t.Errorf("serving %v: %d processes are left, want %d", serving, len(found)-1, left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, task.Stop(ctx))
	}
}

// TestNoSession: a worker for which the monitor has no session is told so.
func TestNoSession(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		spec, decider := world(t, "serve 1")
		if _, errno, got := attempt(t, spec, decider); errno != unix.ECONNABORTED {
			t.Errorf("errno %v: %v %s", errno, got.err, got.output)
		}
	})
}

// TestOddRequests: what is no request gets no answer, and is reported.
func TestOddRequests(t *testing.T) {
	spec, decider := world(t, "write 10")
	if succeeded, _, got := attempt(t, spec, decider); !succeeded {
		t.Errorf("%v %s", got.err, got.output)
	}
	waiting.Until(t, "the request is reported", func() bool { return decider.heard("request") })
}
