// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// subject is an instance that is prepared for decisions.
type subject struct {
	instance Instance
	task     *Task
	taint    policy.Label
	session  *policy.Session
	values   map[string]string // of its parameters, by name
}

// newSubject binds the taint. An instance whose taint cannot be built has no access.
func newSubject(plan *Plan, state *catalog.State, instance Instance) (*subject, error) {
	task := plan.task(instance.Task)
	if task == nil || len(task.Parameters) != len(instance.Arguments) {
		return nil, fmt.Errorf("instance %s: pipeline %s has no such task with %d parameters", instance.Name(),
			plan.Pipeline, len(instance.Arguments))
	}
	values := task.values(instance)
	bound, err := state.Bind(catalog.Reference{
		Policy: task.Taint.Policy, Arguments: pattern.Fill(task.Taint.Arguments, values),
	})
	if err != nil {
		return nil, fmt.Errorf("taint of %s: %w", instance.Name(), err)
	}
	s := &subject{instance: instance, task: task, taint: bound.Label(instance.Name()), values: values}
	s.session = &policy.Session{Principal: values["user"], Region: values["region"]}
	if s.session.Principal == "" {
		s.session.Principal = "task/" + task.Name
	}
	return s, nil
}

// target is a class (or a single conduit) that is prepared for decisions.
type target struct {
	class   uint32
	conduit policy.Conduit
	name    string // of the representative; conditions on it are the class' own
}

// targets prepares classes, each once for all instances.
type targets struct {
	state   *catalog.State
	byClass []*target
}

func newTargets(state *catalog.State) *targets {
	return &targets{state: state, byClass: make([]*target, state.Classes()+1)}
}

// prepare prepares the classes of a set. It is not safe for concurrent use, but get is.
func (t *targets) prepare(set string) {
	for _, class := range t.state.ClassesOf(set) {
		if t.byClass[class] == nil {
			t.byClass[class] = newTarget(t.state, class)
		}
	}
}

// get returns a class, or nil if nobody can currently have access to it.
func (t *targets) get(class uint32) *target {
	if int(class) < len(t.byClass) && t.byClass[class] != nil {
		return t.byClass[class]
	}
	return newTarget(t.state, class)
}

// newTarget uses the class's representative. A class without conduits is decided under a
// name that no fact contains. This is correct only if no fact contains its conduits'
// names either; otherwise the class waits for its first conduit.
func newTarget(state *catalog.State, class uint32) *target {
	info := state.Class(class)
	if info.Class == nil || info.Policy == nil {
		return nil
	}
	name := fmt.Sprintf("\x00class %d", class)
	var id int64
	if info.Representative != 0 {
		var ok bool
		if name, ok = state.Name(info.Representative); !ok {
			return nil
		}
		id = int64(info.Representative)
	} else if len(info.Mentions) > 0 {
		return nil
	}
	conduit := policy.Conduit{ID: id, Name: name, Kind: info.Kind, Internal: info.Internal, Directory: info.Directory,
		Policy: info.Policy}
	return &target{class: class, conduit: conduit, name: name}
}

// The accesses of instances.
const (
	read  = policy.Read
	write = policy.Write
	leave = policy.Leave
)

// decide asks the policies for a decision without reasons. It leaves out those that are
// waived.
func decide(who *subject, what policy.Operation, to *target, state policy.State, now time.Time,
	waive func(*policy.Policy) bool) policy.Decision {
	return policy.Decide(what, who.taint, to.conduit, state,
		policy.Environment{Session: who.session, Now: now, Waive: waive, Bulk: true})
}

// validated reports whether a decision holds as long as its state conditions hold. The
// catalog does not know a conduit's length, which changes with every write: a decision
// that depends on it is made when the access happens.
func validated(decision policy.Decision) bool {
	if !decision.Allowed {
		return false
	}
	for _, condition := range decision.Conditions {
		if condition.Kind == policy.ConduitLengthIs || condition.Kind == policy.AddressIs {
			return false
		}
	}
	return true
}
