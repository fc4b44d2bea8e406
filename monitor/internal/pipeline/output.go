// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// outputLabel is the label of what a task prints: its taint, and what it has read beyond that
// in another mode. The program of a task with parameters has read no user's data, and its
// sessions print nowhere: what it prints has no obligations.
type outputLabel struct {
	policy.Label
	unknown bool // mode baseline: the task may have read anything, and its sessions print
	former  bool // the label before the present one: it is unknown which it was
}

func (l outputLabel) String() string {
	if l.former {
		return "unknown: it was printed under the label before the present one"
	}
	if l.unknown {
		return "unknown: nothing is enforced in mode baseline"
	}
	return l.Label.String()
}

// outputLabel returns the label of what this start of the task prints now.
func (a *acting) outputLabel() outputLabel {
	mode := a.task.pipeline.Mode()
	if mode == wire.ModeBaseline {
		return outputLabel{unknown: true}
	}
	if a.tracked != nil {
		return outputLabel{Label: a.tracked.label(mode)}
	}
	return outputLabel{Label: a.role.Load().subject.Taint}
}

// logPath returns the file of what the task prints under a label. What it has printed under
// another label is in another file: nobody would know any more who may read it.
func (t *Task) logPath(label outputLabel) string {
	name := "baseline"
	if !label.unknown {
		sum := sha256.Sum256([]byte(label.Key()))
		name = hex.EncodeToString(sum[:8])
	}
	return filepath.Join(t.pipeline.services.Options.State, "logs", t.pipeline.name, t.name, name+".log")
}

// labelledLog is the open log of a label. It is not safe for concurrent use.
type labelledLog struct {
	path string
	log  *tasklog.Log // nil if it could not be opened
}

// write appends to the log at a path.
func (l *labelledLog) write(path string, text []byte) error {
	if err := l.follow(path); err != nil {
		return err
	}
	_, err := l.log.Write(text)
	return err
}

// follow opens the log at a path, unless it is open.
func (l *labelledLog) follow(path string) (err error) {
	if l.log != nil && l.path == path {
		return nil
	}
	l.close()
	l.path = path
	l.log, err = tasklog.Open(path, tasklog.MaxSize)
	return err
}

func (l *labelledLog) close() {
	if l.log != nil {
		l.log.Close()
		l.log = nil
	}
}

// outputConduit returns what the task prints in the form that policies use. No other
// conduit has its name, and a policy that names conduits by the beginnings of their names,
// such as a pipeline's, does not mean it.
func (t *Task) outputConduit() policy.Conduit {
	return policy.Conduit{Name: OutputName(t.pipeline.name, t.name), Kind: policy.OutputConduit}
}

// OutputName returns the name of the conduit that a task prints to.
func OutputName(pipeline, task string) string { return "output:" + pipeline + "/" + task }

// Reader is who wants to read what a task has printed: an administrator, or a principal whom
// the administrator names.
type Reader struct{ Principal, Region string }

// Excerpt is the part of a log that is wanted.
type Excerpt struct {
	// Previous: of the log of the label before the present one, which nobody knows any more.
	Previous bool
	Before   string // the part before this place of an earlier [Log]; empty: the end
	Limit    int64  // in bytes
}

// Log is a part of what a task has printed under its present label, or the one before.
type Log struct {
	Label string
	tasklog.Page
}

// The errors of ReadLog besides those of reading files, and [tasklog.ErrMoved].
var (
	ErrUnrecorded = errors.New("reading it cannot be recorded")
	ErrDenied     = errors.New("the policies deny it")
)

// ReadLog returns a part of what the task has printed, if the reader may read it. It wraps ErrDenied
// if not; the error's text is then the policies' reason.
func (t *Task) ReadLog(reader Reader, wanted Excerpt) (Log, error) {
	label := t.acting.Load().outputLabel()
	path := t.logPath(label)
	if wanted.Previous {
		var err error
		if path, err = tasklog.Previous(path); err != nil {
			return Log{}, err
		}
		label = outputLabel{unknown: true, former: true}
	}
	if err := t.mayReadLog(label, reader); err != nil {
		return Log{}, err
	}
	if path == "" {
		return Log{Label: label.String()}, nil
	}
	page, err := tasklog.Read(path, wanted.Before, wanted.Limit)
	return Log{label.String(), page}, err
}

// denial is a reason of the policies.
type denial string

func (d denial) Error() string        { return string(d) }
func (d denial) Is(target error) bool { return target == ErrDenied }

// mayReadLog decides who reads what a task has printed, and records it. Whoever uses the
// API is an administrator and may. For a principal whom the administrator names, the
// policies decide as they do when data leave by a connection to that principal. What
// cannot be recorded is not shown.
func (t *Task) mayReadLog(label outputLabel, reader Reader) error {
	who := decision.Subject{
		Taint: label.Label, Session: &policy.Session{Principal: reader.Principal, Region: reader.Region},
	}
	f := decision.Flow{Who: who, What: policy.Leave, Conduit: t.outputConduit()}
	var found decision.Decision
	begun := time.Now()
	switch {
	case reader.Principal == "":
		found.Decision = policy.Decision{Allowed: true, Reason: "an administrator reads it"}
	case label.unknown:
		reason := "its label is " + label.String()
		found.Decision = policy.Decision{Sentence: reason, Reason: reason}
	default:
		found = decision.Decide(f, t.pipeline.services.state(), begun)
	}
	if err := t.pipeline.recordDecision(f, found, time.Since(begun)); err != nil && found.Allowed {
		return fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	if !found.Allowed {
		return denial(found.Sentence)
	}
	return nil
}
