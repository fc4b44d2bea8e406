// SPDX-License-Identifier: BSD-2-Clause

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"shai.dev/devcluster/internal/directory"
)

// An Ending is the way in which a devcluster ended.
type Ending int

// The ways in which a devcluster ends.
const (
	NotRunning Ending = iota
	WasKilled         // before, by something else
	Stopped           // in an orderly way
	HadToKill         // because it did not stop in time
)

// Down stops the devcluster, and returns when its process has ended. It kills a process
// that takes longer than patience.
func Down(ctx context.Context, d directory.Directory, patience time.Duration) (Ending, error) {
	process, err := d.Holder()
	if err != nil {
		return NotRunning, err
	}
	if process == 0 {
		state, err := d.State()
		if state.Process != 0 {
			return WasKilled, err
		}
		return NotRunning, err
	}
	if gone, err := signalAndWait(ctx, d, process, syscall.SIGTERM, patience); err != nil || gone {
		return Stopped, err
	}
	gone, err := signalAndWait(ctx, d, process, syscall.SIGKILL, StopPatience)
	if err == nil && !gone {
		err = fmt.Errorf("stop the devcluster in %s: process %d does not even end when it is killed: see its state with ps", d, process)
	}
	return HadToKill, err
}

// signalAndWait signals the process that holds the directory, and returns whether the
// process has released it in time.
func signalAndWait(ctx context.Context, d directory.Directory, process int, signal os.Signal,
	patience time.Duration) (gone bool, err error) {
	// The handle keeps meaning this process: after the lock has shown that it is still
	// the devcluster's, the number cannot come to mean another one.
	handle, err := os.FindProcess(process)
	if err != nil {
		return false, fmt.Errorf("find process %d: %w", process, err)
	}
	defer func() { _ = handle.Release() }()
	if now, err := d.Holder(); err != nil || now != process {
		return err == nil, err
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("stop the devcluster in %s: signal process %d: %w: is it another user's?", d, process,
			err)
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = wait.PollUntilContextCancel(patient, poll, true, func(context.Context) (bool, error) {
		now, err := d.Holder()
		return now != process, err
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}
