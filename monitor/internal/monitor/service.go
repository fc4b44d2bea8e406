// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/wire"
)

var _ api.Service = (*Monitor)(nil)

// maxSessionsShown limits the number of sessions in a status.
const maxSessionsShown = 100

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
		Pipelines: []api.PipelineStatus{}, Counters: m.metrics.counters(), FactSources: m.sources.status(),
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
	slices.SortFunc(pipelines, func(a, b *pipeline) int { return cmp.Compare(a.name, b.name) })
	for _, p := range pipelines {
		status.Pipelines = append(status.Pipelines, m.statusOf(p))
	}
	return status, nil
}

// statusOf returns a pipeline's status, with the monitor's information about it.
func (m *Monitor) statusOf(p *pipeline) api.PipelineStatus {
	status := p.status()
	status.Unreadable = m.unreadableOf(p)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if run, known := m.runs[p.name]; known {
		status.LastAnalysis = &run
	}
	return status
}

func (p *pipeline) status() api.PipelineStatus {
	state := p.services.state()
	status := api.PipelineStatus{
		Name: p.name, Mode: modes[p.currentMode()], Revocation: p.spec.Revocation,
		Conduits: uint64(state.Conduits()), Classes: uint64(state.Classes()),
		Tasks: []api.TaskStatus{}, Sessions: []api.SessionStatus{},
	}
	for _, name := range p.order {
		status.Tasks = append(status.Tasks, p.tasks[name].status())
	}
	if p.user != nil {
		status.User = p.user.ID
	}
	sessions := p.sessions.live()
	status.SessionTotal = len(sessions)
	for _, s := range sessions[:min(len(sessions), maxSessionsShown)] {
		status.Sessions = append(status.Sessions, s.status())
	}
	return status
}

func (s *session) status() api.SessionStatus {
	who := s.subject()
	status := api.SessionStatus{
		Instance: who.instance, Task: s.task.name, Region: s.region, Peer: s.peer.String(),
		Slot: s.slot.number, Mode: modes[s.mode], Since: s.started,
	}
	if who.session != nil {
		status.Principal = who.session.Principal
	}
	return status
}

// pipeline finds a pipeline by name. An empty name means the only one.
func (m *Monitor) pipeline(title, name string) (*pipeline, error) {
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
	p, err := m.pipeline(title, name)
	if err != nil {
		return api.PipelineStatus{}, err
	}
	next, err := modeOf(mode)
	if err != nil {
		return api.PipelineStatus{}, api.Invalid(title, "", "%v", err)
	}
	previous := p.currentMode()
	if (next == wire.ModeBaseline) != (previous == wire.ModeBaseline) {
		return api.PipelineStatus{}, api.Conflict(title,
			"set spec.mode in the manifest and apply it: the tasks are then restarted",
			"the sandbox of a running task cannot be added or removed")
	}
	p.switchTo(next)
	if err := p.record(audit.Event{
		Kind: audit.Mode, Operation: "set mode", Allowed: true, Reason: modes[previous] + " to " + mode,
	}); err != nil {
		m.logger.Error("audit record is lost", "error", err)
	}
	return m.statusOf(p), nil
}

// task finds a task of a pipeline.
func (m *Monitor) task(title, pipelineName, name string) (*runningTask, error) {
	p, err := m.pipeline(title, pipelineName)
	if err != nil {
		return nil, err
	}
	if t := p.tasks[name]; t != nil {
		return t, nil
	}
	return nil, api.NotFound(title, "name one of: "+strings.Join(p.order, ", "), "pipeline %s has no task %q", p.name,
		name)
}

// StartTask implements [api.Service].
func (m *Monitor) StartTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	title := "start task " + pipelineName + "/" + name
	// The start may put a stored analysis in force. It must be that of the current state,
	// and of a pipeline that is not being replaced.
	m.changing.Lock()
	defer m.changing.Unlock()
	t, err := m.task(title, pipelineName, name)
	if err != nil {
		return api.TaskStatus{}, err
	}
	if err := m.startTask(ctx, t.pipeline, name); err != nil {
		return api.TaskStatus{}, api.Conflict(title, "", "%v", err)
	}
	return t.status(), nil
}

// StopTask implements [api.Service].
func (m *Monitor) StopTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	title := "stop task " + pipelineName + "/" + name
	t, err := m.task(title, pipelineName, name)
	if err != nil {
		return api.TaskStatus{}, err
	}
	if err := t.stop(ctx); err != nil {
		return api.TaskStatus{}, api.Conflict(title, "", "%v", err)
	}
	return t.status(), nil
}

// WaitTask implements [api.Service]. It waits until a task that always runs can serve, or
// until a task that runs once has ended.
func (m *Monitor) WaitTask(ctx context.Context, pipelineName, name string) (api.TaskStatus, error) {
	t, err := m.task("wait for task "+pipelineName+"/"+name, pipelineName, name)
	if err != nil {
		return api.TaskStatus{}, err
	}
	if t.spec.Run == "Once" {
		return m.waitEnded(ctx, t)
	}
	t.mu.Lock()
	ready := t.ready
	t.mu.Unlock()
	return waitFor(ctx, t, ready)
}

func (m *Monitor) waitEnded(ctx context.Context, t *runningTask) (api.TaskStatus, error) {
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	return waitFor(ctx, t, ended)
}

// waitFor waits for an event of a task. A nil event means that the task was never
// started.
func waitFor(ctx context.Context, t *runningTask, event <-chan struct{}) (api.TaskStatus, error) {
	if event == nil {
		return t.status(), nil
	}
	select {
	case <-event:
		return t.status(), nil
	case <-ctx.Done():
		return t.status(), ctx.Err()
	}
}
