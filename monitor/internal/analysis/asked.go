// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Predicted is an instance as the analysis expects it to be when it runs.
type Predicted struct {
	Taint   policy.Label
	Session *policy.Session
}

// Predict returns what the analysis expects of an instance, expected or not.
func Predict(plan *Plan, state *catalog.State, instance Instance) (Predicted, error) {
	who, err := newSubject(plan, state, instance)
	if err != nil {
		return Predicted{}, err
	}
	return Predicted{Taint: who.taint, Session: who.session}, nil
}

// Suggest returns the smallest of the tried changes of a policy with which an instance would
// be allowed an access to a conduit that it is denied now; "" if there is none. The user
// decides whether it should.
func Suggest(plan *Plan, state *catalog.State, instance Instance, what policy.Operation, conduit policy.Conduit,
	now time.Time) string {
	who, err := newSubject(plan, state, instance)
	if err != nil || conduit.Policy == nil {
		return ""
	}
	reference := catalog.Reference{Policy: conduit.Policy.Template().File(), Arguments: map[string]string{}}
	for parameter, value := range conduit.Policy.Arguments() {
		reference.Arguments[parameter] = value
	}
	return suggest(newEngine(plan, state, now), who, what, &target{conduit: conduit, name: conduit.Name}, reference)
}

// Parameters returns the names of a task's parameters. ok is false if the plan has no such
// task.
func (p *Plan) Parameters(task string) (names []string, ok bool) {
	found := p.task(task)
	if found == nil {
		return nil, false
	}
	return found.Parameters, true
}
