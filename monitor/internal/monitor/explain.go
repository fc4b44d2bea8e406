// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/shellword"
	"shai.dev/monitor/policy"
)

// Explain implements [api.Service].
func (m *Monitor) Explain(_ context.Context, question api.Question) (api.Explanation, error) {
	title := "explain"
	p, err := m.pipeline(title, question.Pipeline)
	if err != nil {
		return api.Explanation{}, err
	}
	state := m.state()
	conduit, what, err := accessOf(title, state, question.Conduit, question.Access)
	if err != nil {
		return api.Explanation{}, err
	}
	who, err := p.Asked(question.Task, question.Principal, question.Region, what)
	if errors.Is(err, pipeline.ErrNoTask) {
		err = noTask(title, p, question.Task)
	}
	if err != nil {
		return api.Explanation{}, api.Invalid(title, "", "%v", err)
	}
	access := decision.Flow{Who: who.Subject, What: what, Conduit: conduit, Explain: true}
	found := decision.Decide(access, state, time.Now())
	question.Pipeline = p.Name()
	answer := api.Explanation{
		Question: question, Allowed: found.Allowed, Instance: who.Instance, Policy: conduit.Policy.String(),
		Taint: who.Taint.String(), TaintOf: who.TaintOf,
		Class: state.ClassOf(uint32(conduit.ID)), Derivation: derivationOf(found.Derivation), //nolint:gosec // compared with the conduits that there are
	}
	for _, condition := range found.Conditions {
		answer.Conditions = append(answer.Conditions, condition.String())
	}
	answer.Sentence = fmt.Sprintf("%s may %s it (%s)", who.Instance, what, answer.Policy)
	if !found.Allowed {
		answer.Sentence = found.Sentence
	}
	if found.Remedy != nil {
		answer.Remedy = commandFor(*found.Remedy)
	}
	if found.WouldDeny != "" {
		answer.WouldDeny = found.Would()
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
		words[i] = shellword.Quote(word)
	}
	return "shai facts " + verb + " " + typed + strings.Join(words, " ")
}

func derivationOf(d *policy.Derivation) api.Derivation {
	if d == nil {
		return api.Derivation{}
	}
	out := api.Derivation{Statement: d.Text, Holds: d.Holds, Source: d.Source}
	for _, child := range d.Children {
		out.Because = append(out.Because, derivationOf(child))
	}
	return out
}
