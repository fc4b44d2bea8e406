// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// accept hands the worker a connection that the monitor chose for it. It waits
// as long as it takes; many workers wait at a time.
func (r *request) accept() error {
	if r.descriptor(0) != wire.FDListen || r.supervisor.decider == nil {
		return errRefused
	}
	process, err := r.process()
	if err != nil {
		return err
	}
	worker, err := r.supervisor.workers.reserve(process)
	if err != nil {
		return err
	}
	if !r.supervisor.listener.valid(r.ID) {
		worker.release() // the number may have become another's before it was reserved
		return errGone
	}
	accepted, err := awaitConnection(r.supervisor.context, r.supervisor.decider, r.supervisor.task, worker)
	if err != nil {
		return unix.ECONNABORTED
	}
	defer accepted.close()
	return r.place(accepted)
}

// place puts every descriptor at its number. The connection comes last, together
// with the call's return: until then the worker waits, so it never sees half of
// a session. If one cannot be placed, the call fails; the connection is closed,
// and the worker is given no other.
func (r *request) place(accepted *Accepted) error {
	numbers, err := accepted.numbers()
	if err != nil {
		return errRefused
	}
	last := slices.Index(numbers, accepted.Connection)
	numbers = append(slices.Delete(numbers, last, last+1), accepted.Connection)
	for i, number := range numbers {
		flags := uint32(unix.SECCOMP_ADDFD_FLAG_SETFD)
		if i == len(numbers)-1 {
			flags |= unix.SECCOMP_ADDFD_FLAG_SEND
		}
		// Fd makes the file blocking, which is what workers expect.
		errno := r.supervisor.listener.inject(injection{ID: r.ID, Flags: flags,
			Source: uint32(accepted.Descriptors[number].Fd()), New: uint32(number)})
		if errno != 0 {
			return unix.ECONNABORTED
		}
	}
	return nil
}

// send asks about one write to a checked connection or channel, and lets the
// kernel carry it out. That is safe: what was decided on is the descriptor's
// number, which is a value and not memory. What the number refers to cannot
// change to something unchecked: nothing can be duplicated onto a reserved
// number or away from it, and only the monitor puts anything there. (Closing it
// makes the write fail, or lands on an ordinary file that the task may write
// without asking.) The written bytes are not part of the decision.
func (r *request) send() error {
	number := r.descriptor(0)
	process, err := r.process()
	if err != nil {
		return err
	}
	err = r.supervisor.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.supervisor.task, process, number)
	})
	if err != nil {
		return unix.EPERM
	}
	return r.proceed()
}
