// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

func runTitle(verb string, r api.TaskRunRequest) string {
	return verb + " run " + r.ID + " of task " + r.Pipeline + "/" + r.Task
}

// sameLife refuses requests for an earlier process of this monitor, which has ended its tasks.
func (m *Monitor) sameLife(title string, r api.TaskRunRequest) error {
	if r.Started.IsZero() || r.Started.Equal(m.started) {
		return nil
	}
	return api.PreconditionFailed(title, "ask for its status, and decide anew", "the monitor has started anew since")
}

// StartRun implements [api.Service].
func (m *Monitor) StartRun(_ context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	title := runTitle("start", request)
	if err := m.sameLife(title, request); err != nil {
		return api.TaskRun{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	t, err := m.task(title, request.Pipeline, request.Task)
	if err != nil {
		return api.TaskRun{}, err
	}
	p, err := m.pipeline(title, request.Pipeline)
	if err != nil {
		return api.TaskRun{}, err
	}
	// Whoever asked may be gone before the program has begun. The start is not cut short by that: the run
	// would have failed, and the request that is repeated under its name would start nothing.
	err = m.startTask(m.context, p, starting(request.ID), request.Task)
	switch {
	case errors.Is(err, pipeline.ErrBusy):
		return api.TaskRun{}, api.Conflict(title, "wait until it has ended, or stop it", "%v", err)
	case err != nil:
		return api.TaskRun{}, api.Conflict(title, "", "%v", err)
	}
	run, err := t.Run(request.ID)
	return found(title, run, err)
}

// AwaitRun implements [api.Service].
func (m *Monitor) AwaitRun(ctx context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	title := runTitle("wait for", request)
	if err := m.sameLife(title, request); err != nil {
		return api.TaskRun{}, err
	}
	t, err := m.task(title, request.Pipeline, request.Task)
	if err != nil {
		return api.TaskRun{}, err
	}
	run, err := t.AwaitRun(ctx, request.ID)
	return found(title, run, err)
}

// StopRun implements [api.Service].
func (m *Monitor) StopRun(ctx context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	title := runTitle("stop", request)
	if err := m.sameLife(title, request); err != nil {
		return api.TaskRun{}, err
	}
	t, err := m.task(title, request.Pipeline, request.Task)
	if err != nil {
		return api.TaskRun{}, err
	}
	limited, cancel := context.WithTimeout(ctx, pipeline.StopTimeout)
	defer cancel()
	if err := t.StopRun(limited, request.ID); err != nil {
		return api.TaskRun{}, api.Conflict(title, "", "%v", err)
	}
	run, err := t.Run(request.ID)
	return found(title, run, err)
}

func found(title string, run *pipeline.Run, err error) (api.TaskRun, error) {
	switch {
	case errors.Is(err, pipeline.ErrUnknownRun):
		return api.TaskRun{}, api.NotFound(title, "start it", "%v", err)
	case err != nil:
		return api.TaskRun{}, err
	}
	return *run, nil
}
