// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"fmt"
)

// backend implements [Backend] with Landlock and seccomp.
type backend struct{ mounts *mounts }

// New returns the backend of this operating system.
func New(Options) Backend {
	removeAbandonedCgroups()
	return backend{newMounts(mountsMax())}
}

// Start implements [Backend].
func (backend) Start(ctx context.Context, spec Spec, decider Decider) (Task, error) {
	here := machine{landlock: landlockABI(), notification: notificationAvailable() && filterFlagAvailable(),
		hidesReads: canHideReads(), mounts: mountsAvailable()}
	if spec.Confined && len(spec.Command) > 0 {
		var err error
		if here.executed, err = Executed(spec.Command[0], spec.Runtime); err != nil {
			return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
		}
	}
	todo, err := planOf(spec, here)
	if err != nil {
		return nil, err
	}
	launch, err := begin(spec, todo)
	if err != nil {
		return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
	}
	if len(todo.Filter) > 0 {
		launch.listener = true
		launch.attend = func(t *task, notify int) (attendance, error) {
			return attendTo(t, listener(notify), spec, todo, decider)
		}
	}
	task, err := launch.finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
	}
	return task, nil
}

// PrepareNative implements [Backend].
func (b backend) PrepareNative(directories []string) (Native, error) {
	return prepareMounts(b.mounts, directories)
}

// Supervises implements [Backend].
func (backend) Supervises() bool { return false }

// Probe implements [Backend].
func (backend) Probe() Report { return probe() }
