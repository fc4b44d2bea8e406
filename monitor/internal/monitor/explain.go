// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

// Explain implements [api.Service].
func (m *Monitor) Explain(_ context.Context, question api.Question) (api.Explanation, error) {
	title := "explain"
	p, err := m.pipeline(title, question.Pipeline)
	if err != nil {
		return api.Explanation{}, err
	}
	who, err := p.askedSubject(question)
	if err != nil {
		return api.Explanation{}, api.Invalid(title, "", "%v", err)
	}
	state := m.state()
	conduit, found := state.ConduitNamed(question.Conduit)
	if !found {
		return api.Explanation{}, api.NotFound(title,
			"use the name that the pipeline's paths give it, such as /corpus/public/17.txt",
			"no rule of the bundle covers the conduit %q", question.Conduit)
	}
	operations := map[string]policy.Operation{"": policy.Read, "read": policy.Read, "write": policy.Write}
	what, known := operations[question.Access]
	if !known {
		return api.Explanation{}, api.Invalid(title, "ask for read or write", "access %q is unknown", question.Access)
	}
	decision := decide(flow{who: who, what: what, conduit: conduit, explain: true}, state, time.Now())
	question.Pipeline = p.name
	answer := api.Explanation{
		Question: question, Allowed: decision.Allowed, Instance: who.instance, Policy: conduit.Policy.String(),
		Class: state.ClassOf(uint32(conduit.ID)), Derivation: derivationOf(decision.Derivation), //nolint:gosec // compared with the conduits that there are

	}
	for _, condition := range decision.Conditions {
		answer.Conditions = append(answer.Conditions, condition.String())
	}
	answer.Sentence = fmt.Sprintf("%s may %s it (%s)", who.instance, what, answer.Policy)
	if !decision.Allowed {
		answer.Sentence = decision.Sentence
	}
	if decision.Remedy != nil {
		answer.Remedy = commandFor(*decision.Remedy)
	}
	if decision.wouldDeny != "" {
		answer.WouldDeny = decision.would()
	}
	return answer, nil
}

// commandFor returns the command that changes a fact.
func commandFor(change policy.FactChange) string {
	verb, typed, words := "remove", "", []string{change.Fact.Conduit, change.Fact.Relation}
	if change.Add {
		verb = "add"
	}
	for _, value := range change.Fact.Arguments {
		if value.Kind() != policy.StringValue {
			typed = "--typed "
		}
	}
	for _, value := range change.Fact.Arguments {
		word := value.Text()
		if typed != "" {
			word = value.String()
		}
		words = append(words, word)
	}
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return "shai facts " + verb + " " + typed + strings.Join(words, " ")
}

// shellSafe are the characters that need no quotes in a shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@"

// shellWord returns a text as one word of a shell command, in quotes if it needs them.
func shellWord(text string) string {
	if text != "" && strings.Trim(text, shellSafe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// askedSubject returns the instance that a question is about.
func (p *pipeline) askedSubject(question api.Question) (subject, error) {
	task := p.tasks[question.Task]
	for _, name := range p.order {
		if task == nil && question.Task == "" && len(p.tasks[name].spec.Parameters) > 0 {
			task = p.tasks[name]
		}
	}
	if task == nil {
		return subject{}, api.NotFound("explain", "name one of: "+strings.Join(p.order, ", "),
			"pipeline %s has no task %q", p.name, question.Task)
	}
	if len(task.spec.Parameters) == 0 {
		return task.subject, nil
	}
	values := parametersOf(question.Principal, question.Region)
	name := instanceOf(task, values).Name()
	taint, err := taintOf(p.services.state().Bind, task.spec, name, values)
	if err != nil {
		return subject{}, err
	}
	return subject{
		task: task.name, instance: name, taint: taint,
		session: &policy.Session{Principal: question.Principal, Region: question.Region},
	}, nil
}

func derivationOf(d *policy.Derivation) api.Derivation {
	if d == nil {
		return api.Derivation{}
	}
	out := api.Derivation{Statement: d.Text, Holds: d.Holds}
	for _, child := range d.Children {
		out.Because = append(out.Because, derivationOf(child))
	}
	return out
}
