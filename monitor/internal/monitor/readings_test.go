// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"sync"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/waiting"
)

// measuring is a sandbox in which the kernel is asked for a task's processor time for long.
type measuring struct {
	*pipelinetest.Backend
	ask func()
}

type measuredTask struct {
	sandbox.Task
	ask func()
}

func (b measuring) Start(ctx context.Context, spec sandbox.Spec, decider sandbox.Decider) (sandbox.Task, error) {
	task, err := b.Backend.Start(ctx, spec, decider)
	return measuredTask{task, b.ask}, err
}

func (t measuredTask) CPU() sandbox.CPU {
	t.ask()
	return t.Task.CPU()
}

// A scrape that takes long delays no change of facts, and no session, which waits for changes.
func TestScrapesHoldNoChangeUp(t *testing.T) {
	m, _ := bareMonitor(t)
	var once sync.Once
	asked, answer := make(chan struct{}), make(chan struct{})
	m.services.Backend = measuring{&pipelinetest.Backend{Backend: m.services.Backend}, func() {
		once.Do(func() { close(asked) })
		<-answer
	}}
	if _, err := m.StartTask(t.Context(), "bare", "worker"); err != nil {
		t.Fatal(err)
	}
	scraped := make(chan error, 1)
	go func() {
		_, err := m.metrics.Gather()
		scraped <- err
	}()
	<-asked
	waiting.Until(t, "the facts can change, for which others may hold the lock a moment", func() bool {
		free := m.mu.TryLock()
		if free {
			m.mu.Unlock()
		}
		return free
	})
	close(answer)
	if err := <-scraped; err != nil {
		t.Error(err)
	}
}
