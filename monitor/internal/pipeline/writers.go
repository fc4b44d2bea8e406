// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/wire"
)

// serveBeside serves a message of a session that may have to wait for a change, whose end may have
// to wait for the session's: the session goes on receiving meanwhile.
func (s *session) serveBeside(
	rule requestRule, sequence uint64, message wire.Message, serving *metrics.Interception,
) error {
	s.mu.Lock()
	busy := s.writing
	s.writing = true
	s.mu.Unlock()
	if busy {
		serving.End()
		return errors.New("the worker sent a message before it had the answer to the last one")
	}
	s.pipeline.services.writes.running.Go(func() {
		defer serving.End()
		err := rule.serve(s, sequence, message, serving)
		s.mu.Lock()
		s.writing = false
		s.mu.Unlock()
		if err != nil {
			s.worker.Kill()
		}
	})
	return nil
}

// write makes a write of the session's user. An error means that the worker does not get the answer.
func (s *session) write(sequence uint64, message wire.Message, writing *metrics.Interception) error {
	return s.send(sequence, s.pipeline.write(writing, s.actor(), message.(wire.Write)))
}

// write makes a write of the task. The content cannot depend on what the task reads from now on:
// it is decided on by what the task is now.
func (a *acting) write(e *endpoint, sequence uint64, request wire.Write) {
	p := a.task.pipeline
	writing := p.counts.Begin(metrics.Write)
	who := a.task.actorOf(a, p.Mode())
	busy := a.writing.Add(1) > maxWrites
	p.services.writes.running.Go(func() {
		defer writing.End()
		defer a.writing.Add(-1)
		answer := wire.Written{Status: int32(unix.EAGAIN), Reason: "too many writes of the task wait; write again later"}
		switch {
		case len(a.task.spec.Parameters) > 0:
			answer = wire.Written{Status: int32(unix.EACCES), Reason: "only sessions of the task write, and it has none here"}
		case !busy:
			answer = p.write(writing, who, request)
		}
		record, err := wire.Encode(sequence, answer)
		if err == nil {
			err = e.send(record)
		}
		if err != nil { // the task has ended, or does not read
			e.close()
		}
	})
}
