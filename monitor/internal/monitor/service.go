// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/wire"
)

var _ api.Service = (*Monitor)(nil)

// Ready implements [api.Service].
func (m *Monitor) Ready(context.Context) error {
	if m.machine.Enforcement == "none" {
		return api.Unavailable("confine tasks", "run shai doctor", "this machine cannot confine tasks")
	}
	return m.audit.Failing()
}

// Status implements [api.Service].
func (m *Monitor) Status(ctx context.Context) (api.Status, error) {
	status := api.Status{
		Version: m.options.Version, Started: m.started, Ready: true, Machine: m.machine,
		Pipelines: []api.PipelineStatus{}, Counters: m.metrics.Counters(), FactSources: m.sources.status(),
	}
	if err := m.Ready(ctx); err != nil {
		status.Ready, status.Reason = false, err.Error()
	}
	m.mu.RLock()
	bundle, applied := m.bundle, m.applied
	pipelines := slices.Collect(maps.Values(m.pipelines))
	m.mu.RUnlock()
	if bundle != nil {
		inForce := m.state().Bundle()
		status.Bundle = &api.BundleStatus{Version: inForce.Version, Hash: inForce.Hash, Applied: applied,
			Objects: bundle.Len(), Label: inForce.Label}
	}
	slices.SortFunc(pipelines, func(a, b *pipeline.Pipeline) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, p := range pipelines {
		status.Pipelines = append(status.Pipelines, m.statusOf(p))
	}
	return status, nil
}

// statusOf returns a pipeline's status, with the monitor's information about it.
func (m *Monitor) statusOf(p *pipeline.Pipeline) api.PipelineStatus {
	now, state := p.Status(), m.state()
	status := api.PipelineStatus{
		Name: p.Name(), Mode: now.Mode.String(), Revocation: p.Spec().Revocation, User: now.User,
		Conduits: uint64(state.Conduits()), Classes: uint64(state.Classes()),
		Tasks: []api.TaskStatus{}, Sessions: []api.SessionStatus{}, SessionTotal: now.SessionTotal,
		Unreadable: m.unreadableOf(p),
	}
	for _, task := range now.Tasks {
		status.Tasks = append(status.Tasks, api.TaskStatus(task))
	}
	for _, session := range now.Sessions {
		status.Sessions = append(status.Sessions, api.SessionStatus(session))
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if known := m.runs[p.Name()]; known != nil {
		last := known.last
		status.LastAnalysis = &last
	}
	return status
}

// pipeline finds a pipeline by name. An empty name means the only one.
func (m *Monitor) pipeline(title, name string) (*pipeline.Pipeline, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := slices.Sorted(maps.Keys(m.pipelines))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if p := m.pipelines[name]; p != nil {
		return p, nil
	}
	if len(names) == 0 {
		return nil, api.NotFound(title, "apply manifests first: shai apply -f FILE", "there is no pipeline")
	}
	return nil, api.NotFound(title, "name one of: "+strings.Join(names, ", "), "there is no pipeline %q", name)
}

// SetMode implements [api.Service].
func (m *Monitor) SetMode(ctx context.Context, name, mode string) (api.PipelineStatus, error) {
	title := "set mode of pipeline " + name
	next, err := wire.ParseMode(mode)
	if err != nil {
		return api.PipelineStatus{}, api.Invalid(title, "", "%v", err)
	}
	// A pipeline that is being replaced would get the mode, and the one that takes its place not.
	m.changing.Lock()
	defer m.changing.Unlock()
	p, err := m.pipeline(title, name)
	if err != nil {
		return api.PipelineStatus{}, err
	}
	if (next == wire.ModeBaseline) != (p.Mode() == wire.ModeBaseline) {
		return api.PipelineStatus{}, api.Conflict(title,
			"set spec.mode in the manifest and apply it: the tasks are then restarted",
			"the sandbox of a running task cannot be added or removed")
	}
	if err := p.SwitchTo(next); err != nil {
		return api.PipelineStatus{}, api.Conflict(title, "stop the task first, and start it afterwards", "%v", err)
	}
	return m.statusOf(p), nil
}

// task finds a task of a pipeline.
func (m *Monitor) task(title, pipelineName, name string) (*pipeline.Task, error) {
	p, err := m.pipeline(title, pipelineName)
	if err != nil {
		return nil, err
	}
	if t := p.Task(name); t != nil {
		return t, nil
	}
	return nil, noTask(title, p, name)
}

func noTask(title string, p *pipeline.Pipeline, name string) error {
	return api.NotFound(title, "name one of: "+strings.Join(p.Tasks(), ", "), "pipeline %s has no task %q", p.Name(),
		name)
}

// StartTask implements [api.Service].
func (m *Monitor) StartTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	title := "start task " + pipelineName + "/" + name
	// The start may put a stored analysis in force. It must be that of the current state,
	// and of a pipeline that is not being replaced.
	m.changing.Lock()
	defer m.changing.Unlock()
	p, err := m.pipeline(title, pipelineName)
	if err != nil {
		return api.TaskStatus{}, err
	}
	if p.Task(name) == nil {
		return api.TaskStatus{}, noTask(title, p, name)
	}
	if err := m.startTask(ctx, p, starting(""), name); err != nil {
		return api.TaskStatus{}, api.Conflict(title, "", "%v", err)
	}
	return api.TaskStatus(p.Task(name).Status()), nil
}

// StopTask implements [api.Service].
func (m *Monitor) StopTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	title := "stop task " + pipelineName + "/" + name
	t, err := m.task(title, pipelineName, name)
	if err != nil {
		return api.TaskStatus{}, err
	}
	if err := t.Stop(ctx); err != nil {
		return api.TaskStatus{}, api.Conflict(title, "", "%v", err)
	}
	return api.TaskStatus(t.Status()), nil
}

// WaitTask implements [api.Service]. It waits until a task that always runs can serve, or
// until a task that runs once has ended.
func (m *Monitor) WaitTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	t, err := m.task("wait for task "+pipelineName+"/"+name, pipelineName, name)
	if err != nil {
		return api.TaskStatus{}, err
	}
	err = t.Wait(ctx)
	return api.TaskStatus(t.Status()), err
}

// maxLogText limits the text that is read of a log, in bytes.
const maxLogText = 1 << 20

// TaskLog implements [api.Service].
func (m *Monitor) TaskLog(_ context.Context, request api.TaskLogRequest) (api.TaskLog, error) {
	log, err := m.readLog(request.Pipeline, request.Task,
		pipeline.Reader{Principal: request.As, Region: request.Region},
		pipeline.Excerpt{Previous: request.Previous, Limit: maxLogText})
	return api.TaskLog{Label: log.Label, Text: string(log.Text), Shortened: log.Before != ""}, err
}

// readLog reads a part of what a task has printed. The error is a problem if a user can do something
// about it.
func (m *Monitor) readLog(of, name string, reader pipeline.Reader, wanted pipeline.Excerpt) (pipeline.Log, error) {
	title := "read the log of task " + of + "/" + name
	t, err := m.task(title, of, name)
	if err != nil {
		return pipeline.Log{}, err
	}
	log, err := t.ReadLog(reader, wanted)
	switch {
	case errors.Is(err, pipeline.ErrDenied):
		return pipeline.Log{}, api.Denied(title, "read it as an administrator, without a principal", "%s", err)
	case errors.Is(err, pipeline.ErrUnrecorded):
		return pipeline.Log{}, api.Unavailable(title, "free space for the audit log", "%v", err)
	case errors.Is(err, tasklog.ErrMoved):
		return pipeline.Log{}, api.Conflict(title, "", "%v", err)
	case err != nil:
		return pipeline.Log{}, fmt.Errorf("%s: %w", title, err)
	}
	return log, nil
}
