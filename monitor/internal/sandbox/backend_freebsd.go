// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// backend implements [Backend] with Capsicum. If shai.ko is loaded, tasks use it too: a
// task finds out about it by itself, when it makes its workers.
type backend struct{}

// New returns the backend of this operating system.
func New(Options) Backend { return backend{} }

// Start implements [Backend].
func (backend) Start(ctx context.Context, spec Spec, decider Decider) (Task, error) {
	in, err := spec.planned()
	if err == nil {
		err = in.Check()
	}
	if err != nil {
		return nil, err
	}
	var answering *requests
	if spec.Confined {
		if feature := capsicumFeature(); !feature.Present {
			return nil, fmt.Errorf("task %s: Capsicum not found (%s): %w", spec.Name, feature.Needed, plan.ErrUnsupported)
		}
		q, theirs, err := newRequests(spec, decider)
		if err != nil {
			return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
		}
		defer theirs.Close()
		answering = q
		spec.Descriptors = withRequests(spec.Descriptors, theirs)
	}
	started, err := start(ctx, spec, answering)
	if err != nil {
		if answering != nil {
			answering.stop()
		}
		return nil, fmt.Errorf("start task %s: %w", spec.Name, err)
	}
	return started, nil
}

func withRequests(descriptors map[int]*os.File, socket *os.File) map[int]*os.File {
	all := maps.Clone(descriptors)
	if all == nil {
		all = map[int]*os.File{}
	}
	all[wire.FDRequests] = socket
	return all
}

func start(ctx context.Context, spec Spec, answering *requests) (*task, error) {
	in, err := spec.planned()
	if err != nil {
		return nil, err
	}
	todo, err := plan.ForFreeBSD(in)
	if err != nil {
		return nil, err
	}
	if answering != nil {
		if err := answering.keepImage(todo.Capsicum); err != nil {
			return nil, err
		}
	}
	launch, err := beginWithKeeper(spec, launchPlan{Plan: todo})
	if err != nil {
		return nil, err
	}
	if answering != nil {
		launch.attend = func(t *task, _ int) (attendance, error) {
			answering.task = t
			go answering.serve()
			return answering, nil
		}
	}
	return launch.finish(ctx)
}

// decisions are the list that a stub answers from.
type decisions struct{ file *os.File }

// Grant implements [Native].
func (d decisions) Grant() (Grant, error) { return Grant{Decisions: d.file, Release: func() {}}, nil }

// Close implements [Native].
func (d decisions) Close() { d.file.Close() }

// PrepareNative implements [Backend]. A directory's base name is the number of its class.
func (backend) PrepareNative(directories []string) (Native, error) {
	classes := make([]uint32, 0, len(directories))
	for _, directory := range directories {
		class, err := strconv.ParseUint(filepath.Base(directory), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("prepare decisions: %s is not a class", directory)
		}
		if _, err := os.Stat(directory); err != nil {
			return nil, fmt.Errorf("prepare decisions: %w", err)
		}
		classes = append(classes, uint32(class))
	}
	slices.Sort(classes)
	text, err := wire.EncodeDecisions(classes)
	if err != nil {
		return nil, fmt.Errorf("prepare decisions: %w", err)
	}
	file, err := memoryHolding("decisions", text)
	if err != nil {
		return nil, err
	}
	if err := limitRights(int(file.Fd()), plan.DecisionsRights); err != nil {
		file.Close()
		return nil, fmt.Errorf("prepare decisions: %w", err)
	}
	return decisions{file}, nil
}

// Supervises implements [Backend].
func (backend) Supervises() bool { return false }

// AsksBeneath implements [Backend].
func (backend) AsksBeneath() bool { return false }

// Probe implements [Backend].
func (backend) Probe() Report { return probe() }
