// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// observer stands between pipeline probe and its sandbox. It counts the workers that wait for
// users, and lets the test be the search engine.
type observer struct {
	sandbox.Backend
	idle       atomic.Int64
	rolledBack atomic.Int64 // sessions that have ended so

	mu     sync.Mutex
	played *pipeline.Pipeline // whose search engine does not start: the test plays it
	engine map[int]*os.File   // its pipes and channels, by number

	raising func(sandbox.Raising) sandbox.Raising // stands between tasks that register and the monitor; may be nil
}

// Start implements [sandbox.Backend].
func (o *observer) Start(ctx context.Context, spec sandbox.Spec, decider sandbox.Decider) (sandbox.Task, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.raising != nil && spec.Raising != nil {
		spec.Raising = o.raising(spec.Raising)
	}
	if !slices.Contains(spec.Environment, "SHAI_PIPELINE=probe") {
		return o.Backend.Start(ctx, spec, decider)
	}
	if o.played != nil && spec.Name == "search" {
		return o.play(spec)
	}
	if spec.Sessions != nil {
		spec.Sessions = observedSessions{spec.Sessions, o}
	}
	return o.Backend.Start(ctx, spec, observedDecider{decider, o})
}

// play keeps what the search engine would get. The engine has ended at once.
func (o *observer) play(spec sandbox.Spec) (sandbox.Task, error) {
	o.stop()
	for number, file := range spec.Descriptors {
		own, err := syscall.Dup(int(file.Fd()))
		if err != nil {
			return nil, err
		}
		o.engine[number] = os.NewFile(uintptr(own), fmt.Sprint("search engine's ", number))
	}
	task := pipelinetest.NewTask(spec.Name, os.Getpid())
	return task, task.Stop(context.Background())
}

// stop forgets the search engine's pipes and channels. Called with mu held.
func (o *observer) stop() {
	for _, file := range o.engine {
		file.Close()
	}
	o.engine = map[int]*os.File{}
}

// observedSessions notes how many workers the supervisor says are idle.
type observedSessions struct {
	sandbox.Sessions
	observer *observer
}

func (s observedSessions) Begin(task sandbox.Task, supervisor sandbox.Supervisor) error {
	s.observer.idle.Store(0)
	return s.Sessions.Begin(task, supervisor)
}

func (s observedSessions) Receive(record supervision.Record) {
	s.Sessions.Receive(record)
	switch r := record.(type) {
	case supervision.Counts:
		s.observer.idle.Store(int64(r.Idle))
	case supervision.Events:
		for _, event := range r.Events {
			if event.Flags&supervision.EventRolledBack != 0 && event.Kind == supervision.EventEnded {
				s.observer.rolledBack.Add(1)
			}
		}
	}
}

// observedDecider counts the workers that wait for the monitor to accept a connection.
type observedDecider struct {
	sandbox.Decider
	observer *observer
}

func (d observedDecider) Accept(ctx context.Context, task sandbox.Task,
	worker sandbox.Worker) (*sandbox.Accepted, error) {
	d.observer.idle.Add(1)
	defer d.observer.idle.Add(-1)
	return d.Decider.Accept(ctx, task, worker)
}

// searchEngine returns the end that the search engine has of one slot of a pipe or channel, whose
// first slot has this number in it.
func (s *stack) searchEngine(first, slot int) *os.File {
	s.t.Helper()
	s.observer.mu.Lock()
	begun := s.observer.played == s.pipeline()
	s.observer.played = s.pipeline()
	s.observer.mu.Unlock()
	if !begun {
		_, err := s.monitor.StartTask(s.t.Context(), "probe", "search")
		s.must(err)
		_, err = s.monitor.WaitTask(s.t.Context(), "probe", "search")
		s.must(err)
	}
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	return s.observer.engine[first+slot]
}

// writeTransfer writes into the channel of a session, as the search engine would.
func (s *stack) writeTransfer(slot int, mode string, query uint32, conduits ...uint32) {
	s.t.Helper()
	first := wire.FDChannel
	if mode == "dynamic" || mode == "dynamic-lazy" {
		first = wire.FDChannelChecked
	}
	_, err := s.searchEngine(first, slot).Write(pipelinetest.Transfer(query, conduits...))
	s.must(err)
}
