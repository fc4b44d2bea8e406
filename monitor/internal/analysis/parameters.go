// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// The values of an instance's parameters follow from a user and a region, which the monitor has
// verified, from facts and from the clock. They are derived here and nowhere else: for a login,
// for a prediction, and to see whether a live session still is that of its instance.

// Parameter says from what the value of one parameter follows: from a fact about the user,
// unless Every is set, else from the clock.
type Parameter struct {
	Name          string
	Conduit, Says string
	Start         time.Time
	Every         time.Duration
}

// planParameters reads declarations that have been checked.
func planParameters(declared []manifest.Parameter) ([]Parameter, error) {
	var list []Parameter
	for _, one := range declared {
		parameter := Parameter{Name: one.Name}
		switch {
		case one.From != nil:
			parameter.Conduit, parameter.Says = one.From.Conduit, one.From.Says
		case one.Window != nil:
			var err error
			if parameter.Start, parameter.Every, err = one.Window.Parse(); err != nil {
				return nil, fmt.Errorf("parameter %s: %w", one.Name, err)
			}
		}
		list = append(list, parameter)
	}
	return list, nil
}

func (p *Plan) parameter(name string) *Parameter {
	for i := range p.Declared {
		if p.Declared[i].Name == name {
			return &p.Declared[i]
		}
	}
	return nil
}

// Derive returns the values of a task's parameters for a user in a region at an instant. An error
// names the parameter without a value, why it has none, and the remedy. A parameter that the plan
// does not declare gets none, and no error: the taint can then not be built.
func (p *Plan) Derive(task, principal, region string, facts policy.Facts, now time.Time) (map[string]string,
	error) {
	values := map[string]string{manifest.ParameterUser: principal, manifest.ParameterRegion: region}
	names, _ := p.Parameters(task)
	for _, name := range names {
		parameter := p.parameter(name)
		if parameter == nil {
			continue
		}
		value, err := parameter.value(principal, facts, now)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

func (p *Parameter) value(principal string, facts policy.Facts, now time.Time) (string, error) {
	if p.Every > 0 {
		begin, ok := p.begin(now)
		if !ok {
			return "", fmt.Errorf("parameter %s has no value before its first window begins at %s; connect again then, "+
				"or set an earlier start in the pipeline", p.Name, p.Start.Format(time.RFC3339))
		}
		return begin.Format(time.RFC3339), nil
	}
	said := p.said(principal, facts)
	form := fmt.Sprintf("%q says %s(%q, V)", p.Conduit, p.Says, principal)
	switch {
	case len(said) == 0:
		return "", fmt.Errorf("parameter %s has no value: no fact %s; add the fact", p.Name, form)
	case len(said) > 1:
		return "", fmt.Errorf("parameter %s has several values: more than one fact %s; remove all but one", p.Name, form)
	case argument(said[0]) == "":
		return "", fmt.Errorf("parameter %s has an empty value by the fact %s; correct the fact", p.Name, form)
	case !wire.IsText(argument(said[0])): // no record could name the instance
		return "", fmt.Errorf("parameter %s has a value with a NUL, or one that is not UTF-8, by the fact %s; correct the fact",
			p.Name, form)
	}
	return argument(said[0]), nil
}

// said returns what the facts say about a user: no more than two values.
func (p *Parameter) said(principal string, facts policy.Facts) (said []policy.Value) {
	pattern := policy.Pattern{Conduit: p.Conduit, Relation: p.Says,
		Arguments: []policy.Value{policy.String(principal), {}}}
	facts.Lookup(pattern, func(fact policy.Fact) bool {
		// The same fact may be said at many offsets of a log.
		if !slices.Contains(said, fact.Arguments[1]) {
			said = append(said, fact.Arguments[1])
		}
		return len(said) < 2
	})
	return said
}

// argument writes a value as the argument of a policy has it.
func argument(value policy.Value) string {
	switch value.Kind() {
	case policy.IntegerValue:
		return strconv.FormatInt(value.Number(), 10)
	case policy.TimeValue:
		return value.Instant().UTC().Format(time.RFC3339Nano)
	}
	return value.Text()
}

// begin returns when the window of an instant began. ok is false before the first one.
func (p *Parameter) begin(now time.Time) (begin time.Time, ok bool) {
	passed := now.Unix() - p.Start.Unix() // whole seconds, as both the start and the length
	if passed < 0 {
		return p.Start, false
	}
	return time.Unix(p.Start.Unix()+passed-passed%int64(p.Every/time.Second), 0).UTC(), true
}

// Ends returns when the first window of an instance ends, as far as the clock says; ok is false if it
// has none.
func (p *Plan) Ends(instance Instance) (at time.Time, ok bool) {
	names, _ := p.Parameters(instance.Task)
	for i, name := range names {
		parameter := p.parameter(name)
		if parameter == nil || parameter.Every == 0 || i >= len(instance.Arguments) {
			continue
		}
		begin, err := time.Parse(time.RFC3339, instance.Arguments[i])
		if err != nil {
			begin = parameter.Start // of no window: it has ended
		}
		if end := begin.Add(parameter.Every); !ok || end.Before(at) {
			at, ok = end, true
		}
	}
	return at, ok
}

// NextWindow returns when the next window of any parameter begins after an instant; ok is false if
// none is a window.
func (p *Plan) NextWindow(now time.Time) (at time.Time, ok bool) {
	for i := range p.Declared {
		parameter := &p.Declared[i]
		if parameter.Every == 0 {
			continue
		}
		next := parameter.Start
		if begin, began := parameter.begin(now); began {
			next = begin.Add(parameter.Every)
		}
		if !ok || next.Before(at) {
			at, ok = next, true
		}
	}
	return at, ok
}

// IsDerived reports whether the value of a parameter follows from facts or the clock.
func (p *Plan) IsDerived(parameter string) bool { return p.parameter(parameter) != nil }

// Concerned lists the users whose parameters facts may say, each once.
func (p *Plan) Concerned(facts []policy.Fact) (users []string) {
	for _, fact := range facts {
		if len(fact.Arguments) == 2 && slices.ContainsFunc(p.Declared, func(one Parameter) bool {
			return one.Every == 0 && one.Conduit == fact.Conduit && one.Says == fact.Relation
		}) {
			users = append(users, fact.Arguments[0].Text())
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// complete gives an instance that a user and a region make the values that follow from facts and
// the clock: now, and in the window after.
func (p *Plan) complete(instance Instance, facts policy.Facts, now time.Time) (list []Instance) {
	if !p.Derives(instance.Task) {
		return []Instance{instance}
	}
	task := p.task(instance.Task)
	given := task.values(instance)
	user, region := given[manifest.ParameterUser], given[manifest.ParameterRegion]
	for range 2 {
		values, err := p.Derive(instance.Task, user, region, facts, now)
		if err != nil {
			return list // no session can be of it
		}
		one := task.instanceOf(values)
		list = append(list, one)
		var ok bool
		if now, ok = p.Ends(one); !ok {
			return list
		}
	}
	return list
}

// withoutDerived returns an instance as it is given: without the values that are derived.
func (p *Plan) withoutDerived(instance Instance) Instance {
	if !p.Derives(instance.Task) {
		return instance
	}
	names, _ := p.Parameters(instance.Task)
	given := Instance{Task: instance.Task, Arguments: slices.Clone(instance.Arguments)}
	for i, name := range names {
		if i < len(given.Arguments) && p.IsDerived(name) {
			given.Arguments[i] = ""
		}
	}
	return given
}

// instanceOf returns the instance with some values of the task's parameters.
func (t *Task) instanceOf(values map[string]string) Instance {
	instance := Instance{Task: t.Name}
	for _, parameter := range t.Parameters {
		instance.Arguments = append(instance.Arguments, values[parameter])
	}
	return instance
}

// Derives reports whether values of the task's parameters follow from facts or the clock.
func (p *Plan) Derives(task string) bool {
	names, _ := p.Parameters(task)
	return slices.ContainsFunc(names, func(name string) bool { return p.parameter(name) != nil })
}
