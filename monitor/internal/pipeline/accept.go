// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

var errUnconnected = errors.New("the task has no connection to accept")

// Accept waits for a user's connection for one worker, and prepares the descriptors that
// the worker gets with it.
func (p *Pipeline) Accept(ctx context.Context, started sandbox.Task, worker sandbox.Worker) (*sandbox.Accepted, error) {
	task := p.taskOf(started)
	if task == nil {
		return nil, errUnconnected
	}
	if err := p.mayServe(ctx, started, worker.PID()); err != nil {
		who := p.actorOf(started, sandbox.Caller{PID: worker.PID()}).Subject
		p.refused(metrics.Protocol, who, "accept4", "", err.Error())
		return nil, err
	}
	entrance := &task.entrance
	if entrance.acceptor == nil {
		return nil, errUnconnected
	}
	task.idle(started)
	reserved, err := entrance.slots.reserve(ctx)
	if err != nil {
		return nil, err
	}
	got, err := entrance.acceptor.next(ctx)
	for err == nil && !p.admitted(task, got) {
		got, err = entrance.acceptor.next(ctx)
	}
	if err != nil {
		reserved.release()
		return nil, err
	}
	defer p.counts.Begin(metrics.Accept).End()
	return p.beginSession(task, worker, got, reserved)
}

// serves reports whether users connect to a task and each gets a worker of their own. A
// task without parameters has read all that it may before anybody connects.
func (p *Pipeline) serves(task *Task) bool {
	return len(task.spec.Parameters) > 0 && task.entrance.connection.Kind == manifest.KindConnection
}

// mayServe refuses processes that are not fit for a new user: processes of a task that
// users do not connect to, processes that have a session, and processes that the zygote
// has not forked itself. The latter two may hold data of an earlier user. If the process'
// last session has ended in the worker, mayServe waits until the monitor has ended it,
// too.
func (p *Pipeline) mayServe(ctx context.Context, started sandbox.Task, pid int) error {
	if task := p.taskOf(started); !p.serves(task) {
		return fmt.Errorf("users of pipeline %s do not connect to task %s", p.name, task.name)
	}
	if s := p.sessions.latest(pid); s != nil {
		if !s.worker.Ended() {
			return errors.New("this worker has served a user; it must exit")
		}
		select {
		case <-s.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return forkedBy(started.PID(), pid)
}

// forkedBy returns an error if a process is not a child of the zygote.
func forkedBy(zygote, pid int) error {
	parent, err := sandbox.ParentOf(pid)
	if err != nil {
		return err
	}
	if parent != zygote {
		return errors.New("the zygote has not forked this process; another process may hold an earlier user's data")
	}
	return nil
}

// beginSession serves a connection in a worker. It takes over the connection and the
// slot, and releases both if it fails.
func (p *Pipeline) beginSession(
	task *Task, worker sandbox.Worker, got accepted, reserved *slot,
) (*sandbox.Accepted, error) {
	s := newSession(p, task, worker, got.peer, reserved)
	descriptors, err := s.prepare()
	if err == nil {
		err = s.send(0, s.connected())
	}
	if err != nil {
		for _, file := range descriptors {
			file.Close()
		}
		got.connection.Close()
		s.release()
		return nil, err
	}
	connection := wire.FDConnection
	if s.mode.IsDynamic() {
		connection = wire.FDConnectionChecked
	}
	descriptors[connection] = got.connection
	p.sessions.admit(s)
	go s.serve()
	return &sandbox.Accepted{Descriptors: descriptors, Connection: connection}, nil
}

// prepare makes the descriptors that the worker gets besides the connection, by number.
// After an error, the result holds those made so far.
func (s *session) prepare() (descriptors map[int]*os.File, err error) {
	p := s.pipeline
	descriptors = map[int]*os.File{}
	place := func(number int, file *os.File, err error) error {
		if err == nil {
			descriptors[number] = file
		}
		return err
	}
	mine, theirs, err := newEndpoint()
	if place(wire.FDMonitor, theirs, err) != nil {
		return descriptors, err
	}
	s.endpoint, s.reply = mine, mine.send
	number := s.slot.occupy()
	for _, wanted := range s.task.perSession {
		end, err := duplicate(p.conduits.end(wanted, number, s.mode))
		if place(int(wanted.capability.Number), end, err) != nil {
			return descriptors, err
		}
	}
	return descriptors, nil
}

// connected returns the message that tells the worker about its session.
func (s *session) connected() wire.Connected {
	return wire.Connected{
		Nonce: s.nonce, Peer: s.peer.String(), Region: s.region, Service: s.task.service(),
		Pipeline: s.pipeline.name, Mode: s.mode, Slot: uint32(s.slot.number), //nolint:gosec // slots are fewer than 2^31
	}
}

// duplicate returns another descriptor of the same file, for a sandbox that closes the
// files that it gets.
func duplicate(file *os.File) (*os.File, error) {
	number, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(number), file.Name()), nil
}
