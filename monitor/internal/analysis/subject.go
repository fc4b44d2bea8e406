// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
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
	assumed  policy.Assumed // the taint, for quick decisions
	session  *policy.Session
	values   map[string]string // of its parameters, by name
	next     nextInstant       // at which something that is denied may be allowed
}

// nextInstant is the earliest of the instants that it was told of. It is safe for concurrent
// use.
type nextInstant struct {
	mu sync.Mutex
	at int64 // Unix nanoseconds; 0: none
}

func (n *nextInstant) note(at time.Time) {
	if at.IsZero() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == 0 || at.UnixNano() < n.at {
		n.at = at.UnixNano()
	}
}

// or returns the earlier instant of the two; 0 stands for none.
func (n *nextInstant) or(other int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == 0 || other != 0 && other < n.at {
		return other
	}
	return n.at
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
	taint := bound.Label(instance.Name())
	return &subject{instance: instance, task: task, taint: taint, assumed: policy.Assume(state, taint), values: values,
		session: sessionOf(task, values)}, nil
}

// sessionOf predicts the session of an instance. What the parameters leave out, its sessions differ in: it
// is empty, and no decision ahead of time rests on it.
func sessionOf(task *Task, values map[string]string) *policy.Session {
	session := &policy.Session{Principal: values["user"], Region: values["region"]}
	if len(task.Parameters) == 0 {
		session.Principal = "task/" + task.Name
	}
	return session
}

// target is a class (or a single conduit) that is prepared for decisions.
type target struct {
	class   uint32
	conduit policy.Conduit
	label   policy.Label // the conduit's
	// demanded is the label, for quick decisions. It is made only for many of them: see prepare.
	demanded policy.Demanded
	// name is that of the representative: a conduit for which conditions on it change moves to
	// another class. It is empty if the class is of one conduit, which stays in it.
	name string
}

// newSingle prepares a conduit without a class.
func newSingle(conduit policy.Conduit) *target {
	return &target{conduit: conduit, label: conduit.Label(), name: conduit.Name}
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
	var demands policy.Demands
	for _, class := range t.state.ClassesOf(set) {
		if t.byClass[class] != nil {
			continue
		}
		if to := newTarget(t.state, class); to != nil {
			to.demanded = demands.Of(to.label)
			t.byClass[class] = to
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

// newTarget decides a class under a name that no fact contains, if no fact contains its
// conduits' names either and its policy cannot ask for them: the catalog need not be read for
// any. Otherwise it uses the name of the representative, and a class without conduits waits
// for the first one.
func newTarget(state *catalog.State, class uint32) *target {
	info := state.Class(class)
	if info.Class == nil || info.Policy == nil {
		return nil
	}
	if info.Own == "" && len(info.Mentions) == 0 {
		return newTargetNamed(info, standInFor(class, state.FactIndex()))
	}
	name, ok := state.Name(info.Representative)
	if !ok {
		return nil
	}
	return newTargetNamed(info, name)
}

// standIn begins the name under which a class is decided that needs none.
const standIn = "\x00class "

// standInFor returns such a name that no fact contains. Facts can contain any bytes, such as members of a set
// that is fetched from Redis.
func standInFor(class uint32, facts *policy.FactIndex) string {
	name := standIn + strconv.FormatUint(uint64(class), 10)
	for facts.IsMentioned(policy.String(name)) {
		name += "'"
	}
	return name
}

func newTargetNamed(info catalog.ClassInfo, name string) *target {
	conduit := policy.Conduit{ID: int64(info.Representative), Name: name, Kind: info.Kind, Internal: info.Internal,
		// Exits of other policies may ask for the name of what is written, which is not that of the
		// others of the class.
		Directory: info.Directory || info.Own == "", Type: info.Type, Policy: info.Policy}
	to := &target{class: info.Number, conduit: conduit, label: conduit.Label()}
	if info.Own == "" {
		to.name = name
	}
	return to
}

// evaluators make those decisions about reads that do not need the prover.
type evaluators struct{ idle sync.Pool }

func newEvaluators(state *catalog.State) *evaluators {
	return &evaluators{sync.Pool{New: func() any { return policy.NewEvaluator(state) }}}
}

// cover shows that an instance's taint covers a class' label, if that can be shown without the
// prover, and appends what this rests on. Otherwise nothing is known.
func (e *evaluators) cover(who *subject, to *target, conditions []policy.Condition) ([]policy.Condition, bool) {
	evaluator := e.idle.Get().(*policy.Evaluator)
	defer e.idle.Put(evaluator)
	return evaluator.Covers(&who.assumed, &to.demanded, conditions)
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
	return decideIn(who, what, to, state, policy.Environment{Now: now, Waive: waive})
}

// decideIn is decide with memory for the decision's conditions.
func decideIn(who *subject, what policy.Operation, to *target, state policy.State,
	environment policy.Environment) policy.Decision {
	environment.Session, environment.Bulk = who.session, true
	if what == read {
		return policy.AtLeast(who.taint, to.label, state, environment) // as Decide, whose label is made each time
	}
	if what == write && to.conduit.Type != "" {
		return policy.Decision{} // the monitor decides on each write, by what is written
	}
	return policy.Decide(what, who.taint, to.conduit, state, environment)
}

// validated reports whether a decision holds as long as its state conditions hold. The
// catalog does not know a conduit's length, which changes with every write: a decision
// that depends on it is made when the access happens. So is one that computes with the clock,
// which holds for an instant.
func validated(decision policy.Decision, now time.Time) bool {
	return decision.Allowed && !ofInstant(decision, now) &&
		!slices.ContainsFunc(decision.Conditions, func(condition policy.Condition) bool {
			return condition.Kind == policy.ConduitLengthIs || condition.Kind == policy.AddressIs
		})
}

// ofInstant reports whether a decision is allowed at this instant only.
func ofInstant(decision policy.Decision, now time.Time) bool {
	until, ok := policy.Until(decision.Conditions)
	return ok && until.UnixNano() <= now.UnixNano()+1
}

// follow notes when a decision that is not validated may be another one only because time has
// passed. One that is allowed at this instant only rests on the first proof that was found; another
// may show the same for longer.
func (e *engine) follow(who *subject, what policy.Operation, to *target, decision policy.Decision) {
	who.next.note(decision.Next)
	if !ofInstant(decision, e.now) {
		return
	}
	at := e.now.Add(1) // the next instant
	decision = decide(who, what, to, e.state, at, e.waive)
	who.next.note(decision.Next)
	// Of one that computes with the clock, which holds for an instant again, nobody can tell when it changes.
	if decision.Allowed && !ofInstant(decision, at) {
		who.next.note(at)
	}
}
