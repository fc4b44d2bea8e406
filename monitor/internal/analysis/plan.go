// SPDX-License-Identifier: BSD-2-Clause

// Package analysis is the offline analysis: it decides ahead of time every access
// that a pipeline's tasks are expected to make, for every expected instance of
// them, by class of conduits rather than by conduit. The accesses that it allows are an
// instance's capability set. The monitor decides the others when they happen, with the
// same functions of package policy.
//
// It is pure: a catalog state, a plan and the time go in, a [Result] comes out,
// and the same inputs give the same bytes. After a change of facts or classes, it
// re-examines only what the change can affect.
package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// Plan lists the expected accesses of one pipeline. An error in it costs speed, but not
// safety.
type Plan struct {
	Pipeline string
	Tasks    []Task
	Sets     []Set
	// Declared are the parameters whose values follow from facts or the clock. Tasks have further ones.
	Declared []Parameter
	// Seen are instances that have occurred before. They are analysed although no
	// expectation names them. They do not count when two plans are compared. Arguments that follow
	// from facts or the clock are left empty. By task, then arguments.
	Seen []Instance
}

// Task is one task and its expected accesses.
type Task struct {
	Name       string
	Parameters []string          // "user" and "region" become the session
	Taint      catalog.Reference // arguments may hold {parameter}
	Reads      []string          // names of sets
	Writes     []string
	Expect     []Expectation // origins of the instances, for a task with parameters
}

// Expectation takes instances from facts: each tuple of Says in Conduit gives values to
// the named parameters.
type Expectation struct {
	Conduit    string
	Says       string
	Parameters []string
}

// Set is a named set of conduits of a pipeline.
type Set struct {
	Name     string // "documents"
	Catalog  string // its name in the catalog: "syse/documents"
	Kind     policy.ConduitKind
	Ingress  bool
	Egress   bool
	Paths    []string           // of files and tuples
	Policy   *catalog.Reference // of pipes and channels
	From, To string             // tasks at the ends of a pipe or channel
}

// PlanOf reads a plan from manifests.
func PlanOf(resolved *manifest.Resolved) (*Plan, error) {
	spec := resolved.Pipeline.Spec
	plan := &Plan{Pipeline: resolved.Pipeline.Metadata.Name}
	for _, conduit := range spec.Conduits {
		kind, err := policy.ParseConduitKind(conduit.Kind)
		if err != nil {
			return nil, fmt.Errorf("pipeline %s: conduit %s: %w", plan.Pipeline, conduit.Name, err)
		}
		set := Set{
			Name: conduit.Name, Catalog: plan.Pipeline + "/" + conduit.Name, Kind: kind,
			Ingress: conduit.Ingress, Egress: conduit.Egress, From: conduit.From, To: conduit.To,
		}
		for _, path := range conduit.Paths {
			set.Paths = append(set.Paths, path.Path)
		}
		if conduit.Policy != nil {
			set.Policy = &catalog.Reference{Policy: conduit.Policy.Name, Arguments: conduit.Policy.Arguments}
		}
		plan.Sets = append(plan.Sets, set)
	}
	var err error
	if plan.Declared, err = planParameters(spec.Parameters); err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", plan.Pipeline, err)
	}
	for _, task := range resolved.Tasks {
		plan.Tasks = append(plan.Tasks, planTask(task, spec.Expect))
	}
	return plan, nil
}

func planTask(task manifest.Task, expected []manifest.Expectation) Task {
	out := Task{
		Name: task.Metadata.Name, Parameters: task.Spec.Parameters,
		Reads: task.Spec.Reads, Writes: task.Spec.Writes,
	}
	if task.Spec.Taint != nil {
		out.Taint = catalog.Reference{Policy: task.Spec.Taint.Name, Arguments: task.Spec.Taint.Arguments}
	}
	for _, expectation := range expected {
		if expectation.Task == out.Name {
			out.Expect = append(out.Expect, Expectation{
				Conduit: expectation.From.Conduit, Says: expectation.From.Says, Parameters: expectation.From.Parameters,
			})
		}
	}
	return out
}

func (p *Plan) set(name string) *Set {
	for i := range p.Sets {
		if p.Sets[i].Name == name {
			return &p.Sets[i]
		}
	}
	return nil
}

func (p *Plan) task(name string) *Task {
	for i := range p.Tasks {
		if p.Tasks[i].Name == name {
			return &p.Tasks[i]
		}
	}
	return nil
}

// Instance is a task with values for its parameters, in their order.
type Instance struct {
	Task      string
	Arguments []string
}

// Name returns "indexer", or "worker(alice, de)". A value that could be mistaken for more
// or less than itself is in quotes, so no two instances have the same name.
func (i Instance) Name() string {
	if len(i.Arguments) == 0 {
		return i.Task
	}
	values := slices.Clone(i.Arguments)
	for at, value := range values {
		if value == "" || strings.ContainsAny(value, `,()"\`) {
			values[at] = strconv.Quote(value)
		}
	}
	return i.Task + "(" + strings.Join(values, ", ") + ")"
}

func (i Instance) compare(other Instance) int {
	return cmp.Or(strings.Compare(i.Task, other.Task), slices.Compare(i.Arguments, other.Arguments))
}

// Instances lists the expected instances: one of each task without parameters, and
// those that the facts name, with the values that the parameters have at an instant, and those of
// the windows after.
func (p *Plan) Instances(facts policy.Facts, now time.Time) []Instance {
	instances := p.given(facts)
	if len(p.Declared) > 0 {
		given := instances
		instances = nil
		for _, instance := range given {
			instances = append(instances, p.complete(instance, facts, now)...)
		}
	}
	slices.SortFunc(instances, Instance.compare)
	return slices.CompactFunc(instances, func(a, b Instance) bool { return a.compare(b) == 0 })
}

// Remember replaces Seen.
func (p *Plan) Remember(seen []Instance) {
	p.Seen = slices.Clone(seen)
	slices.SortFunc(p.Seen, Instance.compare)
}

// given lists the expected instances without the values that are derived.
func (p *Plan) given(facts policy.Facts) (instances []Instance) {
	for i := range p.Tasks {
		task := &p.Tasks[i]
		if len(task.Parameters) == 0 {
			instances = append(instances, Instance{Task: task.Name})
			continue
		}
		for _, expectation := range task.Expect {
			instances = append(instances, expectation.instances(task, p, facts, "")...)
		}
	}
	return append(instances, p.Seen...)
}

// named returns the instance that a fact names, whose values have this order. A number or an
// empty text is no user or region.
func (t *Task) named(fact policy.Fact, order []int) (Instance, bool) {
	arguments := make([]string, len(order))
	for i, at := range order {
		if at == derived {
			continue
		}
		if arguments[i] = fact.Arguments[at].Text(); arguments[i] == "" {
			return Instance{}, false
		}
	}
	return Instance{Task: t.Name, Arguments: arguments}, true
}

// derived is the position of a parameter whose value no tuple gives.
const derived = -1

// order maps the task's parameters to positions in the expectation's tuples. It returns
// nil if one is missing that is not derived.
func (e Expectation) order(parameters []string, plan *Plan) []int {
	order := make([]int, len(parameters))
	for i, parameter := range parameters {
		if order[i] = slices.Index(e.Parameters, parameter); order[i] < 0 && !plan.IsDerived(parameter) {
			return nil
		}
	}
	return order
}

// values returns an instance's arguments by parameter.
func (t *Task) values(instance Instance) map[string]string {
	values := make(map[string]string, len(t.Parameters))
	for i, parameter := range t.Parameters {
		if i < len(instance.Arguments) {
			values[parameter] = instance.Arguments[i]
		}
	}
	return values
}

// fillAny gives every placeholder of a path the same value.
func fillAny(path, value string) string {
	var out strings.Builder
	for {
		before, after, opened := strings.Cut(path, "{")
		out.WriteString(before)
		_, following, closed := strings.Cut(after, "}")
		if !opened || !closed {
			return out.String()
		}
		out.WriteString(value)
		path = following
	}
}
