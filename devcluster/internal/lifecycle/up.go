// SPDX-License-Identifier: BSD-2-Clause

// Package lifecycle starts, finds and stops the devcluster's process.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"shai.dev/devcluster/internal/directory"
	"shai.dev/devcluster/internal/server"
)

const (
	// poll is the interval at which a condition is checked that gives no notification.
	poll = 50 * time.Millisecond
	// startPatience is far longer than a start takes on a slow, busy machine.
	startPatience = 2 * time.Minute
	// StopPatience is longer than any orderly stop takes.
	StopPatience = 30 * time.Second
)

// An Endpoint is the address of a running devcluster.
type Endpoint struct {
	Kubeconfig string `json:"kubeconfig"` // path
	Server     string `json:"server"`     // URL
	Process    int    `json:"pid"`
	Directory  string `json:"directory"`
	Version    string `json:"version"` // of Kubernetes
}

func endpoint(d directory.Directory, port, process int) Endpoint {
	return Endpoint{d.Kubeconfig(), server.URL(port), process, string(d), server.Version()}
}

// Up describes the devcluster to start.
type Up struct {
	Directory directory.Directory
	Port      int          // 0: that of the last run if it is free, or else any
	Progress  func(string) // called with each step, as a text for people
}

// Background starts the devcluster if none is running, and returns when it serves.
func (u Up) Background(ctx context.Context) (Endpoint, error) {
	ctx, cancel := u.patience(ctx)
	defer cancel()
	process, err := u.Directory.Holder()
	if err != nil {
		return Endpoint{}, err
	}
	if process != 0 {
		return u.join(ctx)
	}
	c, err := launch(u.Directory, u.Port, false)
	if err != nil {
		return Endpoint{}, err
	}
	defer c.pipe.Close()
	at, err := c.untilReady(ctx, u.Progress)
	if errors.Is(err, errHeld) {
		return u.join(ctx)
	}
	return at, err
}

// Foreground starts the devcluster, calls ready when it serves, and stops it when the
// context ends. It also stops when this process is killed.
func (u Up) Foreground(ctx context.Context, ready func(Endpoint) error) error {
	c, err := launch(u.Directory, u.Port, true)
	if err != nil {
		return err
	}
	defer c.pipe.Close()
	starting, cancel := u.patience(ctx)
	at, err := c.untilReady(starting, u.Progress)
	cancel()
	if errors.Is(err, errHeld) {
		process, err := u.Directory.Holder()
		return errors.Join(err, &directory.HeldError{Directory: u.Directory, Process: process})
	}
	if err != nil {
		return err
	}
	if err := ready(at); err != nil {
		c.stop()
		return errors.Join(err, c.untilEnded(ctx, u.Progress))
	}
	return c.untilEnded(ctx, u.Progress)
}

func (u Up) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("not ready after %s", startPatience))
}

// join waits until the devcluster that already has the directory serves.
func (u Up) join(ctx context.Context) (Endpoint, error) {
	var state directory.State
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		process, err := u.Directory.Holder()
		if err == nil && process == 0 {
			err = fmt.Errorf("it has ended: see %s", u.Directory.Log())
		}
		if err == nil {
			state, err = u.Directory.State()
		}
		return state.Ready && state.Process == process, err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("wait for the devcluster that another command started in %s: %w", u.Directory,
			err)
	}
	if u.Port != 0 && u.Port != state.Port {
		return Endpoint{}, fmt.Errorf("the devcluster in %s is up already, on port %d instead of %d: run devcluster down first",
			u.Directory, state.Port, u.Port)
	}
	u.Progress("it is up already")
	return endpoint(u.Directory, state.Port, state.Process), nil
}
