// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// pipeline is one pipeline of the bundle at work: its tasks, the conduits between
// them, and its sessions. It answers its tasks' sandboxes (see answers.go).
type pipeline struct {
	services *services
	name     string
	means    string // meaningOf the bundle that it was made for
	spec     manifest.PipelineSpec
	plan     *analysis.Plan
	order    []string // task names
	tasks    map[string]*runningTask
	egress   policy.Conduit
	mode     atomic.Uint32 // wire.Mode
	acceptor *acceptor     // nil until the task that listens starts
	keyValue *kvfilter.Store
	user     *sandbox.User // of its tasks; nil where they are the monitor's own

	conduits conduits
	slots    *slots
	sessions *sessions

	mu   sync.Mutex
	sets map[string]*capabilitySet // by instance
}

// bindFunc finds the policy that a reference names, in the state or in a candidate.
type bindFunc func(catalog.Reference) (*policy.Policy, error)

// newPipeline makes a resolved pipeline ready to start tasks; nothing runs yet.
func newPipeline(given *services, resolved *manifest.Resolved, means string, bind bindFunc) (_ *pipeline, err error) {
	spec := resolved.Pipeline.Spec
	p := &pipeline{
		services: given, name: resolved.Pipeline.Metadata.Name, means: means, spec: spec,
		tasks: map[string]*runningTask{}, egress: egressOf(spec), sets: map[string]*capabilitySet{},
	}
	p.sessions = newSessions(given.metrics.active.WithLabelValues(p.name))
	defer func() {
		if err != nil {
			p.closeConduits()
		}
	}()
	if p.plan, err = analysis.PlanOf(resolved); err != nil {
		return nil, err
	}
	mode, err := modeOf(spec.Mode)
	if err != nil {
		return nil, err
	}
	p.mode.Store(uint32(mode))
	if p.conduits, err = makeConduits(p.name, spec.Conduits); err != nil {
		return nil, err
	}
	for _, task := range resolved.Tasks {
		running, err := newRunningTask(p, task, bind)
		if err != nil {
			return nil, err
		}
		p.order = append(p.order, running.name)
		p.tasks[running.name] = running
	}
	p.slots = p.newSlots()
	return p, nil
}

// egressOf is the connection by which data leaves a pipeline.
func egressOf(spec manifest.PipelineSpec) (egress policy.Conduit) {
	for _, conduit := range spec.Conduits {
		if conduit.Kind == manifest.KindConnection && conduit.Egress {
			egress = policy.Conduit{Name: conduit.Name, Kind: policy.ConnectionConduit}
		}
	}
	return egress
}

// maxSessions bounds the sessions of a pipeline whose workers have no conduits with
// slots.
const maxSessions = 32

// newSlots makes as many slots as every slotted conduit of the workers has.
func (p *pipeline) newSlots() *slots {
	count := maxSessions
	for _, conduit := range p.spec.Conduits {
		for _, task := range p.tasks {
			if len(task.spec.Parameters) > 0 && (conduit.From == task.name || conduit.To == task.name) {
				count = min(count, max(conduit.Slots, 1))
			}
		}
	}
	channels := make([][]conduitPair, count)
	for _, task := range p.tasks {
		for _, place := range task.perSession {
			if place.capability.Kind != wire.KindChannel {
				continue
			}
			for number := range channels {
				channels[number] = append(channels[number], p.conduits.channel(place.end.conduit, number)...)
			}
		}
	}
	return newSlots(channels)
}

func (p *pipeline) closeConduits() {
	p.conduits.close()
	if p.acceptor != nil {
		p.acceptor.close()
	}
}

func (p *pipeline) currentMode() wire.Mode { return wire.Mode(p.mode.Load()) }

var modes = []string{wire.ModeBaseline: "baseline", wire.ModeDynamic: "dynamic", wire.ModeShai: "shai",
	wire.ModeAudit: "audit"}

func modeOf(name string) (wire.Mode, error) {
	for mode, known := range modes {
		if name == known {
			return wire.Mode(mode), nil
		}
	}
	return 0, fmt.Errorf("mode %q is unknown; use shai, dynamic, audit or baseline", name)
}

// intercepted counts one involvement of the monitor and how long it took.
func (p *pipeline) intercepted(kind string, took time.Duration) {
	p.services.metrics.interceptions.WithLabelValues(p.name, kind).Inc()
	p.services.metrics.latency.WithLabelValues(kind).Observe(took.Seconds())
}

// record writes an audit record. The error matters to whoever is about to allow
// something.
func (p *pipeline) record(event audit.Event) error {
	event.Pipeline = p.name
	err := p.services.audit.Append(event)
	if err != nil {
		p.services.metrics.auditFailures.Inc()
	}
	return err
}

// taskOf finds the pipeline's task that a sandbox started.
func (p *pipeline) taskOf(started sandbox.Task) *runningTask { return p.tasks[started.Name()] }

// subjectOf is for whom a process acts: a session's user, else its task.
func (p *pipeline) subjectOf(started sandbox.Task, pid int) (subject, wire.Mode) {
	if s := p.sessions.of(pid); s != nil {
		return s.subject(), s.mode
	}
	if task := p.taskOf(started); task != nil {
		return task.subject, p.currentMode()
	}
	return subject{task: started.Name(), instance: started.Name()}, wire.ModeShai
}
