// SPDX-License-Identifier: BSD-2-Clause

package pipelinetest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
)

// Task stands for a started task. Stop ends it.
type Task struct {
	sandbox.Task
	Takes time.Duration // until it has stopped

	name string
	pid  int
	end  sync.Once
	done chan struct{}
}

// NewTask returns a task that does not end by itself.
func NewTask(name string, pid int) *Task {
	return &Task{name: name, pid: pid, done: make(chan struct{})}
}

// Name implements [sandbox.Task], as do PID, CPU, Done, Err and Stop.
func (t *Task) Name() string          { return t.name }
func (t *Task) PID() int              { return t.pid }
func (t *Task) CPU() sandbox.CPU      { return sandbox.CPU{} }
func (t *Task) Done() <-chan struct{} { return t.done }
func (t *Task) Err() error            { return nil }

func (t *Task) Stop(context.Context) error {
	time.Sleep(t.Takes)
	t.end.Do(func() { close(t.done) })
	return nil
}

// Supervisor stands for a task's supervisor: it keeps what it is told, and confirms fences. It
// is safe for concurrent use.
type Supervisor struct {
	Sessions sandbox.Sessions
	Stuck    bool // it confirms nothing
	// Late reports what has happened before a change of which the supervisor is told, when it confirms the
	// next fence. It may be nil.
	Late func()

	mu   sync.Mutex
	told []supervision.Record
	sets map[string]supervision.Set // in force, by principal and region
}

// Send implements [sandbox.Supervisor].
func (s *Supervisor) Send(record supervision.Record, _ ...*os.File) error {
	if _, err := supervision.Encode(record); err != nil {
		return err
	}
	s.mu.Lock()
	s.told = append(s.told, record)
	switch r := record.(type) {
	case supervision.Set:
		if s.sets == nil {
			s.sets = map[string]supervision.Set{}
		}
		s.sets[r.Principal+" "+r.Region] = r
	case supervision.Forget:
		delete(s.sets, r.Principal+" "+r.Region)
	}
	s.mu.Unlock()
	if fence, is := record.(supervision.Fence); is && !s.Stuck {
		if late := s.Late; late != nil {
			s.Late = nil
			late()
		}
		s.Sessions.Receive(supervision.Fenced(fence))
	}
	return nil
}

// Set returns the set in force of an instance ("worker(alice, de)").
func (s *Supervisor) Set(instance string) (set supervision.Set, inForce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if set.Instance == instance {
			return set, true
		}
	}
	return supervision.Set{}, false
}

// Told returns what the supervisor was told since the last call of Since.
func (s *Supervisor) Told() []supervision.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// Since forgets what the supervisor was told and returns a description of it.
func (s *Supervisor) Since() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.told {
		switch r := record.(type) {
		case supervision.Set:
			texts = append(texts, fmt.Sprintf("set %s %s %s flags %d, %d classes", r.Instance, r.Principal, r.Region, r.Flags,
				len(r.Classes)))
		case supervision.Forget:
			texts = append(texts, fmt.Sprintf("forget %s %s flags %d", r.Principal, r.Region, r.Flags))
		case supervision.Key:
			texts = append(texts, fmt.Sprintf("key %s present %d", r.Principal, r.Present))
		case supervision.End:
			texts = append(texts, fmt.Sprintf("end %d", r.Session))
		case supervision.Bind:
			texts = append(texts, fmt.Sprintf("bind %d status %d", r.Session, r.Status))
		case supervision.Credits:
			texts = append(texts, fmt.Sprintf("credits %d", r.Count))
		case supervision.Fence:
		default:
			texts = append(texts, fmt.Sprintf("%T", record))
		}
	}
	s.told = nil
	return texts
}

// Backend is a sandbox that runs nothing: a Task stands for each program, and a Supervisor for
// that of a task with users. It is safe for concurrent use.
type Backend struct {
	sandbox.Backend

	mu         sync.Mutex
	supervisor *Supervisor
}

// Supervises implements [sandbox.Backend], as does Start.
func (b *Backend) Supervises() bool { return true }

// AsksBeneath implements [sandbox.Backend].
func (b *Backend) AsksBeneath() bool { return true }

func (b *Backend) Start(_ context.Context, spec sandbox.Spec, _ sandbox.Decider) (sandbox.Task, error) {
	task := NewTask(spec.Name, os.Getpid())
	if spec.Sessions == nil {
		return task, nil
	}
	supervisor := &Supervisor{Sessions: spec.Sessions}
	if err := spec.Sessions.Begin(task, supervisor); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.supervisor = supervisor
	return task, nil
}

// Supervisor returns the supervisor that was started last.
func (b *Backend) Supervisor() *Supervisor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.supervisor
}
