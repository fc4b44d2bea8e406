// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"time"

	"shai.dev/monitor/internal/wire"
)

// maxSessionsShown limits the number of sessions in a status.
const maxSessionsShown = 100

// Status is a pipeline's status.
type Status struct {
	Mode         wire.Mode
	User         uint32 // user of its files and group of its tasks; 0: the monitor's own
	Tasks        []TaskStatus
	Sessions     []SessionStatus // at most 100
	SessionTotal int
}

// TaskStatus is a task's status.
type TaskStatus struct {
	Name        string
	Run         string // "Once", "Always" or "Raised"
	State       string // "Stopped", "Starting", "Running", "Succeeded" or "Failed"
	Enforcement string
	PID         int
	User        uint32     // that its program runs as; 0: the monitor's own
	Since       *time.Time // when its program started, or has ended
	Message     string     // how it ended, why it does not start, or why each of its workers serves one session
	// Restarts says how often its program ended and was to start again since the task was
	// started, and LastEnd how it ended the last time.
	Restarts int
	LastEnd  string
	Output   string // the label of what it prints: the obligations on it
	// Completed says of a task that runs once that it has succeeded, in its last run or an earlier one.
	Completed bool
	LastRun   *Run // the present or last one; nil: none
}

// SessionStatus is one live session of a worker.
type SessionStatus struct {
	Instance  string // "worker(alice, de)"
	Task      string
	Principal string // empty until it has authenticated
	Region    string
	Peer      string
	Slot      int
	Mode      string
	Since     time.Time
}

// Status returns the pipeline's status. It does not wait for supervisors.
func (p *Pipeline) Status() Status {
	status := Status{Mode: p.Mode()}
	for _, name := range p.order {
		status.Tasks = append(status.Tasks, p.tasks[name].Status())
	}
	if p.user != nil {
		status.User = p.user.ID
	}
	sessions := p.sessions.live()
	status.SessionTotal = len(sessions)
	for _, s := range sessions[:min(len(sessions), maxSessionsShown)] {
		status.Sessions = append(status.Sessions, s.status())
	}
	return status
}

func (s *session) status() SessionStatus {
	who := s.subject()
	status := SessionStatus{
		Instance: who.Instance, Task: s.task.name, Region: s.region, Peer: s.peer.String(),
		Slot: s.slot.number, Mode: s.mode.String(), Since: s.started,
	}
	if who.Session != nil {
		status.Principal = who.Session.Principal
	}
	return status
}

// enforcement describes what protects the task in its mode, for status.
func (t *Task) enforcement() string {
	if t.pipeline.Mode() == wire.ModeBaseline {
		return "none"
	}
	return t.pipeline.services.Enforcement
}

// Wait waits until a task that always runs can serve, or until a task that runs once has
// ended. It does not wait for a task that was never started.
func (t *Task) Wait(ctx context.Context) error {
	t.mu.Lock()
	event := t.ready
	if t.spec.Run == "Once" {
		event = t.ended
	}
	t.mu.Unlock()
	if event == nil {
		return nil
	}
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
