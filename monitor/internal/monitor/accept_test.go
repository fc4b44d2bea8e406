// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
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
	m, p := bareMonitor(t)
	address := freeAddress(t)
	var err error
	if p.acceptor, err = listen(address); err != nil {
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
		given, err := p.Accept(ctx, bareTask{name: attempt.task, pid: os.Getpid()}, worker)
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
	if err := m.audit.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var records []audit.Record
	err = m.audit.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
		records = append(records, r)
		return nil
	})
	said := slices.ContainsFunc(records, func(r audit.Record) bool {
		return r.Operation == "accept4" && strings.Contains(r.Reason, "do not connect to task collector")
	})
	if err != nil || !said {
		t.Errorf("no audit record says so, %v: %+v", err, records)
	}
}
