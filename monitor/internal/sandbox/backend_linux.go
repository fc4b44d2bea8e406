// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"fmt"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// backend implements [Backend] with Landlock and seccomp.
type backend struct {
	supervisor string // path of shai-supervisor
}

// New returns the backend of this operating system.
func New(options Options) Backend {
	removeAbandonedCgroups()
	return backend{options.Supervisor}
}

// Start implements [Backend].
func (b backend) Start(ctx context.Context, spec Spec, decider Decider) (Task, error) {
	in, err := spec.planned()
	if err != nil {
		return nil, err
	}
	in.Machine = plan.Machine{Landlock: landlockABI(), Notification: notificationAvailable() && filterFlagAvailable(),
		HidesReads: canHideReads(), Mounts: mountsAvailable()}
	if spec.Confined && len(spec.Command) > 0 {
		if in.Machine.Executed, err = Executed(spec.Command[0], spec.Runtime); err != nil {
			return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
		}
	}
	todo, err := plan.ForLinux(in)
	if err != nil {
		return nil, err
	}
	launch, err := b.launch(spec, launchPlan{Plan: todo}, decider)
	if err != nil {
		return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
	}
	task, err := launch.finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
	}
	return task, nil
}

// launch starts the process that is the task's parent: its supervisor if it has one.
func (b backend) launch(spec Spec, todo launchPlan, decider Decider) (*launch, error) {
	if !isSupervised(spec) {
		launch, err := beginWithKeeper(spec, todo)
		if err == nil && len(todo.Filter) > 0 {
			launch.listener = true
			launch.attend = func(t *task, notify int) (attendance, error) {
				return attendTo(t, listener(notify), spec, todo, decider)
			}
		}
		return launch, err
	}
	s, process, err := newSupervisor(spec, b.supervisor)
	if err != nil {
		return nil, err
	}
	if unsealable(spec) == nil {
		// The supervisor adds the file, after the others. Without it libshai does not try to seal a worker.
		todo.Numbers = append(todo.Numbers, wire.FDRollback)
	}
	launch, err := begin(spec, todo, process)
	if err != nil {
		return nil, err
	}
	s.control = launch.control
	launch.listener = len(todo.Filter) > 0
	launch.attend = func(t *task, notify int) (attendance, error) {
		return s.attend(t, listener(notify), spec, todo, decider)
	}
	return launch, nil
}

// PrepareNative implements [Backend]. There is nothing to prepare: supervisors give sessions
// the directories.
func (backend) PrepareNative([]string) (Native, error) { return nothingNative{}, nil }

// nothingNative is a [Native] without directories.
type nothingNative struct{}

func (nothingNative) Grant() (Grant, error) { return Grant{Release: func() {}}, nil }
func (nothingNative) Close()                {}

// Supervises implements [Backend].
func (backend) Supervises() bool { return true }

// AsksBeneath implements [Backend].
func (backend) AsksBeneath() bool { return true }

// Probe implements [Backend].
func (b backend) Probe() Report {
	report := probe()
	report.Features = append(report.Features, supervising(b.supervisor))
	return report
}
