// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// accept hands the worker a connection that the monitor chose for it. It has no time
// limit, and many workers can wait at the same time.
func (r *request) accept() error {
	if r.requests.supervised {
		return errServes
	}
	if r.descriptor(0) != wire.FDListen || r.requests.decider == nil {
		return errRefused
	}
	process, err := r.process()
	if err != nil {
		return err
	}
	worker, err := r.requests.workers.reserve(process)
	if err != nil {
		return err
	}
	if !r.requests.listener.valid(r.ID) {
		worker.release() // before the reservation, the number may have passed to another process
		return errGone
	}
	accepted, err := awaitConnection(r.requests.context, r.requests.decider, r.requests.task, worker)
	if err != nil {
		return unix.ECONNABORTED
	}
	defer accepted.close()
	return r.place(accepted)
}

// place puts every descriptor at its number. It places the connection last, together with
// the call's return. The worker waits until then, so it never sees an incomplete session.
// If a descriptor cannot be placed, the call fails, the connection is closed, and the
// worker gets no other connection.
func (r *request) place(accepted *Accepted) error {
	numbers := accepted.numbers()
	last := slices.Index(numbers, accepted.Connection)
	numbers = append(slices.Delete(numbers, last, last+1), accepted.Connection)
	for i, number := range numbers {
		flags := uint32(unix.SECCOMP_ADDFD_FLAG_SETFD)
		if i == len(numbers)-1 {
			flags |= unix.SECCOMP_ADDFD_FLAG_SEND
		}
		// Fd also makes the file blocking, as workers expect it.
		errno := r.requests.listener.inject(injection{ID: r.ID, Flags: flags,
			Source: uint32(accepted.Descriptors[number].Fd()), New: uint32(number)})
		if errno != 0 {
			return unix.ECONNABORTED
		}
	}
	return nil
}

// send asks the monitor about one write to a checked connection or channel, and lets the
// kernel execute it. This is safe: the decision is about the descriptor's number, which
// is a value and not memory. The number cannot come to mean something unchecked: nothing
// can be duplicated onto a reserved number or away from it, closing it has no effect, and
// only the monitor places files there. The decision does not depend on the bytes that are
// written.
func (r *request) send() error {
	number := r.descriptor(0)
	from, err := r.caller()
	if err != nil {
		return err
	}
	err = r.requests.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.requests.task, from, number)
	})
	if err != nil {
		return unix.EPERM
	}
	return r.proceed()
}
