// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// outputLabel is the label of what a task prints: its taint. The program of a task with
// parameters has read no user's data, and its sessions print nowhere: what it prints has no
// obligations.
type outputLabel struct {
	policy.Label
	unknown bool // mode baseline: the task may have read anything, and its sessions print
}

func (l outputLabel) String() string {
	if l.unknown {
		return "unknown: nothing is enforced in mode baseline"
	}
	return l.Label.String()
}

func (t *runningTask) outputLabel() outputLabel {
	if t.pipeline.currentMode() == wire.ModeBaseline {
		return outputLabel{unknown: true}
	}
	return outputLabel{Label: t.subject.taint}
}

// logPath returns the file of what the task prints under its present label. What it has
// printed under another label is in another file: nobody would know any more who may read
// it.
func (t *runningTask) logPath() string {
	name := "baseline"
	if label := t.outputLabel(); !label.unknown {
		sum := sha256.Sum256([]byte(label.Key()))
		name = hex.EncodeToString(sum[:8])
	}
	return filepath.Join(t.pipeline.services.options.State, "logs", t.pipeline.name, t.name, name+".log")
}

// outputConduit returns what the task prints in the form that policies use. No other
// conduit has its name, and a policy that names conduits by the beginnings of their names,
// such as a pipeline's, does not mean it.
func (t *runningTask) outputConduit() policy.Conduit {
	return policy.Conduit{Name: "output:" + t.pipeline.name + "/" + t.name, Kind: policy.OutputConduit}
}

// maxLogAnswer limits the text that the API answers with.
const maxLogAnswer = 1 << 20

// TaskLog implements [api.Service].
func (m *Monitor) TaskLog(_ context.Context, request api.TaskLogRequest) (api.TaskLog, error) {
	title := "read the log of task " + request.Pipeline + "/" + request.Task
	t, err := m.task(title, request.Pipeline, request.Task)
	if err != nil {
		return api.TaskLog{}, err
	}
	label := t.outputLabel()
	if err := t.mayReadLog(title, label, request); err != nil {
		return api.TaskLog{}, err
	}
	text, shortened, err := readTaskLog(t.logPath(), maxLogAnswer)
	if err != nil {
		return api.TaskLog{}, fmt.Errorf("%s: %w", title, err)
	}
	return api.TaskLog{Label: label.String(), Text: string(text), Shortened: shortened}, nil
}

// mayReadLog decides who reads what a task has printed, and records it. Whoever uses the
// API is an administrator and may. For a principal whom the administrator names, the
// policies decide as they do when data leave by a connection to that principal. What
// cannot be recorded is not shown.
func (t *runningTask) mayReadLog(title string, label outputLabel, request api.TaskLogRequest) error {
	who := subject{
		taint: label.Label, session: &policy.Session{Principal: request.As, Region: request.Region},
	}
	f := flow{who: who, what: policy.Leave, conduit: t.outputConduit()}
	var found decision
	begun := time.Now()
	switch {
	case request.As == "":
		found.Decision = policy.Decision{Allowed: true, Reason: "an administrator reads it"}
	case label.unknown:
		reason := "its label is " + label.String()
		found.Decision = policy.Decision{Sentence: reason, Reason: reason}
	default:
		found = decide(f, t.pipeline.services.state(), begun)
	}
	if err := t.pipeline.recordDecision(f, found, time.Since(begun)); err != nil && found.Allowed {
		return api.Unavailable(title, "free space for the audit log", "reading it cannot be recorded: %v", err)
	}
	if !found.Allowed {
		return api.Denied(title, "read it as an administrator, without a principal", "%s", found.Sentence)
	}
	return nil
}
