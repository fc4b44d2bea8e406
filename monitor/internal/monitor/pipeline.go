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

	pairs   map[string][]conduitPair // pipes and channels by conduit and slot
	checked map[string][]conduitPair // the channels' twins whose writes ask
	slots   *slots

	mu       sync.Mutex
	sets     map[string]*capabilitySet // by instance
	sessions map[int]*session          // by worker process id
}

// bindFunc finds the policy that a reference names, in the state or in a candidate.
type bindFunc func(catalog.Reference) (*policy.Policy, error)

// newPipeline makes a resolved pipeline ready to start tasks; nothing runs yet.
func newPipeline(given *services, resolved *manifest.Resolved, means string, bind bindFunc) (_ *pipeline, err error) {
	spec := resolved.Pipeline.Spec
	p := &pipeline{
		services: given, name: resolved.Pipeline.Metadata.Name, means: means, spec: spec,
		tasks: map[string]*runningTask{}, pairs: map[string][]conduitPair{}, checked: map[string][]conduitPair{},
		sets: map[string]*capabilitySet{}, sessions: map[int]*session{},
	}
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
	for _, conduit := range spec.Conduits {
		if err := p.makeConduit(conduit); err != nil {
			return nil, err
		}
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

// makeConduit creates what stands between tasks.
func (p *pipeline) makeConduit(conduit manifest.Conduit) error {
	slots := max(conduit.Slots, 1)
	switch conduit.Kind {
	case manifest.KindConnection:
		if conduit.Egress {
			p.egress = policy.Conduit{Name: conduit.Name, Kind: policy.ConnectionConduit}
		}
	case manifest.KindPipe, manifest.KindChannel:
		for slot := range slots {
			name := fmt.Sprintf("%s/%s/%d", p.name, conduit.Name, slot)
			if conduit.Kind == manifest.KindPipe {
				pair, err := newPipe(name)
				if err != nil {
					return err
				}
				p.pairs[conduit.Name] = append(p.pairs[conduit.Name], pair)
				continue
			}
			for _, pairs := range []map[string][]conduitPair{p.pairs, p.checked} {
				pair, err := newChannel(name)
				if err != nil {
					return err
				}
				pairs[conduit.Name] = append(pairs[conduit.Name], pair)
			}
		}
	}
	return nil
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
				channels[number] = append(channels[number], p.pairs[place.end.conduit][number], p.checked[place.end.conduit][number])
			}
		}
	}
	return newSlots(channels)
}

func (p *pipeline) closeConduits() {
	for _, pairs := range []map[string][]conduitPair{p.pairs, p.checked} {
		for _, slots := range pairs {
			for _, pair := range slots {
				pair.close()
			}
		}
	}
	if p.acceptor != nil {
		p.acceptor.close()
	}
}

func (p *pipeline) currentMode() wire.Mode { return wire.Mode(p.mode.Load()) }

var modes = []string{wire.ModeBaseline: "baseline", wire.ModeDynamic: "dynamic", wire.ModeShai: "shai", wire.ModeAudit: "audit"}

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
	if s := p.sessionOf(pid); s != nil {
		return s.subject(), s.mode
	}
	if task := p.taskOf(started); task != nil {
		return task.subject, p.currentMode()
	}
	return subject{task: started.Name(), instance: started.Name()}, wire.ModeShai
}

// sessionOf is the session of a process that waits for an answer, or nil: the number of
// a worker that has ended may be another's.
func (p *pipeline) sessionOf(pid int) *session {
	if s := p.sessionAt(pid); s != nil && !s.worker.Ended() {
		return s
	}
	return nil
}

// sessionAt is the latest session of a process with this number.
func (p *pipeline) sessionAt(pid int) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[pid]
}

// endFile is the end that a placement of the slot stands for.
func (p *pipeline) endFile(place placement, slot int, mode wire.Mode) *os.File {
	pairs := p.pairs[place.end.conduit]
	if place.end.checked || place.capability.Kind == wire.KindChannel && !place.end.writer && mode == wire.ModeDynamic {
		pairs = p.checked[place.end.conduit]
	}
	if place.end.writer {
		return pairs[slot].writer
	}
	return pairs[slot].reader
}

// admit makes the session known as its worker's.
func (p *pipeline) admit(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s.worker.PID()] = s
	p.services.metrics.active.WithLabelValues(p.name).Inc()
}

// dismiss forgets a session that was admitted, and whose worker has gone.
func (p *pipeline) dismiss(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[s.worker.PID()] == s {
		delete(p.sessions, s.worker.PID())
	}
	p.services.metrics.active.WithLabelValues(p.name).Dec()
}
