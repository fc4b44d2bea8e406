// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/wire"
)

// serveMessages answers the task's own messages, but not those of its workers.
func (t *Task) serveMessages(e *endpoint) {
	buffer := make([]byte, 1024)
	for {
		size, err := e.receive(buffer)
		if err == nil {
			err = t.handle(e, buffer[:size])
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed):
			return // the task has ended; of a killed keeper's task some processes may still hold the other end
		case err != nil:
			t.pipeline.refused(t.subject, "message", "", err.Error())
			e.close()
			return
		}
	}
}

func (t *Task) handle(e *endpoint, record []byte) error {
	begun := time.Now()
	sequence, message, err := wire.DecodeFromTask(record)
	if err != nil {
		return err
	}
	request, ok := message.(wire.Register)
	if !ok {
		return fmt.Errorf("a task may not send message %d", message.Type())
	}
	answer := t.register(request)
	out, err := wire.Encode(sequence, answer)
	if err != nil {
		return err
	}
	t.pipeline.intercepted(metrics.Register, time.Since(begun))
	return e.send(out)
}

// register answers with the capability table. It refuses a task that names another
// instance than the one that the monitor started: the task's capabilities were decided
// for that instance.
func (t *Task) register(request wire.Register) wire.Registered {
	answer := wire.Registered{Mode: t.pipeline.Mode(), ConduitCount: t.pipeline.services.conduitCount()}
	if request.Instance != t.name {
		answer.Status = int32(unix.EACCES)
		answer.Reason = wire.Truncate(fmt.Sprintf("this is task %s; it cannot register as %s", t.name,
			request.Instance), wire.ReasonMax)
		t.pipeline.refused(t.subject, "register", request.Instance, answer.Reason)
		return answer
	}
	for _, place := range t.placements {
		answer.Capabilities = append(answer.Capabilities, place.capability)
	}
	return answer
}
