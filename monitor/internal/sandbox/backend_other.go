// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd && !(linux && amd64)

package sandbox

import (
	"context"
	"fmt"
	"runtime"

	"shai.dev/monitor/internal/sandbox/plan"
)

// backend refuses everything: if the machine cannot confine a task, the task does not
// start.
type backend struct{}

// New returns the backend of this operating system.
func New(Options) Backend { return backend{} }

// LaunchMain does nothing where no launcher is needed.
func LaunchMain() {}

func unsupported() error {
	return fmt.Errorf("%s on %s has no sandbox backend (Linux 6.7 on amd64 and FreeBSD 14 have one): %w", runtime.GOOS,
		runtime.GOARCH, plan.ErrUnsupported)
}

// Start implements [Backend].
func (backend) Start(context.Context, Spec, Decider) (Task, error) { return nil, unsupported() }

// PrepareNative implements [Backend].
func (backend) PrepareNative([]string) (Native, error) { return nil, unsupported() }

// Supervises implements [Backend].
func (backend) Supervises() bool { return false }

// AsksBeneath implements [Backend].
func (backend) AsksBeneath() bool { return false }

// Probe implements [Backend].
func (backend) Probe() Report {
	missing := Feature{Name: "backend", Found: "missing", Needed: "Linux 6.7 on amd64, or FreeBSD 14",
		Effect: "confines tasks"}
	return Report{System: runtime.GOOS + " " + runtime.GOARCH, Backend: "none",
		Enforcement: judge([]Feature{missing}, nil), Features: []Feature{missing}}
}
