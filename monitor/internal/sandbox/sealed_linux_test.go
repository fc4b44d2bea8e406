// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// sealedServing starts a program whose workers ask to be sealed after deviating somehow from
// what libshai does ("" does not), with the protections off.
func sealedServing(t *testing.T, deviation string, off plan.Protection) (*testSessions, *supervisor, *scripted) {
	t.Helper()
	return sealedServingBy(t, newBackend(t), deviation, off)
}

func sealedServingBy(t *testing.T, backend Backend, deviation string, off plan.Protection) (*testSessions, *supervisor,
	*scripted) {
	t.Helper()
	spec, decider := world(t, "serve-sealed "+deviation)
	table, err := os.Open(spec.Command[0])
	check(t, err)
	t.Cleanup(func() { table.Close() })
	sessions := newSessions(t, 1)
	spec.Descriptors[wire.FDClasses] = table
	spec.Serving, spec.Sessions, spec.SessionsPerWorker, spec.Workers, spec.waived = true, sessions, 1000, 1, off
	started, err := backend.Start(t.Context(), spec, decider)
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		check(t, started.Stop(ctx))
	})
	return sessions, started.(*task).attendance.(*supervisor), decider
}

// client is a client of a session whose worker obeys it.
type client struct {
	*testing.T
	net.Conn
}

// client connects.
func (s *testSessions) client(t *testing.T) client {
	t.Helper()
	connection, err := net.Dial("tcp", s.address)
	check(t, err)
	t.Cleanup(func() { connection.Close() })
	check(t, connection.SetDeadline(time.Now().Add(waiting.Limit)))
	return client{t, connection}
}

// ask has the worker do something, and returns the result.
func (c client) ask(format string, words ...any) int64 {
	c.Helper()
	_, err := fmt.Fprintf(c, format, words...)
	check(c.T, err)
	return c.answer()
}

func (c client) answer() int64 {
	c.Helper()
	text := make([]byte, 64)
	size, err := c.Read(text)
	if err != nil {
		c.Fatalf("the worker does not answer: %v", err)
	}
	result, err := strconv.ParseInt(string(text[:size]), 10, 64)
	check(c.T, err)
	return result
}

// call has the worker make a system call.
func (c client) call(number int, arguments ...uint64) int64 {
	c.Helper()
	return c.ask("%s", strings.Trim(fmt.Sprint(append([]uint64{uint64(number)}, arguments...)), "[]"))
}

// put places text in the worker's buffer, and returns its address.
func (c client) put(text string) uint64 {
	c.Helper()
	return uint64(c.ask("put %s", text))
}

// end has the worker be rolled back.
func (c client) end(s *testSessions) {
	c.Helper()
	before := len(s.of(supervision.EventEnded))
	_, err := io.WriteString(c, "end")
	check(c.T, err)
	waiting.Until(c.T, "the session has ended", func() bool { return len(s.of(supervision.EventEnded)) > before })
}

// TestSealedWorker: one process serves one session after the other, each of which finds what the
// first one found; also if it has a grant, by which it reads its channel.
func TestSealedWorker(t *testing.T) {
	for _, how := range []string{"not", "grant"} {
		t.Run(how, func(t *testing.T) { checkSealedWorker(t, how) })
	}
}

func checkSealedWorker(t *testing.T, how string) {
	sessions, _, _ := sealedServing(t, how, 0)
	var process, address int64
	for number := range 5 {
		c := sessions.client(t)
		if number == 0 {
			process, address = c.call(unix.SYS_GETPID), c.ask("buffer")
		}
		if got := c.call(unix.SYS_GETPID); got != process {
			t.Errorf("session %d is in process %d, the first one in %d", number, got, process)
		}
		if got := c.ask("count"); got != 1 {
			t.Errorf("session %d finds %d", number, got)
		}
		if got := c.call(unix.SYS_DUP, wire.FDReservedEnd+5); got != -int64(unix.EBADF) {
			t.Errorf("session %d finds a descriptor: %d", number, got)
		}
		c.call(unix.SYS_PIPE2, uint64(address), 0)
		c.end(sessions)
	}
	for _, event := range sessions.of(supervision.EventEnded) {
		if event.Flags&supervision.EventRolledBack == 0 {
			t.Errorf("%+v", event)
		}
	}
	sessions.mutex.Lock()
	defer sessions.mutex.Unlock()
	if len(sessions.unsealed)+len(sessions.discarded) > 0 {
		t.Errorf("%q, %q", sessions.unsealed, sessions.discarded)
	}
}

// TestUnsealedWorkers: a worker that a roll-back would not restore is not sealed, and says why.
// It then serves one session, as those do that are forked later, which do not ask.
func TestUnsealedWorkers(t *testing.T) {
	for deviation, test := range map[string]struct {
		why string
		off plan.Protection
	}{
		"thread":       {"it has 2 threads", plan.SeparateWorkers},
		"handler":      {"it handles signals (10)", 0},
		"blocked":      {"it blocks signals (12)", 0},
		"shared":       {"is shared and writable", plan.NothingShared},
		"grows":        {"can grow", 0},
		"stack":        {"([stack]) can grow", 0},
		"droppable":    {"random numbers", 0},
		"no-code":      {"the roll-back code is not mapped", 0},
		"own-code":     {"is not the roll-back code", 0},
		"changed-code": {"is not the roll-back code", 0},
		"no-state":     {"it has no state", 0},
		"open-state":   {"other memory, from 200000010000 on", 0},
		"less":         {"has not all of its writable memory", 0},
		"no-room":      {"no room for its filter", 0},

		"cpu-limit":      {"it has a limit on CPU time", 0},
		"timer":          {"it has timers", 0},
		"told-intervals": {"it has interval timers", 0},
		"own-call":       {"it asks for its seal at", 0},

		"grant-not-mapped": {"the grant is not mapped", 0},
		"grant-forged":     {"is not the grant", 0},
		"grant-own-table":  {"is not the class table", 0},
	} {
		t.Run(deviation, func(t *testing.T) {
			sessions, _, _ := sealedServing(t, deviation, test.off)
			pids := map[int64]bool{}
			for range 2 {
				c := sessions.client(t)
				pids[c.call(unix.SYS_GETPID)] = true
				_, err := io.WriteString(c, "exit")
				check(t, err)
				_, _ = io.Copy(io.Discard, c)
			}
			waiting.Until(t, "it says why", func() bool {
				sessions.mutex.Lock()
				defer sessions.mutex.Unlock()
				return len(sessions.unsealed) > 0
			})
			sessions.mutex.Lock()
			defer sessions.mutex.Unlock()
			if len(pids) != 2 {
				t.Fatalf("processes %v: %q", pids, sessions.unsealed)
			}
			for _, why := range sessions.unsealed {
				if !strings.HasPrefix(why, "cannot be sealed: ") || !strings.Contains(why, test.why) {
					t.Error(why)
				}
			}
		})
	}
}

// TestIntervalTimersAreStopped: a worker that does not tell of them has none when it is sealed.
// Without the call in the roll-back code they go on.
func TestIntervalTimersAreStopped(t *testing.T) {
	const setitimer, schedYield = "\xb8\x26\x00\x00\x00", "\xb8\x18\x00\x00\x00"
	for running, backend := range map[bool]Backend{
		false: newBackend(t), true: New(Options{Supervisor: changedSupervisor(t, setitimer, schedYield)}),
	} {
		sessions, _, _ := sealedServingBy(t, backend, "intervals", plan.Tracelessness) // which may ask
		c := sessions.client(t)
		for timer := range uint64(3) {
			var left [16]byte
			buffer := uint64(c.ask("buffer"))
			if got := c.call(unix.SYS_GETITIMER, timer, buffer); got != 0 {
				t.Errorf("getitimer: %d", got)
			}
			check(t, readMemory(int(c.call(unix.SYS_GETPID)), buffer+16, left[:]))
			if (left != [16]byte{}) != running {
				t.Errorf("timer %d, which is to run %v: %x", timer, running, left)
			}
		}
		sessions.mutex.Lock()
		if len(sessions.unsealed) > 0 {
			t.Errorf("%q", sessions.unsealed)
		}
		sessions.mutex.Unlock()
	}
}

// TestSealedWorkerIsDiscarded: a difference is found before the worker has another session, and
// reported; another worker serves it.
func TestSealedWorkerIsDiscarded(t *testing.T) {
	sessions, _, _ := sealedServing(t, "not", 0)
	c := sessions.client(t)
	process := int(c.call(unix.SYS_GETPID))
	// The code's last byte, which is not executed.
	plant(t, process, wire.RollbackCode+wire.RollbackCodeSize-1)
	c.end(sessions)
	waiting.Until(t, "the worker is discarded", func() bool { return errors.Is(unix.Kill(process, 0), unix.ESRCH) })
	if next := int(sessions.client(t).call(unix.SYS_GETPID)); next == process {
		t.Error("it serves another session")
	}
	sessions.mutex.Lock()
	defer sessions.mutex.Unlock()
	if len(sessions.discarded) != 1 || !strings.Contains(sessions.discarded[0], "is not the roll-back code") {
		t.Errorf("%q", sessions.discarded)
	}
}

// TestComparison: a worker that was rolled back is equal to its seal, and each difference is
// found.
func TestComparison(t *testing.T) {
	sessions, supervisor, _ := sealedServing(t, "not", 0)
	seals := supervisor.requests.seals
	c := sessions.client(t)
	process, buffer := int(c.call(unix.SYS_GETPID)), uint64(c.ask("buffer"))
	c.put("what a session leaves")
	c.end(sessions)
	waits := func() bool { return true }
	waiting.Until(t, "the worker waits", func() bool { return seals.compare(process, waits) == nil })
	for _, address := range []uint64{buffer, buffer + 4095} {
		restore := plant(t, process, address)
		want := fmt.Sprintf("memory at %x differs", address)
		if err := seals.compare(process, waits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a byte at %x: %v", address, err)
		}
		restore()
		check(t, seals.compare(process, waits))
	}
	seals.filters++
	if err := seals.compare(process, waits); err == nil || !strings.Contains(err.Error(), "seccomp filters") {
		t.Errorf("without its filter: %v", err)
	}
}

// plant changes a byte of a process from outside, which no session can. restore changes it back.
func plant(t *testing.T, process int, address uint64) (restore func()) {
	t.Helper()
	memory, err := os.OpenFile(procFile(process, "mem"), os.O_RDWR, 0)
	check(t, err)
	t.Cleanup(func() { memory.Close() })
	flip := func() {
		var place [1]byte
		_, err := memory.ReadAt(place[:], int64(address))
		check(t, err)
		place[0] ^= 0xa5
		_, err = memory.WriteAt(place[:], int64(address))
		check(t, err)
	}
	flip()
	return flip
}
