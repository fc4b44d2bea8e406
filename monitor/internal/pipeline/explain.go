// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/policy"
)

// Asked is who an explanation is about.
type Asked struct {
	decision.Subject
	TaintOf string // what its taint is that of: "declared"
}

const declared = "declared"

// Asked returns the instance of a task that a user in a region gets, with the taint by which it
// would be decided now whether it may read, or write. The task without a name is the one that
// users connect to. If there is no such task, Asked returns ErrNoTask.
func (p *Pipeline) Asked(taskName, principal, region string, what policy.Operation) (Asked, error) {
	task := p.tasks[taskName]
	for _, name := range p.order {
		if task == nil && taskName == "" && len(p.tasks[name].spec.Parameters) > 0 {
			task = p.tasks[name]
		}
	}
	if task == nil {
		return Asked{}, ErrNoTask
	}
	if len(task.spec.Parameters) == 0 {
		return task.asked(what), nil
	}
	values, err := p.derive(task, principal, region)
	if err != nil {
		return Asked{}, err
	}
	name := instanceOf(task, values).Name()
	taint, err := taintOf(p.services.state().Bind, task.spec, name, values)
	if err != nil {
		return Asked{}, err
	}
	who := decision.Subject{Task: task.name, Instance: name, Taint: taint,
		Session: &policy.Session{Principal: principal, Region: region}}
	if mode := p.Mode(); mode.IsDynamic() {
		return Asked{who, fmt.Sprintf("%s; in mode %s what a session has read decides", declared, mode)}, nil
	}
	return Asked{who, declared}, nil
}

// ErrNoTask is the error about a task that the pipeline does not have.
var ErrNoTask = errors.New("there is no such task")

// asked is about the program that runs, if one does: it may have raised its taint, and have read
// more than was declared.
func (t *Task) asked(what policy.Operation) Asked {
	now := t.acting.Load()
	if t.Status().State != stateRunning || now.tracked == nil {
		return Asked{t.roles[0].subject, declared}
	}
	mode, who := t.pipeline.Mode(), now.role.Load().subject
	of := "of the program that runs as " + who.Instance
	switch {
	case !mode.IsDynamic():
		who.Taint = now.tracked.label(mode)
	case what == policy.Read:
		of = fmt.Sprintf("%s of %s, as which the program runs; in mode %s a read is allowed unless what is open for "+
			"writing does not keep it", declared, who.Instance, mode)
	default:
		var all bool
		if who.Taint, all = now.tracked.readSoFar(); !all {
			of += ", which has read more than is tracked: it may write nothing"
		}
	}
	return Asked{who, of}
}
