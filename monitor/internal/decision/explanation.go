// SPDX-License-Identifier: BSD-2-Clause

package decision

import (
	"fmt"
	"strings"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/reading"
	"shai.dev/monitor/internal/shellword"
	"shai.dev/monitor/policy"
)

// Explain decides on a flow, and answers the question about it for people. taintOf says what
// the flow's taint is that of: "declared".
func Explain(question reading.Question, flow Flow, taintOf string, state *catalog.State,
	now time.Time) reading.Explanation {
	flow.Explain = true
	found := Decide(flow, state, now)
	conduit := flow.Conduit
	answer := reading.Explanation{
		Question: question, Allowed: found.Allowed, Instance: flow.Who.Instance, Policy: conduit.Policy.String(),
		Taint: flow.Who.Taint.String(), TaintOf: taintOf,
		Class: state.ClassOf(uint32(conduit.ID)), Derivation: derivationOf(found.Derivation), //nolint:gosec // compared with the conduits that there are
	}
	for _, condition := range found.Conditions {
		answer.Conditions = append(answer.Conditions, condition.String())
	}
	answer.Sentence = fmt.Sprintf("%s may %s it (%s)", flow.Who.Instance, flow.What, answer.Policy)
	if !found.Allowed {
		answer.Sentence = found.Sentence
	}
	if found.Remedy != nil {
		answer.Remedy = commandFor(*found.Remedy)
	}
	if found.WouldDeny != "" {
		answer.WouldDeny = found.Would()
	}
	if !found.Allowed {
		answer.Provisos = leftOut(flow)
	}
	return answer
}

// leftOut says what a question does not name that policies may ask for.
func leftOut(f Flow) (provisos []string) {
	if f.What == policy.Read {
		return nil // it is decided on by taint and policy alone
	}
	who := f.Who.Session
	if who != nil && who.Principal != "task/"+f.Who.Instance && !who.IP.IsValid() &&
		(f.Conduit.Policy != nil && f.Conduit.Policy.Template().AsksForAddress() || f.Who.Taint.AsksForAddress()) {
		provisos = append(provisos, "a policy asks for the user's address, which the question does not name: it may be "+
			"allowed from some")
	}
	if f.Conduit.Type != "" {
		provisos = append(provisos, fmt.Sprintf("each write to a conduit of type %s is decided on by what is written, which "+
			"the question does not name: some may be allowed", f.Conduit.Type))
	}
	return provisos
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

func derivationOf(d *policy.Derivation) reading.Derivation {
	if d == nil {
		return reading.Derivation{}
	}
	out := reading.Derivation{Statement: d.Text, Holds: d.Holds, Source: d.Source}
	for _, child := range d.Children {
		out.Because = append(out.Because, derivationOf(child))
	}
	return out
}
