// SPDX-License-Identifier: BSD-2-Clause

package offline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

// Explanation is a decision with its derivation.
type Explanation struct {
	api.Explanation
	// Suggestion is the smallest of the tried changes of the conduit's policy with which the
	// access would be allowed; "" if it is allowed, or if there is none.
	Suggestion string   `json:"suggestion,omitempty"`
	Choices    []Choice `json:"choices,omitempty"` // for the conduit
}

// Readers are those who may access a conduit.
type Readers struct {
	api.Readers

	Choices []Choice `json:"choices,omitempty"` // for the conduit
}

// Explain answers a question as the monitor would before any task has run.
func (p *Project) Explain(question api.Question, now time.Time) (Explanation, error) {
	plan, err := p.Pipeline(question.Pipeline)
	if err != nil {
		return Explanation{}, err
	}
	question.Pipeline = plan.Pipeline
	conduit, err := p.Conduit(question.Conduit)
	if err != nil {
		return Explanation{}, err
	}
	what := policy.Read
	if question.Access == policy.Write.String() {
		what = policy.Write
	}
	instance, err := p.instance(plan, question.Task, question.Principal, question.Region, now)
	if err != nil {
		return Explanation{}, err
	}
	who, err := analysis.Predict(plan, p.state, instance)
	if err != nil {
		return Explanation{}, err
	}
	if question.Principal != "" && len(instance.Arguments) > 0 {
		who.Session.Principal = question.Principal // of an instance that leaves the user out, too
	}
	flow := decision.Flow{What: what, Conduit: conduit,
		Who: decision.Subject{Task: instance.Task, Instance: instance.Name(), Taint: who.Taint, Session: who.Session}}
	out := Explanation{Explanation: decision.Explain(question, flow, "declared", p.state, now).InMode(p.modes[plan.Pipeline])}
	out.Derivation, out.Choices = p.inManifests(out.Derivation), p.choicesOf(question.Conduit)
	if !out.Allowed {
		out.Suggestion = analysis.Suggest(plan, p.state, instance, what, conduit, now)
	}
	return out, nil
}

// instance returns the instance of a task that a user gets; without a task's name, of the one
// that has parameters.
func (p *Project) instance(plan *analysis.Plan, task, principal, region string, now time.Time) (analysis.Instance,
	error) {
	var parameters []string
	var names []string
	for _, one := range plan.Tasks {
		names = append(names, one.Name)
		if task == one.Name || task == "" && len(one.Parameters) > 0 {
			task, parameters = one.Name, one.Parameters
		}
	}
	if !slices.Contains(names, task) {
		missing := "task with users"
		if task != "" {
			missing = fmt.Sprintf("task %q", task)
		}
		return analysis.Instance{}, fmt.Errorf("pipeline %s has no %s; name one of its tasks: %s", plan.Pipeline, missing,
			strings.Join(names, ", "))
	}
	if known := p.principal[principal]; region == "" && known != nil {
		region = known.Spec.Region
	}
	values, err := plan.Derive(task, principal, region, p.state, now)
	if err != nil {
		return analysis.Instance{}, fmt.Errorf("%s in pipeline %s: %w", task, plan.Pipeline, err)
	}
	instance := analysis.Instance{Task: task}
	for _, parameter := range parameters {
		instance.Arguments = append(instance.Arguments, values[parameter])
	}
	return instance, nil
}

// Analysis is what the analysis of a pipeline has found.
type Analysis struct {
	api.Analysis

	Plan  *analysis.Plan   `json:"-"`
	Found *analysis.Report `json:"-"`

	Choices []Choice `json:"choices,omitempty"` // for documents of the pipeline
}

// Analyze runs the analysis of a pipeline.
func (p *Project) Analyze(ctx context.Context, pipeline string, now time.Time) (Analysis, error) {
	plan, err := p.Pipeline(pipeline)
	if err != nil {
		return Analysis{}, err
	}
	begun := time.Now()
	result, err := analysis.Run(ctx, plan, p.state, analysis.Options{Now: now})
	if err != nil {
		return Analysis{}, err
	}
	took := time.Since(begun)
	found := result.Report(now)
	return Analysis{Plan: plan, Found: found, Choices: p.choicesIn(plan),
		Analysis: api.AnalysisOf(plan.Pipeline, found, p.state.Bundle().Version, now, took)}, nil
}

// Who lists those who may access a conduit.
func (p *Project) Who(ctx context.Context, request api.ReadersRequest, now time.Time) (Readers, error) {
	plan, err := p.Pipeline(request.Pipeline)
	if err != nil {
		return Readers{}, err
	}
	conduit, err := p.Conduit(request.Conduit)
	if err != nil {
		return Readers{}, err
	}
	what := policy.Read
	if request.Access == policy.Write.String() {
		what = policy.Write
	}
	result, err := analysis.Run(ctx, plan, p.state, analysis.Options{Now: now})
	if err != nil {
		return Readers{}, err
	}
	readers, err := api.ReadersOf(ctx, plan.Pipeline, result, p.state, request, conduit, what)
	return Readers{Readers: readers.InMode(p.modes[plan.Pipeline]), Choices: p.choicesOf(request.Conduit)}, err
}

// Reach is what one user may access.
type Reach struct {
	Pipeline  string        `json:"pipeline"`
	Principal string        `json:"principal"`
	Classes   []ReachedSort `json:"classes"`
	Choices   []Choice      `json:"choices,omitempty"` // for documents of the pipeline
}

// ReachedSort is conduits of one class, or one conduit without a class, that an instance may
// access.
type ReachedSort struct {
	Instance string `json:"instance"`
	Access   string `json:"access"`
	Conduits string `json:"conduits"` // name of the set in the pipeline
	Policy   string `json:"policy,omitempty"`
	// Members are the conduits of the class that there are; nil of a directory, whose files are no conduits of
	// their own.
	Members   *uint32 `json:"members,omitempty"`
	Directory string  `json:"directory,omitempty"` // its path, or "several" if the set has more than one
	Example   string  `json:"example,omitempty"`
}

// What lists the classes of conduits that a user may access, in each task and region that
// is expected of the user, or in the given region.
func (p *Project) What(pipeline, principal, region string, now time.Time) (Reach, error) {
	plan, err := p.Pipeline(pipeline)
	if err != nil {
		return Reach{}, err
	}
	out := Reach{Pipeline: plan.Pipeline, Principal: principal, Classes: []ReachedSort{}, Choices: p.choicesIn(plan)}
	instances, err := p.instancesOf(plan, principal, region, now)
	if err != nil {
		return out, err
	}
	for _, instance := range instances {
		found, err := analysis.RunInstance(plan, p.state, instance, now)
		if err != nil {
			return out, err
		}
		out.Classes = append(out.Classes, p.reached(plan, instance, found)...)
	}
	return out, nil
}

// instancesOf returns the expected instances of a user, or the one of the given region.
func (p *Project) instancesOf(plan *analysis.Plan, principal, region string, now time.Time) ([]analysis.Instance,
	error) {
	if task, is := strings.CutPrefix(principal, "task/"); is {
		if parameters, _ := plan.Parameters(task); len(parameters) > 0 {
			return nil, fmt.Errorf("task %s of pipeline %s runs for users (%s), none by itself; name a user as the principal",
				task, plan.Pipeline, strings.Join(parameters, ", "))
		}
		instance, err := p.instance(plan, task, "", "", now)
		return []analysis.Instance{instance}, err
	}
	var found []analysis.Instance
	for _, instance := range plan.Instances(p.state, now) {
		parameters, _ := plan.Parameters(instance.Task)
		user, at := slices.Index(parameters, "user"), slices.Index(parameters, "region")
		if user >= 0 && instance.Arguments[user] == principal &&
			(region == "" || at < 0 || instance.Arguments[at] == region) {
			found = append(found, instance)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	instance, err := p.instance(plan, "", principal, region, now)
	return []analysis.Instance{instance}, err
}

func (p *Project) reached(plan *analysis.Plan, instance analysis.Instance, found *analysis.Capabilities) []ReachedSort {
	var list []ReachedSort
	add := func(access policy.Operation, classes []uint32) {
		for _, number := range classes {
			class := p.state.Class(number)
			if class.Class == nil || class.Policy == nil {
				continue
			}
			one := ReachedSort{Instance: instance.Name(), Access: access.String(),
				Conduits: strings.TrimPrefix(class.Set, plan.Pipeline+"/"), Policy: class.Policy.String()}
			if class.Directory && class.Members == 0 {
				one.Directory = directoryOf(plan, one.Conduits)
			} else {
				one.Members = &class.Members
			}
			if class.Representative != 0 {
				one.Example, _ = p.state.Name(class.Representative)
			}
			list = append(list, one)
		}
	}
	add(policy.Read, found.Reads)
	add(policy.Write, found.Writes)
	single := uint32(1)
	for _, other := range found.Others {
		access := policy.Read
		if other.Write {
			access = policy.Write
		}
		list = append(list, ReachedSort{Instance: instance.Name(), Access: access.String(), Conduits: other.Set,
			Members: &single, Example: other.Conduit})
	}
	slices.SortStableFunc(list, func(a, b ReachedSort) int {
		return cmp.Or(cmp.Compare(a.Access, b.Access), cmp.Compare(a.Conduits, b.Conduits))
	})
	return list
}

// directoryOf returns the path of a set of conduits that is a directory.
func directoryOf(plan *analysis.Plan, name string) string {
	for _, set := range plan.Sets {
		if set.Name == name && len(set.Paths) == 1 {
			return set.Paths[0]
		}
	}
	return "several"
}
