// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// pipeline is a running pipeline of the bundle: its tasks, the conduits between them, and
// its sessions. It decides for its tasks' sandboxes (see answers.go).
type pipeline struct {
	services *services
	name     string
	means    string // from meaningOf, for the bundle that it was made for
	spec     manifest.PipelineSpec
	plan     *analysis.Plan
	order    []string // task names
	tasks    map[string]*runningTask
	egress   policy.Conduit
	mode     atomic.Uint32 // wire.Mode
	// The first task that listens opens the socket: listening if it has a supervisor, else
	// the acceptor's.
	listening *os.File
	acceptor  *acceptor
	keyValue  *kvfilter.Store
	user      *plan.User // that its tasks run as; nil: the monitor's

	conduits conduits
	slots    *slots
	sessions *sessions

	feeding    sync.Mutex    // held while supervisors are told of something; taken before mu
	supervised []*supervised // of its running tasks; guarded by feeding

	mu         sync.Mutex
	sets       map[string]*capabilitySet // by instance
	unlistable []unlistable              // as far as examineDirectories has found them
}

// bindFunc finds the policy that a reference names, in the state or in a candidate.
type bindFunc func(catalog.Reference) (*policy.Policy, error)

// newPipeline prepares a resolved pipeline. It starts no task.
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

// egressOf returns the connection through which data leaves a pipeline.
func egressOf(spec manifest.PipelineSpec) (egress policy.Conduit) {
	for _, conduit := range spec.Conduits {
		if conduit.Kind == manifest.KindConnection && conduit.Egress {
			egress = policy.Conduit{Name: conduit.Name, Kind: policy.ConnectionConduit}
		}
	}
	return egress
}

// newSlots makes as many slots as the pipeline may have sessions: what the connection says,
// and no more than the slotted conduits of the workers have.
func (p *pipeline) newSlots() *slots {
	count := manifest.DefaultSessions
	for _, conduit := range p.spec.Conduits {
		if conduit.Sessions > 0 {
			count = conduit.Sessions
		}
	}
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
	p.closeListener()
}

// closeListener frees the address at which users connect.
func (p *pipeline) closeListener() {
	if p.acceptor != nil {
		p.acceptor.close()
	}
	if p.listening != nil {
		p.listening.Close()
	}
	p.acceptor, p.listening = nil, nil
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

// record writes an audit record. If it fails, the caller must not allow the access that
// the record is about.
func (p *pipeline) record(event audit.Event) error {
	event.Pipeline = p.name
	err := p.services.audit.Append(event)
	if err != nil {
		p.services.metrics.auditFailures.Inc()
	}
	return err
}

// taskOf returns the pipeline's task that a sandbox started.
func (p *pipeline) taskOf(started sandbox.Task) *runningTask { return p.tasks[started.Name()] }

// sessionOf returns the session of a process that waits for an answer, nil if it has none.
// A task's supervisor knows which session that is.
func (p *pipeline) sessionOf(caller sandbox.Caller) *session {
	s := p.sessions.of(caller.PID)
	if s == nil {
		return nil
	}
	if worker, supervises := s.worker.(supervisedWorker); supervises && worker.session != caller.Session {
		return nil
	}
	return s
}

// subjectOf returns the subject that a process acts for: a session's user, else its task.
func (p *pipeline) subjectOf(started sandbox.Task, caller sandbox.Caller) (subject, wire.Mode) {
	if s := p.sessionOf(caller); s != nil {
		return s.subject(), s.mode
	}
	if task := p.taskOf(started); task != nil {
		return task.subject, p.currentMode()
	}
	return subject{task: started.Name(), instance: started.Name()}, wire.ModeShai
}
