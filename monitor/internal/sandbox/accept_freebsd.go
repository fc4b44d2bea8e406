// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"

	"shai.dev/monitor/internal/wire"
)

// watchedWorker is a worker that is watched until it has ended, or until it is released
// because no session has begun.
type watchedWorker interface {
	Worker
	release()
}

// awaitConnection runs the monitor's Accept in a goroutine of its own. If Accept does not
// notice that the worker has died, the files that it returns later are closed. ctx also
// ends with the worker.
func awaitConnection(ctx context.Context, decider Decider, task Task, worker watchedWorker) (*Accepted, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go cancelWhenGone(ctx, worker, cancel)
	type result struct {
		accepted *Accepted
		err      error
	}
	results := make(chan result, 1)
	go func() {
		outcome := result{err: syscall.ECONNABORTED}
		defer func() {
			recovered(recover()) // leaves the denial in place
			if outcome.err != nil {
				worker.release()
			}
			results <- outcome
		}()
		accepted, err := decider.Accept(ctx, task, worker)
		if err == nil && accepted == nil {
			err = syscall.ECONNABORTED
		}
		if err == nil {
			err = accepted.complete()
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

// close closes all files. a may be nil.
func (a *Accepted) close() {
	if a == nil {
		return
	}
	for _, file := range a.Descriptors {
		file.Close()
	}
}

const (
	standardOutput = 1
	standardError  = 2
)

// complete checks the monitor's descriptors, and adds those that every session gets: the
// null device as standard output and error, since what a session prints must not get into
// the task's log. After an error all files are closed.
func (a *Accepted) complete() (err error) {
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	numbers := a.numbers()
	if !slices.Contains(numbers, a.Connection) || numbers[0] < wire.FDMonitor ||
		numbers[len(numbers)-1] >= wire.FDReservedEnd {
		return fmt.Errorf("descriptors %v with connection %d are not those of a session", numbers, a.Connection)
	}
	for _, number := range []int{standardOutput, standardError} {
		file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("silence a session: %w", err)
		}
		a.Descriptors[number] = file
	}
	return nil
}

// numbers returns the descriptor numbers in ascending order.
func (a *Accepted) numbers() []int { return slices.Sorted(maps.Keys(a.Descriptors)) }

// cancelWhenGone cancels the wait for a connection when its worker has ended.
func cancelWhenGone(ctx context.Context, worker Worker, cancel context.CancelFunc) {
	select {
	case <-worker.Gone():
		cancel()
	case <-ctx.Done():
	}
}
