// SPDX-License-Identifier: BSD-2-Clause

// Package pipeline runs pipelines: it starts their tasks in sandboxes, binds sessions to users
// whose signatures it has verified, and decides on accesses that the offline analysis did not
// foresee. On Linux it does most of this ahead of time, by what it tells the tasks' supervisors.
//
// A [Pipeline] is made from what a bundle says about it and lives until it is closed. In the
// meantime its owner, package monitor, starts and stops its tasks, puts the capability sets of
// an analysis in force, and passes changes of facts on to it. A pipeline does not know its
// owner: [Services] are all that it uses.
package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// Pipeline is a running pipeline of the bundle: its tasks, the conduits between them, and
// its sessions. It decides for its tasks' sandboxes (see answers.go).
type Pipeline struct {
	services *Services
	name     string
	meaning  string // see Definition
	spec     manifest.PipelineSpec
	plan     *analysis.Plan
	order    []string // task names
	tasks    map[string]*Task
	mode     atomic.Uint32 // wire.Mode
	// switching is held for reading while a task's open is decided on, so that the mode stays. Taken
	// before feeding.
	switching sync.RWMutex
	user      *plan.User // to whom its files belong, with the group of its tasks; nil: the monitor's
	// users are those that tasks run as, by the task's name; a task that has none runs as user.
	users map[string]uint32

	conduits conduits
	sessions *sessions
	counts   *metrics.Pipeline
	stale    staleness
	// madeForSessions counts the sets that were made when a session was bound; see installAgain.
	madeForSessions atomic.Uint64

	feeding    sync.Mutex    // held while supervisors are told of something; taken before mu
	supervised []*supervised // of its running tasks; guarded by feeding

	mu         sync.Mutex
	sets       map[string]*capabilitySet   // by instance
	unforeseen map[string]bool             // instances whose set may be of no analysis
	keyValue   *kvfilter.Store             // nil until openKeyValue is called
	permitted  map[string][]analysis.Other // to key-value users; see permitTuples
	unlistable []Unlistable                // as far as ExamineDirectories has found them
}

// Definition is what a bundle says about a pipeline.
type Definition struct {
	Resolved *manifest.Resolved
	// Meaning is the same in two bundles that say the same about the pipeline.
	Meaning string
	Bind    Bind // of the bundle
}

// Bind finds the policy that a reference names, in the state or in a candidate.
type Bind func(catalog.Reference) (*policy.Policy, error)

// New prepares a pipeline. It starts no task. The caller calls Close.
func New(given *Services, definition Definition) (_ *Pipeline, err error) {
	resolved := definition.Resolved
	spec := resolved.Pipeline.Spec
	p := &Pipeline{
		services: given, name: resolved.Pipeline.Metadata.Name, meaning: definition.Meaning, spec: spec,
		tasks: map[string]*Task{}, sets: map[string]*capabilitySet{},
		unforeseen: map[string]bool{}, permitted: map[string][]analysis.Other{},
	}
	p.counts = given.Metrics.Pipeline(p.name, namesOf(resolved))
	p.sessions = newSessions(p.counts)
	p.stale.unneeded.Store(true) // of an earlier monitor
	defer func() {
		if err != nil {
			p.closeConduits()
			p.counts.Close()
		}
	}()
	if p.plan, err = analysis.PlanOf(resolved); err != nil {
		return nil, err
	}
	mode, err := wire.ParseMode(spec.Mode)
	if err != nil {
		return nil, err
	}
	p.mode.Store(uint32(mode))
	if mode == wire.ModeAudit {
		p.counts.TryOut()
	}
	if p.conduits, err = makeConduits(p.name, spec.Conduits); err != nil {
		return nil, err
	}
	for _, task := range resolved.Tasks {
		running, err := newTask(p, becoming(task, resolved.Tasks), definition.Bind)
		if err != nil {
			return nil, err
		}
		p.order = append(p.order, running.name)
		p.tasks[running.name] = running
	}
	return p, nil
}

func (p *Pipeline) closeConduits() {
	p.conduits.close()
	for _, task := range p.tasks {
		task.entrance.close()
	}
}

// Name returns the pipeline's name.
func (p *Pipeline) Name() string { return p.name }

// Meaning returns the meaning of the definition that the pipeline was made from.
func (p *Pipeline) Meaning() string { return p.meaning }

// Spec returns the pipeline's manifest. The caller does not change it.
func (p *Pipeline) Spec() manifest.PipelineSpec { return p.spec }

// Plan returns the plan of the pipeline's analyses. It is the same as long as the pipeline.
func (p *Pipeline) Plan() *analysis.Plan { return p.plan }

// Counts returns what counts for the pipeline.
func (p *Pipeline) Counts() *metrics.Pipeline { return p.counts }

// Tasks returns the names of the tasks, in the order of the manifest.
func (p *Pipeline) Tasks() []string { return p.order }

// Task returns a task by its name, nil if there is none.
func (p *Pipeline) Task(name string) *Task { return p.tasks[name] }

// User returns the user to whom the pipeline's files belong, with the group of its tasks, nil
// if these are the monitor's. The tasks have this user's rights on files.
func (p *Pipeline) User() *plan.User { return p.user }

// RunAs sets the user to whom the pipeline's files belong, and those that tasks run as, by the
// task's name. A task that has none runs as the first. Called before the first task starts.
func (p *Pipeline) RunAs(user plan.User, users map[string]uint32) { p.user, p.users = &user, users }

// Writes reports whether tasks write to a conduit.
func (p *Pipeline) Writes(conduit string) bool {
	for _, task := range p.tasks {
		if slices.Contains(task.spec.Writes, conduit) {
			return true
		}
	}
	return false
}

// Mode returns the mode of sessions that begin now.
func (p *Pipeline) Mode() wire.Mode { return wire.Mode(p.mode.Load()) }

// record writes an audit record. If it fails, the caller must not allow the access that
// the record is about.
func (p *Pipeline) record(event audit.Event, told ...audit.Told) error {
	event.Pipeline = p.name
	err := p.services.Audit.Append(event, told...)
	if err != nil {
		p.services.Metrics.AuditFailed()
	}
	return err
}

// taskOf returns the pipeline's task that a sandbox started.
func (p *Pipeline) taskOf(started sandbox.Task) *Task { return p.tasks[started.Name()] }

// sessionOf returns the session of a process that waits for an answer, nil if it has none.
// A task's supervisor knows which session that is.
func (p *Pipeline) sessionOf(caller sandbox.Caller) *session {
	s := p.sessions.of(caller.PID)
	if s == nil {
		return nil
	}
	if worker, supervises := s.worker.(supervisedWorker); supervises && worker.session != caller.Session {
		return nil
	}
	return s
}

// actorOf returns who a process acts for: a session's user, else its task.
func (p *Pipeline) actorOf(started sandbox.Task, caller sandbox.Caller) actor {
	if s := p.sessionOf(caller); s != nil {
		return s.actor()
	}
	if task := p.taskOf(started); task != nil {
		return task.actor(p.Mode())
	}
	return actor{Subject: decision.Subject{Task: started.Name(), Instance: started.Name()}, mode: wire.ModeShai}
}
