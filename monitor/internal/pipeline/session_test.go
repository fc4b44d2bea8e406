// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"crypto/ed25519"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// wireSession is a session whose worker is an idle process, and whose messages the
// test writes itself: what libshai would never send.
type wireSession struct {
	*session
	t      *testing.T
	socket *os.File
	worker *exec.Cmd
	exited chan error
	gone   chan struct{}
}

// The idle process is its session's worker.
func (b *wireSession) PID() int              { return b.worker.Process.Pid }
func (b *wireSession) Kill()                 { _ = b.worker.Process.Kill() }
func (b *wireSession) Gone() <-chan struct{} { return b.gone }
func (b *wireSession) Ended() bool {
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}

func (s *fixture) wireSession(t *testing.T) *wireSession {
	t.Helper()
	b := &wireSession{t: t, worker: idleProcess(t), exited: make(chan error, 1), gone: make(chan struct{})}
	s.must(b.worker.Start())
	go func() {
		b.exited <- b.worker.Wait()
		close(b.gone)
	}()
	p := s.Pipeline
	reserved, err := p.tasks["worker"].entrance.slots.reserve(t.Context())
	s.must(err)
	b.session = newSession(p, p.tasks["worker"], b, netip.MustParseAddr("127.0.1.1"), reserved)
	descriptors, err := b.prepare()
	s.must(err)
	for number, file := range descriptors {
		if number != wire.FDMonitor {
			file.Close()
		}
	}
	b.socket = descriptors[wire.FDMonitor]
	p.sessions.admit(b.session)
	go b.serve()
	t.Cleanup(func() {
		b.socket.Close()
		_ = b.worker.Process.Kill()
		<-b.ended // it uses the conduits, which the fixture closes: their numbers will be another test's
	})
	return b
}

// send writes a record as it is.
func (b *wireSession) send(record []byte) {
	b.t.Helper()
	if err := unix.Send(int(b.socket.Fd()), record, unix.MSG_NOSIGNAL); err != nil {
		b.t.Fatal(err)
	}
}

func (b *wireSession) say(message wire.Message) {
	b.t.Helper()
	record, err := wire.Encode(1, message)
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(record)
}

// answer receives one record; its descriptors are closed.
func (b *wireSession) answer() wire.Message {
	b.t.Helper()
	buffer, rights := make([]byte, wire.MaxRecord), make([]byte, 4096)
	timeout := unix.NsecToTimeval(waiting.Limit.Nanoseconds())
	_ = unix.SetsockoptTimeval(int(b.socket.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	size, rightsSize, _, _, err := unix.Recvmsg(int(b.socket.Fd()), buffer, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) { // a socket with a timeout is not read again by itself
		size, rightsSize, _, _, err = unix.Recvmsg(int(b.socket.Fd()), buffer, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsSize])
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range messages {
		numbers, _ := unix.ParseUnixRights(&messages[i])
		for _, number := range numbers {
			unix.Close(number)
		}
	}
	_, message, err := wire.Decode(buffer[:size], wire.TypeRegistered, wire.TypeConnected, wire.TypeBound,
		wire.TypeOpened, wire.TypeOffered, wire.TypeChosen)
	if err != nil {
		b.t.Fatal(err)
	}
	return message
}

func (b *wireSession) signed(principal string) wire.Authenticate {
	return b.signedFor(b.task.service(), b.pipeline.name, principal)
}

// signedFor signs for what the client believes to be connected to.
func (b *wireSession) signedFor(service, pipeline, principal string) wire.Authenticate {
	text := wire.SignedText(service, pipeline, principal, b.nonce)
	return wire.Authenticate{Principal: principal, Signature: [64]byte(ed25519.Sign(pipelinetest.Key(principal), text))}
}

func (b *wireSession) authenticate(principal string) wire.Bound {
	b.t.Helper()
	b.say(b.signed(principal))
	return b.answer().(wire.Bound)
}

// dies waits for the worker's violent end.
func (b *wireSession) dies() {
	b.t.Helper()
	select {
	case err := <-b.exited:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			b.t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(waiting.Limit):
		b.t.Error("the worker lives on")
	}
	waiting.Until(b.t, "the slot is free", func() bool {
		return len(b.task.entrance.slots.vacancies) == cap(b.task.entrance.slots.vacancies) &&
			b.pipeline.sessions.of(b.PID()) == nil
	})
}

// A message that is not in the table of requests ends the session, and kills the worker
// that sent it.
func TestRequestsThatEndTheSession(t *testing.T) {
	s := probe(t, SessionLimits{})
	s.analyze()
	encode := func(message wire.Message) []byte {
		record, err := wire.Encode(1, message)
		s.must(err)
		return record
	}
	spoiled := func(message wire.Message, offset int, value byte) []byte {
		record := encode(message)
		record[offset] = value
		return record
	}
	open := encode(wire.Open{Conduits: []uint32{1}})
	for _, test := range []struct {
		name  string
		bound bool
		send  [][]byte
		want  string // in the audit record
	}{
		{"open before binding", false, [][]byte{open}, "before the user has authenticated"},
		{"registration", true, [][]byte{encode(wire.Register{Instance: "worker"})}, "is not allowed in a session"},
		{"a monitor's message", true, [][]byte{encode(wire.Opened{Status: []int32{0}})}, "malformed"},
		{"an unknown type", true, [][]byte{append([]byte{wire.Version, 0, 99, 0, 16, 0, 0, 0}, make([]byte, 8)...)}, "malformed"},
		{"another version", true, [][]byte{append([]byte{wire.Version + 1, 0}, open[2:]...)}, "malformed"},
		{"a record cut off", true, [][]byte{open[:len(open)-1]}, "malformed"},
		{"a record too long", true, [][]byte{append(open[:len(open):len(open)], 0)}, "malformed"},
		{"an oversized record", true, [][]byte{make([]byte, largestRecord+1)}, "longer than the protocol allows"},
		{"a write without a user", false, [][]byte{encode(wire.Write{Conduit: "/log"})}, "before the user has authenticated"},
		{"choices without a user", false, [][]byte{encode(wire.Choices{Conduit: 1})}, "before the user has authenticated"},
		{"a choice without a user", false, [][]byte{encode(wire.Choose{Conduit: 1})}, "before the user has authenticated"},
		{"choices, reserved field", true, [][]byte{spoiled(wire.Choices{Conduit: 1}, 20, 1)}, "malformed"},
		{"a choice, reserved field", true, [][]byte{spoiled(wire.Choose{Conduit: 1}, 20, 1)}, "malformed"},
		{"a choice of no text", true, [][]byte{spoiled(wire.Choose{Conduit: 1}, 24, 0xff)}, "malformed"},
		{"a choice without signature", true, [][]byte{encode(wire.Choose{Conduit: 1})[:280]}, "malformed"},
		{"a choice and more", true, [][]byte{append(encode(wire.Choose{Conduit: 1}), 0)}, "malformed"},
		{"an offer", true, [][]byte{encode(wire.Offered{})}, "malformed"},
		{"four attempts", false, [][]byte{encode(wire.Authenticate{Principal: "alice"}),
			encode(wire.Authenticate{Principal: "alice"}),
			encode(wire.Authenticate{Principal: "alice"}), encode(wire.Authenticate{Principal: "alice"})},
			"came too often in one session"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := s.wireSession(t)
			if test.bound && b.authenticate("alice").Status != 0 {
				t.Fatal("alice is refused")
			}
			s.records()
			for _, record := range test.send {
				b.send(record)
			}
			b.dies()
			found := false
			for _, record := range s.records() {
				found = found || record.Operation == "message" && strings.Contains(record.Reason, test.want)
			}
			if !found {
				t.Errorf("no audit record says %q", test.want)
			}
		})
	}
}

// The allowed twin: a bound session opens as often as it likes, gets what its user
// may read and nothing else, and a reset ends it.
func TestRequestsThatAreServed(t *testing.T) {
	s := probe(t, SessionLimits{})
	s.analyze()
	b := s.wireSession(t)
	if bound := b.authenticate("bob"); bound.Status != 0 || bound.Instance != "worker(bob, de)" {
		t.Fatalf("bob: %+v", bound)
	}
	for range 20 {
		b.say(wire.Open{Conduits: []uint32{s.id("/corpus/private/bob/1.txt"), s.id("/corpus/private/alice/1.txt"), 0,
			1 << 31}})
		want := []int32{0, int32(unix.EACCES), int32(unix.ENOENT), int32(unix.ENOENT)}
		got := b.answer().(wire.Opened).Status
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("statuses %v, want %v", got[:4], want)
			}
		}
	}
	// A second user on the same connection is refused, and the first one stays.
	if bound := b.authenticate("alice"); bound.Status != int32(unix.EACCES) ||
		!strings.Contains(bound.Reason, "already has a user") {
		t.Errorf("a second user: %+v", bound)
	}
	if got := b.subject().Instance; got != "worker(bob, de)" {
		t.Errorf("the session is %s's", got)
	}
	b.say(wire.Reset{})
	b.dies() // it is a worker that does not exit by itself
}

// A signature for one connection is worth nothing on another one.
func TestSignatureIsOfOneConnection(t *testing.T) {
	s := probe(t, SessionLimits{})
	s.analyze()
	first, second := s.wireSession(t), s.wireSession(t)
	second.say(first.signed("alice"))
	if bound := second.answer().(wire.Bound); bound.Status == 0 {
		t.Error("a signature over another connection's nonce is accepted")
	}
	if bound := second.authenticate("alice"); bound.Status != 0 {
		t.Errorf("one over its own is refused: %s", bound.Reason)
	}
}

// A signature for one service is worth nothing at another one, which may have relayed the
// nonce.
func TestSignatureIsForOneService(t *testing.T) {
	s := probe(t, SessionLimits{})
	s.analyze()
	service, pipeline := s.tasks["worker"].service(), s.Pipeline.name
	for _, test := range []struct {
		service, pipeline string
		accepted          bool
	}{
		{"127.0.0.9:1", pipeline, false}, {service, "other", false}, {"", "", false}, {service, pipeline, true},
	} {
		b := s.wireSession(t)
		b.say(b.signedFor(test.service, test.pipeline, "alice"))
		if bound := b.answer().(wire.Bound); (bound.Status == 0) != test.accepted {
			t.Errorf("for service %q, pipeline %q: %d %s", test.service, test.pipeline, bound.Status, bound.Reason)
		}
		b.say(wire.Reset{})
		b.dies()
	}
}

// endedWorker is one whose end the monitor has not been told of yet.
type endedWorker struct{ sandbox.Worker }

func (endedWorker) PID() int              { return 4711 }
func (endedWorker) Gone() <-chan struct{} { return nil }
func (endedWorker) Ended() bool           { return true }

// liveWorker has the same number.
type liveWorker struct{ endedWorker }

func (liveWorker) Ended() bool { return false }

// A process that has got the number of an ended worker does not get its session.
func TestSessionOfAnEndedWorker(t *testing.T) {
	p := bare(t).Pipeline
	for worker, want := range map[sandbox.Worker]bool{endedWorker{}: false, liveWorker{}: true} {
		alices := &session{pipeline: p, worker: worker, holds: &capabilitySet{},
			who: decision.Subject{Instance: "worker(alice, de)"}}
		p.sessions.byProcess[worker.PID()] = alices
		who := p.actorOf(pipelinetest.NewTask("worker", 1), sandbox.Caller{PID: worker.PID()})
		if got := who.Instance == "worker(alice, de)"; got != want {
			t.Errorf("%T: acts for %q", worker, who.Instance)
		}
	}
}

// An instance without the parameter user serves many users: each session acts for its own, not
// for the one whose login made the capability set.
func TestSessionsOfOneInstanceActForTheirUsers(t *testing.T) {
	f := bare(t)
	shared := func(holds *capabilitySet) { holds.subject.Instance = "worker(de)" }
	for _, principal := range []string{"alice", "bob"} {
		s := f.begins(wire.ModeShai, "alice", shared)
		if got := s.withConnection(s.holds.subject, principal).Session.Principal; got != principal {
			t.Errorf("a session of %s acts for %s", principal, got)
		}
	}
}
