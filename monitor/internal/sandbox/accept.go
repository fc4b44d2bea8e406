// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"context"
	"fmt"
	"maps"
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

// numbers returns the descriptor numbers in ascending order. It returns an error if one
// of them is not reserved, or if the connection is not among them.
func (a *Accepted) numbers() ([]int, error) {
	numbers := slices.Sorted(maps.Keys(a.Descriptors))
	if !slices.Contains(numbers, a.Connection) || numbers[0] < wire.FDMonitor ||
		numbers[len(numbers)-1] >= wire.FDReservedEnd {
		return nil, fmt.Errorf("descriptors %v with connection %d are not those of a session", numbers, a.Connection)
	}
	return numbers, nil
}

// cancelWhenGone cancels the wait for a connection when its worker has ended.
func cancelWhenGone(ctx context.Context, worker Worker, cancel context.CancelFunc) {
	select {
	case <-worker.Gone():
		cancel()
	case <-ctx.Done():
	}
}
