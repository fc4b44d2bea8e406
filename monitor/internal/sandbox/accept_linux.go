// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"maps"
	"os"
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
	ctx, cancel := context.WithCancel(r.supervisor.context)
	defer cancel()
	stopWatching, err := r.whenDead(process, cancel)
	if err != nil {
		return err
	}
	defer stopWatching()
	accepted, err := r.awaitConnection(ctx, process)
	if err != nil {
		return unix.ECONNABORTED
	}
	defer accepted.close()
	return r.place(accepted)
}

// awaitConnection runs the monitor's Accept apart: should it not notice that the
// worker is dead, what it returns later is closed.
func (r *request) awaitConnection(ctx context.Context, process int) (*Accepted, error) {
	type result struct {
		accepted *Accepted
		err      error
	}
	results := make(chan result, 1)
	go func() {
		outcome := result{err: unix.ECONNABORTED}
		defer func() {
			recovered(recover()) // leaves the denial in place
			results <- outcome
		}()
		accepted, err := r.supervisor.decider.Accept(ctx, r.supervisor.task, process)
		if err == nil && accepted == nil {
			err = unix.ECONNABORTED
		}
		outcome = result{accepted, err}
	}()
	select {
	case outcome := <-results:
		return outcome.accepted, outcome.err
	case <-ctx.Done():
		go func() { (<-results).accepted.close() }()
		return nil, ctx.Err()
	}
}

// close closes all files; nil has none.
func (a *Accepted) close() {
	if a == nil {
		return
	}
	for _, file := range a.Descriptors {
		file.Close()
	}
}

// place puts every descriptor at its number. The connection comes last, together
// with the call's return: until then the worker waits, so it never sees half of
// a session. If one cannot be placed, the call fails; the connection is closed,
// and the worker's next accept replaces every number again.
func (r *request) place(accepted *Accepted) error {
	numbers := slices.Sorted(maps.Keys(accepted.Descriptors))
	last := slices.Index(numbers, accepted.Connection)
	if last < 0 || numbers[0] < wire.FDMonitor || numbers[len(numbers)-1] >= wire.FDReservedEnd {
		return errRefused
	}
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

// whenDead calls back when the process ends, without occupying a thread. The
// returned function stops watching.
func (r *request) whenDead(process int, callback func()) (stop func(), err error) {
	descriptor, err := unix.PidfdOpen(process, unix.PIDFD_NONBLOCK)
	if err != nil || !r.supervisor.listener.valid(r.ID) {
		if err == nil {
			unix.Close(descriptor)
		}
		return nil, errGone
	}
	watched := os.NewFile(uintptr(descriptor), "worker") // non-blocking: the runtime polls it
	connection, err := watched.SyscallConn()
	if err != nil {
		watched.Close()
		return nil, err
	}
	go func() {
		ended := false
		_ = connection.Read(func(uintptr) bool {
			poll := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
			count, err := unix.Poll(poll, 0)
			ended = count > 0 && err == nil
			return ended
		})
		if ended {
			callback()
		}
	}()
	return func() { watched.Close() }, nil
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
	err = r.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.supervisor.task, process, number)
	})
	if err != nil {
		return unix.EPERM
	}
	return r.proceed()
}
