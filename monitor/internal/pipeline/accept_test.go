// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/waiting"
)

// childWorker is a process that this one has forked.
type childWorker struct {
	sandbox.Worker
	pid  int
	gone chan struct{}
}

func (c childWorker) PID() int              { return c.pid }
func (c childWorker) Gone() <-chan struct{} { return c.gone }
func (c childWorker) Ended() bool           { return false }
func (c childWorker) Kill()                 {}

// Users connect to one task. Another one of the pipeline, which may have read
// everybody's documents, is given none of their connections, though it asks the same way.
// A worker of the task gets one.
func TestOnlyTheTaskOfTheConnectionServes(t *testing.T) {
	p := bare(t)
	address := pipelinetest.FreeAddress(t)
	var err error
	if p.tasks["worker"].entrance.acceptor, err = listen(address); err != nil {
		t.Fatal(err)
	}
	child := idleProcess(t)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		close(gone)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), waiting.Limit)
	defer cancel()
	for _, attempt := range []struct{ task, refused string }{
		{"collector", "do not connect to task collector"}, {"worker", ""}, {"worker", "has served a user"},
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		worker := childWorker{pid: child.Process.Pid, gone: gone}
		given, err := p.Accept(ctx, pipelinetest.NewTask(attempt.task, os.Getpid()), worker)
		if err == nil && attempt.refused != "" || err != nil && (attempt.refused == "" ||
			!strings.Contains(err.Error(), attempt.refused)) {
			t.Errorf("task %s: %v, want: %s", attempt.task, err, attempt.refused)
		}
		if given != nil {
			for _, file := range given.Descriptors {
				file.Close()
			}
		}
	}
	if !p.recorded("do not connect to task collector") {
		t.Error("no audit record says so")
	}
}
