// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// serveMessages answers the task's own messages, but not those of its workers.
func (a *acting) serveMessages(e *endpoint) {
	buffer := make([]byte, largestRecord)
	for {
		size, err := e.receive(buffer)
		if err == nil {
			err = a.handle(e, buffer[:size], nil)
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed):
			return // the task has ended; of a killed keeper's task some processes may still hold the other end
		case err != nil:
			a.task.pipeline.refused(metrics.Protocol, a.role.Load().subject, "message", "", err.Error())
			e.close()
			return
		}
	}
}

// raising takes the messages of a task that may raise its taint, which waits meanwhile.
type raising struct {
	*acting
	endpoint *endpoint
}

// Receive implements [sandbox.Raising].
func (r raising) Receive(record []byte, caller sandbox.Stopped) error {
	err := r.handle(r.endpoint, record, caller)
	if err != nil {
		r.task.pipeline.refused(metrics.Protocol, r.role.Load().subject, "message", "", err.Error())
		r.endpoint.close()
	}
	return err
}

// Holds implements [sandbox.Raising].
func (r raising) Holds(prefix string) bool {
	return slices.ContainsFunc(r.role.Load().placements, func(place placement) bool {
		return place.directory != "" && place.capability.Prefix == prefix
	})
}

// handle answers a message. caller is nil if the process that has sent it does not wait.
func (a *acting) handle(e *endpoint, record []byte, caller sandbox.Stopped) error {
	begun := time.Now()
	sequence, message, err := wire.DecodeFromTask(record)
	if err != nil {
		return err
	}
	if write, ok := message.(wire.Write); ok {
		a.write(e, sequence, write)
		return nil
	}
	request, ok := message.(wire.Register)
	if !ok {
		return fmt.Errorf("a task may not send message %d", message.Type())
	}
	out, err := wire.Encode(sequence, a.register(request, caller))
	if err != nil {
		return err
	}
	a.task.pipeline.counts.Intercepted(metrics.Register, time.Since(begun))
	return e.send(out)
}

// register answers with the table of the role that the task has, or takes by registering as
// another task.
func (a *acting) register(request wire.Register, caller sandbox.Stopped) wire.Registered {
	p := a.task.pipeline
	answer := wire.Registered{Mode: p.Mode(), ConduitCount: p.services.conduitCount()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.role.Load(); request.Instance != now.name {
		if err := a.raise(request, caller); err != nil {
			answer.Status, answer.Reason = int32(statusOf(err)), wire.Truncate(err.Error(), wire.ReasonMax) //nolint:gosec // errno values are small
			p.refused(metrics.ByTaint, now.subject, "register", request.Instance, err.Error())
			return answer
		}
	}
	answer.Capabilities = a.capabilityTable(a.role.Load())
	return answer
}

// unraised is the reason for which a taint is not raised.
type unraised struct {
	status unix.Errno
	reason string
}

func (u unraised) Error() string { return u.reason }

func statusOf(err error) unix.Errno {
	var why unraised
	if errors.As(err, &why) {
		return why.status
	}
	return unix.EACCES
}
