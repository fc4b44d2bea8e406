// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// openDescriptors counts what this process has open.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(entries)
}

// TestRace: another thread rewrites the path all the time. The opened file is always the
// one that was decided on (trap 1).
func TestRace(t *testing.T) {
	spec, decider := world(t, "race $G/allowed.txt $S/secret.txt 2000")
	spec.Perimeter = nil // mediation alone
	succeeded, errno, got := attempt(t, spec, decider)
	if !succeeded || strings.Contains(got.output, "secret") {
		t.Errorf("succeeded %v, errno %v, the secret came out: %v", succeeded, errno,
			strings.Contains(got.output, "secret"))
	}
	if !strings.Contains(got.output, "allowed") {
		t.Error("nothing was opened")
	}
	asked := 0
	for _, open := range decider.opens {
		if strings.HasSuffix(open.Path, "secret.txt") {
			asked++
		}
	}
	if asked == 0 {
		t.Error("the other path was never seen: the test did not race")
	}
}

// TestNoRoomForDescriptor: injection fails with EMFILE, which is the task's
// answer, and the monitor keeps nothing (trap 2).
func TestNoRoomForDescriptor(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		spec, decider := world(t, "exhaust $G/allowed.txt")
		program := spec.Command
		spec.Command = append([]string{"/bin/sh", "-c", `ulimit -n 600; exec "$@"`, "sh"}, program...)
		spec.Runtime, spec.waived = runtimeOf(spec.Runtime...), plan.ExecRefusal
		if _, errno, got := attempt(t, spec, decider); errno != unix.EMFILE {
			t.Errorf("errno %v, want EMFILE: %v %s", errno, got.err, got.output)
		}
	})
}

// TestSignals: signals neither fail nor restart a call that the monitor is
// answering; it decides once (trap 9).
func TestSignals(t *testing.T) {
	spec, _ := world(t, "open-amid-signals $S/secret.txt")
	decider := &scripted{open: func(OpenRequest) Verdict {
		time.Sleep(50 * time.Millisecond) // many signals' worth
		return Verdict{}
	}}
	if succeeded, errno, got := attempt(t, spec, decider); !succeeded || len(decider.opens) != 1 {
		t.Errorf("succeeded %v, errno %v, asked %d times: %s", succeeded, errno, len(decider.opens), got.output)
	}
}

// TestSignalsToTheMonitor: signals to the monitor's own threads, such as those by which Go
// preempts goroutines, neither lose nor replace what a call gets.
func TestSignalsToTheMonitor(t *testing.T) {
	spec, decider := world(t, "open-often $G/allowed.txt 2000")
	spec.Perimeter = nil // mediation alone
	ended, often := make(chan struct{}), time.NewTicker(300*time.Microsecond)
	defer often.Stop()
	var storm sync.WaitGroup
	storm.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-often.C:
				signalThreads(t, unix.SIGURG)
			}
		}
	})
	succeeded, errno, got := attempt(t, spec, decider)
	close(ended)
	storm.Wait()
	if !succeeded {
		t.Errorf("errno %v: %v %s", errno, got.err, got.output)
	}
}

// TestWhatEndsSupervision: a poll that reports an error alone, as for a signal that
// interrupts it, does not end supervision. The end of the task's last process does, and stop.
func TestWhatEndsSupervision(t *testing.T) {
	unread, end := pipe(t)
	check(t, unread.Close()) // its writing end is in error: nobody reads
	begin, written := pipe(t)
	check(t, written.Close()) // its reading end has hung up: nobody writes
	for _, test := range []struct {
		name     string
		listener *os.File
		stopped  bool
		goesOn   bool
	}{
		{"an error", end, false, true}, {"an error and stop", end, true, false}, {"the end", begin, false, false},
	} {
		wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		check(t, err)
		defer unix.Close(wake)
		s := listening{&requests{listener: listener(test.listener.Fd())}, wake}
		if test.stopped {
			s.stop()
		}
		if got := s.next(); got != test.goesOn {
			t.Errorf("%s: goes on %v, want %v", test.name, got, test.goesOn)
		}
	}
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	check(t, err)
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// signalThreads sends a signal to every thread of this process. Any goroutine can call it.
func signalThreads(t *testing.T, signal unix.Signal) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
		return
	}
	for _, thread := range threads {
		number, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Error(err)
			return
		}
		_ = unix.Tgkill(os.Getpid(), number, signal) // the thread may have ended
	}
}

// TestVfork: the caller is a process that shares its stopped parent's memory
// (trap 9).
func TestVfork(t *testing.T) {
	for try, want := range map[string]bool{"open-in-vfork $G/allowed.txt": true, "open-in-vfork $S/secret.txt": false} {
		spec, decider := world(t, try)
		if succeeded, errno, got := attempt(t, spec, decider); succeeded != want {
			t.Errorf("%s: succeeded %v, errno %v: %s", try, succeeded, errno, got.output)
		}
	}
}

// TestForks: what the program of a task that serves users forks makes no process or
// thread in its turn, however it tries. In other tasks they are native.
func TestForks(t *testing.T) {
	for what, call := range map[string]string{"fork": "fork", "vfork": "vfork", "clone": "clone", "sibling": "clone",
		"thread": "clone"} {
		spec, decider := servingWorld(t, "make-in-worker "+what)
		refuses(t, spec, decider, call)
		if what == "sibling" {
			continue // a child of the keeper: refused in all tasks
		}
		spec, decider = world(t, "make-in-fork "+what)
		if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
			t.Errorf("%s in a task without users: errno %v: %s", what, errno, got.output)
		}
	}
}

// TestSend: the monitor decides on each write to a checked number.
func TestSend(t *testing.T) {
	for _, try := range []string{"write 8", "writev 8", "sendto 8", "write 128", "sendto 128"} {
		for _, allowed := range []bool{true, false} {
			spec, decider := world(t, try)
			var asked atomic.Int32
			decider.send = func(number int) Verdict {
				asked.Add(1)
				if !allowed || !strings.HasSuffix(try, map[int]string{8: "8", 128: "128"}[number]) {
					return Verdict{Errno: unix.EACCES}
				}
				return Verdict{}
			}
			succeeded, errno, got := attempt(t, spec, decider)
			if succeeded != allowed || asked.Load() != 1 || !allowed && errno != unix.EPERM {
				t.Errorf("%s, allowed %v: succeeded %v, errno %v, asked %d: %s", try, allowed, succeeded, errno,
					asked.Load(), got.output)
			}
		}
	}
}

// TestIdentity: decisions are about the name by which a file was reached. A hard link is
// another name; for a replaced file, the decision is about the new one (trap 5).
func TestIdentity(t *testing.T) {
	g := newGround(t)
	check(t, os.Link(g.secret+"/secret.txt", g.granted+"/linked.txt"))
	for try, want := range map[string]string{
		"open $G/linked.txt": g.granted + "/linked.txt", "open $S/secret.txt": g.secret + "/secret.txt",
		"open $S/../granted/link": g.granted + "/allowed.txt", "create $W/new": g.written + "/new",
	} {
		var asked OpenRequest
		attempt(t, g.spec(t, try),
			&scripted{open: func(request OpenRequest) Verdict { asked = request; return Verdict{} }})
		if asked.Path != want || asked.New != strings.HasPrefix(try, "create") {
			t.Errorf("%s: asked for %q, new %v; want %q", try, asked.Path, asked.New, want)
		}
	}
}

// TestReplacedWhileDeciding: the file that was decided on is the one that is
// opened, although its name means another by then.
func TestReplacedWhileDeciding(t *testing.T) {
	g := newGround(t)
	decider := &scripted{open: func(request OpenRequest) Verdict {
		check(t, os.Rename(filepath.Join(g.secret, "secret.txt"), request.Path))
		return Verdict{}
	}}
	if _, _, got := attempt(t, g.spec(t, "open $G/allowed.txt"), decider); got.output != "allowed" {
		t.Errorf("shown: %q", got.output)
	}
}

// TestOtherProcesses: where /proc is part of the runtime, a task still sees no
// process but its own.
func TestOtherProcesses(t *testing.T) {
	for try, want := range map[string]bool{"open /proc/$P/environ": false, "open /proc/$P/maps": false,
		"open /proc/self/maps": true, "stat /proc/$P": false, "open /proc/uptime": true} {
		spec, decider := world(t, try)
		spec.Runtime = append(spec.Runtime, "/proc")
		if succeeded, errno, got := attempt(t, spec, decider); succeeded != want {
			t.Errorf("%s: succeeded %v, errno %v: %s", try, succeeded, errno, got.output)
		}
	}
}
