// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// namesOf returns the names that metrics have as labels.
func namesOf(resolved *manifest.Resolved) (names metrics.Names) {
	for _, task := range resolved.Tasks {
		names.Tasks = append(names.Tasks, task.Metadata.Name)
	}
	for _, conduit := range resolved.Pipeline.Spec.Conduits {
		names.Conduits = append(names.Conduits, conduit.Name)
	}
	for _, p := range resolved.Policies {
		counted := metrics.Policy{Name: p.Metadata.Name}
		if mode := catalog.Mode(p.Spec.Mode); mode == catalog.Audit || mode == catalog.Warn {
			counted.Relaxed = p.Spec.Mode
		}
		names.Policies = append(names.Policies, counted)
	}
	return names
}

// manifestName returns the name in the manifest of a conduit: of a file or tuple, the one whose
// pattern matches it. It is empty for what belongs to no conduit of the pipeline.
func (p *Pipeline) manifestName(conduit policy.Conduit) string {
	switch conduit.Kind {
	case policy.ConnectionConduit:
		return conduit.Name
	case policy.PipeConduit, policy.DescriptorConduit:
		name, _, _ := strings.Cut(strings.TrimPrefix(conduit.Name, p.name+"/"), "/")
		return name
	}
	name, own := strings.CutPrefix(p.services.state().SetOf(conduit), p.name+"/")
	if !own {
		return ""
	}
	return name
}

// observed is what metrics see of a task. It has a lock of its own: that of the task is held while
// its program starts.
type observed struct {
	state atomic.Pointer[string]

	mu      sync.Mutex
	used    sandbox.CPU  // by programs that have ended
	running sandbox.Task // nil: none
	serving *supervised
}

// turn changes the task's state. Called with mu held, or before others know the task.
func (t *Task) turn(state string) {
	t.state = state
	t.seen.state.Store(&state)
}

func (o *observed) begin(running sandbox.Task, serving *supervised) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running, o.serving = running, serving
}

// end notes what the program has used that has ended.
func (o *observed) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = o.cpu()
	o.running, o.serving = nil, nil
}

// cpu returns what all programs of the task have used. Called with mu held.
func (o *observed) cpu() sandbox.CPU {
	total := o.used
	if o.running != nil {
		now := o.running.CPU()
		total.Task += now.Task
		total.Supervisor += now.Supervisor
	}
	return total
}

// Read writes what metrics say about the pipeline as it is now.
func (p *Pipeline) Read(to *metrics.Sheet) {
	kept := p.services.Metrics
	p.counts.Set(to, kept.PipelineMode, 1, p.Mode().String())
	p.readFlows(to)
	current, stale, age := p.stale.look(time.Now())
	p.counts.Set(to, kept.CapabilitySets, float64(current), "current")
	p.counts.Set(to, kept.CapabilitySets, float64(stale), "stale")
	p.counts.Set(to, kept.CapabilitySetsStale, age.Seconds())
	for _, name := range p.order {
		p.tasks[name].read(to)
	}
}

func (t *Task) read(to *metrics.Sheet) {
	kept, counts := t.pipeline.services.Metrics, t.pipeline.counts
	counts.Set(to, kept.TaskState, 1, t.name, *t.seen.state.Load())
	counts.Set(to, kept.TaskEnforcement, 1, t.name, t.enforcement())
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	used := t.seen.cpu()
	counts.Set(to, kept.CPU, used.Task.Seconds(), t.name, "task")
	counts.Set(to, kept.CPU, used.Supervisor.Seconds(), t.name, "supervisor")
	if t.seen.serving == nil {
		return
	}
	if now := t.seen.serving.counts.Load(); now != nil {
		counts.Set(to, kept.Workers, float64(now.RolledBack), t.name, "rolled_back")
		counts.Set(to, kept.Workers, float64(now.Forked), t.name, "forked")
	}
}
