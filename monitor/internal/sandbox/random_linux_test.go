// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

var (
	randomSeed = flag.Uint64("random-seed", uint64(time.Now().UnixNano()), "the first random program of sealed workers")
	randomRuns = flag.Int("random-programs", 300, "how many random programs sealed workers execute, each twice")
)

// successors runs random programs in sealed workers, and observes what the next session finds.
type successors struct {
	t        *testing.T
	sessions *testSessions
	programs *programs
	first    observation // of a worker that had no session before
	hung     int         // programs that were ended because they waited for ever
	died     int         // roll-backs that programs made the worker die of
}

func newSuccessors(t *testing.T, backend Backend, off plan.Protection) *successors {
	t.Helper()
	sessions, _, _ := sealedServingBy(t, backend, "random", off)
	s := &successors{t: t, sessions: sessions}
	first, err := s.observe(nil)
	check(t, err)
	s.first = first
	c := sessions.client(t)
	mappings, err := mappingsOfProcess(int(c.call(unix.SYS_GETPID)))
	check(t, err)
	s.programs, err = newPrograms(uint64(c.ask("arena")), mappings)
	check(t, err)
	c.end(sessions)
	return s
}

// talk connects, and says something. The worker has to answer in time.
func (s *successors) talk(words string, limit time.Duration) net.Conn {
	s.t.Helper()
	connection, err := net.Dial("tcp", s.sessions.address)
	check(s.t, err)
	check(s.t, connection.SetDeadline(time.Now().Add(limit)))
	_, err = io.WriteString(connection, words)
	check(s.t, err)
	return connection
}

// observe has a session tell what it finds, and ends it. A former session that does not end is
// ended.
func (s *successors) observe(former *os.Process) (result observation, err error) {
	s.t.Helper()
	limit := hangs
	if former == nil {
		limit = waiting.Limit
	}
	connection := s.talk("tell", limit)
	defer connection.Close()
	part := make([]byte, 1<<16)
	for !result.isWhole() {
		size, err := connection.Read(part)
		if errors.Is(err, os.ErrDeadlineExceeded) && former != nil {
			s.hung++
			_ = former.Kill() // it may have ended meanwhile
			former, err = nil, connection.SetDeadline(time.Now().Add(waiting.Limit))
		}
		if err != nil {
			return result, err
		}
		result.inside = append(result.inside, part[:size]...)
	}
	if result.outside, err = observeOutside(result.process()); err != nil {
		return result, err
	}
	// Whoever has told all waits for this, however slow a busy machine was until now.
	check(s.t, connection.SetDeadline(time.Now().Add(waiting.Limit)))
	_, err = connection.Write([]byte{0})
	return result, err
}

// hangs is how long a program may wait before it is ended.
const hangs = 2 * time.Second

// after runs a program with a secret and returns what its successor finds, and whether that is
// in the same process.
func (s *successors) after(code []byte, secret [secretSize]byte) (observation, bool) {
	s.t.Helper()
	whole := blob(code, secret)
	connection := s.talk(fmt.Sprintf("run %d", len(whole)), waiting.Limit)
	defer connection.Close()
	var process int32
	check(s.t, binary.Read(connection, binary.LittleEndian, &process))
	worker, err := os.FindProcess(int(process))
	check(s.t, err)
	defer worker.Release()
	_, err = connection.Write(whole)
	check(s.t, err)
	_ = connection.(*net.TCPConn).CloseWrite() // the worker may have ended
	found, err := s.observe(worker)
	for ; ended(err) && s.died < deadly; s.died++ {
		found, err = s.observe(nil)
	}
	if err != nil {
		s.t.Fatalf("no session tells what it finds after program (%s): %v", s.programs.describe(code), err)
	}
	return found, found.process() == int(process)
}

// ended returns whether the worker has ended: before it read what it was told, the kernel resets.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) }

// deadly is how many roll-backs may end the worker, as a program can achieve by the trap flag.
const deadly = 50

// firstDiscarded returns how the first worker differed that the monitor discarded.
func (s *testSessions) firstDiscarded() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.discarded) == 0 {
		return ""
	}
	return s.discarded[0]
}

// outcomes count what became of programs.
type outcomes struct{ compared, ended int }

// try runs programs, each with two secrets, until a successor differs from the other one or
// from a worker's first session. It returns the difference.
func (s *successors) try(seed uint64, runs int) (total outcomes, difference string) {
	s.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range uint64(runs) {
		code := s.programs.random(seed + i)
		var secrets [2][secretSize]byte
		for n := range secrets[0] {
			secrets[0][n], secrets[1][n] = byte(random.Uint32()), byte(random.Uint32())
		}
		one, isOne := s.after(code, secrets[0])
		other, isOther := s.after(code, secrets[1])
		for _, pair := range [][2]observation{{one, other}, {one, s.first}, {other, s.first}} {
			if what := pair[0].difference(pair[1]); what != "" {
				return total, fmt.Sprintf("after program %d (%s): %s", seed+i, s.programs.describe(code), what)
			}
		}
		if what := s.sessions.firstDiscarded(); what != "" {
			return total, "discarded by the comparison: " + what
		}
		if isOne && isOther {
			total.compared++
		} else {
			total.ended++
		}
	}
	return total, ""
}

// TestRandomPrograms: what a session executes makes no difference to the next one in its worker.
// The seed that is printed repeats the programs.
func TestRandomPrograms(t *testing.T) {
	s := newSuccessors(t, newBackend(t), 0)
	total, difference := s.try(*randomSeed, *randomRuns)
	t.Logf("-random-seed=%d: %d programs compared, %d ended their worker (%d runs waited for ever; %d "+
		"roll-backs failed)", *randomSeed, total.compared, total.ended, s.hung, s.died)
	if difference != "" {
		t.Error(difference)
	}
	if total.compared < *randomRuns/4 {
		t.Errorf("only %d of %d programs could be compared", total.compared, *randomRuns)
	}
}

// TestRandomProgramsFindDefects: without any one of the protections of sealed workers, random
// programs make a difference, or the monitor's comparison discards the worker. Instructions are not
// in the table that set what the code itself uses (other general registers), without which no worker
// works (FS's base, and after it cld), or that few processors need (fninit).
func TestRandomProgramsFindDefects(t *testing.T) {
	for _, defect := range []struct {
		name string
		off  plan.Protection
		code string // instructions of the roll-back code
		left string // what is left of them
	}{
		{"no filter of sealed workers", plan.Tracelessness, "", ""},
		{"no memory", 0, "\x49\xff\xcd\x79", "\x49\xff\xcd\xa8"}, // no jump to a range
		{"no vector registers", 0, "\x48\x0f\xae\x2d", "\x48\x0f\x1f\x05"},
		{"descriptors stay", 0, "\x31\xd2\x0f\x05", "\x31\xc0\x90\x90"},
		{"no flags", 0, "\x9d", "\x90"},
		{"no selector DS", 0, "\x8e\xd8", "\x66\x90"},
		{"no selector ES", 0, "\x8e\xc0", "\x66\x90"},
		{"no selector FS", 0, "\x8e\xe0", "\x66\x90"},
		{"no selector and base of GS", 0, "\x8e\xe8\xf3\x48\x0f\xae\xd8", "\x0f\x1f\x80\x00\x00\x00\x00"},
		{"no RBX", 0, "\x31\xdb", "\x66\x90"},
		{"no RBP", 0, "\x31\xed", "\x66\x90"},
		{"no R8", 0, "\x45\x31\xc0", "\x0f\x1f\x00"},
		{"no R9", 0, "\x45\x31\xc9", "\x0f\x1f\x00"},
		{"no R12", 0, "\x45\x31\xe4", "\x0f\x1f\x00"},
	} {
		t.Run(defect.name, func(t *testing.T) {
			backend := newBackend(t)
			if defect.code != "" {
				backend = New(Options{Supervisor: changedSupervisor(t, defect.code, defect.left)})
			}
			total, difference := newSuccessors(t, backend, defect.off).try(*randomSeed, 10**randomRuns)
			if difference == "" {
				t.Errorf("-random-seed=%d: not found by %d programs (%d ended)", *randomSeed, total.compared, total.ended)
			}
			t.Log(difference)
		})
	}
}

// changedSupervisor returns a supervisor whose roll-back code has other instructions in place of
// some that come after accept4.
func changedSupervisor(t *testing.T, code, left string) string {
	t.Helper()
	path, err := supervisorPath()
	check(t, err)
	text, err := os.ReadFile(path)
	check(t, err)
	page := bytes.Index(text, []byte("\xb8\x20\x01\x00\x00\xbf\x06\x00\x00\x00\x31\xf6\x31\xd2")) // accept4
	if page < 0 {
		t.Fatal("the supervisor has no roll-back code")
	}
	rest := text[page+wire.RollbackAccepted : page+wire.RollbackCodeSize]
	at := bytes.Index(rest, []byte(code))
	if at < 0 {
		t.Fatalf("the roll-back code has no % x", code)
	}
	copy(rest[at:], left)
	changed := filepath.Join(openGround(t), "shai-supervisor")
	check(t, os.WriteFile(changed, text, 0o755))
	return changed
}
