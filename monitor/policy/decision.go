// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
	"time"
)

// All decisions about flows are made in this file.

// Decision says whether a flow is allowed, and why.
type Decision struct {
	Allowed bool
	// Conditions under which an allowed flow stays allowed, sorted, without
	// duplicates. Empty when denied.
	Conditions []Condition
	// Sentence describes a denial in a person's words; "it" is the conduit. It and Reason
	// are empty for a denial with Environment.Bulk.
	Sentence string
	// Reason is one line for the audit log and for people. For a denial it is the
	// sentence, followed in brackets by the obligation or rule that failed and the
	// nearest literal that did not hold.
	Reason string
	// Remedy is a change of one fact after which the flow would be allowed. It is nil if
	// there is none, or if Environment.Explain is not set.
	Remedy *FactChange
	// Unmet are the policies with an unmet demand, each once, in the order in which they
	// were checked. For a taint's obligation it is the taint's policy. Empty when
	// allowed.
	Unmet []*Policy
	// Next is the first instant at which a denial may no longer be one only because time has
	// passed. It is zero if there is none. Decisions that compute with the clock are left out:
	// nobody can tell when they change.
	Next time.Time
	// Derivation is filled when Environment.Explain is set.
	Derivation *Derivation
	// Err is the limit that was exceeded, if that is why the flow was denied.
	Err error
}

// Operation is an access of a task to a conduit.
type Operation uint8

// The operations on conduits. Data leave when they go to the connected party through an
// egress connection.
const (
	Read Operation = iota
	Write
	Leave
)

var operationNames = [...]string{"read", "write", "leave"}

// String returns "read", "write" or "leave".
func (o Operation) String() string {
	if int(o) < len(operationNames) {
		return operationNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Decide decides whether a task with this taint may use a conduit in this way:
//
//   - Read: the taint has to be at least as restrictive as the obligations that the
//     conduit's policy puts on everything derived from it. This does not depend on the
//     session.
//   - Write: the conduit's policy has to keep every obligation of the taint, unless the
//     obligation ends with this write; and the conduit's update rule has to hold for the
//     session.
//   - Leave: every obligation of the taint has to admit the session, which is the
//     connected party, or to end here; the same holds for the conduit's read rule. A
//     connection without a policy adds no obligation.
//
// Nobody may read or write a conduit without a policy.
func Decide(operation Operation, taint Label, conduit Conduit, state State, environment Environment) Decision {
	switch operation {
	case Read:
		return mayRead(taint, conduit.Label(), state, environment)
	case Write:
		return mayWrite(taint, conduit, state, environment)
	case Leave:
		return mayLeave(taint, conduit, state, environment)
	}
	return Decision{Reason: operation.String() + " is unknown"}
}

// AtLeast decides whether a taint is at least as restrictive as another one: whether it
// keeps every obligation of the other. A task whose taint is raised may go on using what it
// has read.
func AtLeast(taint, other Label, state State, environment Environment) Decision {
	return mayRead(taint, other, state, environment)
}

func mayRead(taint, label Label, state State, environment Environment) Decision {
	return decide(state, &environment, "read", func(p *prover) string {
		for _, demanded := range label.duties {
			p.ask(demanded.obligation.policy, func() bool { return p.covered(taint, demanded) }, func() denial {
				return denial{p.unread(taint, demanded), "the taint does not keep the obligation " + demanded.String()}
			})
		}
		return "the taint keeps every obligation of the data"
	})
}

func mayWrite(taint Label, target Conduit, state State, environment Environment) Decision {
	environment.Target = &target
	return decide(state, &environment, "write "+target.Name, func(p *prover) string {
		label := target.Label()
		read := Rule{target.Policy, readRule, target.Name}
		for _, held := range taint.duties {
			p.ask(held.obligation.policy, func() bool {
				return p.discharged(held, 0, func(held duty) bool {
					return p.ruleAtLeast(read, held.rule()) && p.covered(label, held)
				})
			}, func() denial {
				return denial{p.unkept(held, target),
					"the conduit does not keep the taint's obligation " + held.String()}
			})
		}
		update := Rule{target.Policy, updateRule, target.Name}
		p.ask(update.owner(), func() bool { return p.evaluate(update) }, func() denial {
			return denial{p.unmetRule(update, "write", "written"),
				"the update rule of " + target.Name + " does not hold"}
		})
		return "the conduit keeps every obligation of the taint, and its update rule holds"
	})
}

func mayLeave(taint Label, egress Conduit, state State, environment Environment) Decision {
	environment.Target = &egress
	return decide(state, &environment, "leave by "+egress.Name, func(p *prover) string {
		for _, held := range taint.duties {
			p.ask(held.obligation.policy, func() bool {
				return p.discharged(held, 0, func(held duty) bool { return p.evaluate(held.rule()) })
			}, func() denial {
				return denial{p.unmetRule(held.rule(), "read", "read"),
					"the connected party may not read under the obligation " + held.String()}
			})
		}
		if egress.Policy != nil {
			p.ask(egress.Policy, func() bool { return p.evaluate(egress.Policy.Read(egress.Name)) }, func() denial {
				return denial{p.unmetRule(egress.Policy.Read(egress.Name), "read", "read"),
					"the connected party may not read " + egress.Name}
			})
		}
		return "the connected party may read everything the data derives from"
	})
}

// judgement is the state of a decision in progress.
type judgement struct {
	unmet  []*Policy
	denial denial // of the first unmet demand
	remedy *FactChange
}

// ask checks one demand of a policy, unless that policy is waived.
func (p *prover) ask(owner *Policy, holds func() bool, unmet func() denial) {
	if p.environment.Waive != nil && p.environment.Waive(owner) {
		return
	}
	p.failure.literal = nil
	// A proof that ran out of steps may be incomplete anywhere.
	if holds() && p.budget.err == nil {
		return
	}
	if len(p.judgement.unmet) == 0 && !p.environment.Bulk {
		p.deny(unmet)
	}
	if !slices.Contains(p.judgement.unmet, owner) {
		p.judgement.unmet = append(p.judgement.unmet, owner)
	}
}

// deny records why the decision is a denial.
func (p *prover) deny(unmet func() denial) {
	var because denial
	because.sentence = p.saying(func() string {
		because = unmet()
		return because.sentence
	})
	if because.detail != "" {
		because.detail += "; "
	}
	because.detail += p.reason()
	p.judgement.denial = because
	if p.environment.Explain {
		if change, found := p.failure.remedy(); found {
			p.judgement.remedy = &change
		}
	}
}

// remedied keeps a remedy only if it would change the decision.
func remedied(change *FactChange, state State, environment Environment, flow string,
	judge func(*prover) string) *FactChange {
	environment.Explain, environment.Bulk = false, true
	if change == nil || !decide(changed{state, *change}, &environment, flow, judge).Allowed {
		return nil
	}
	return change
}

// decide makes one decision and assembles its result. judge checks every demand and
// returns what holds if all are met.
func decide(state State, environment *Environment, flow string, judge func(*prover) string) Decision {
	p := newProver(state, environment)
	defer p.release()
	var root *Derivation
	if environment.Explain {
		root = &Derivation{Text: flow}
		p.tree = root
	}
	met := judge(p)
	decision := Decision{Derivation: root, Err: p.budget.err}
	if len(p.judgement.unmet) > 0 {
		decision.Sentence, decision.Reason, decision.Unmet = p.judgement.denial.sentence, p.judgement.denial.String(),
			p.judgement.unmet
		decision.Next = p.budget.next.Instant()
		decision.Remedy = remedied(p.judgement.remedy, state, *environment, flow, judge)
		return decision
	}
	root.mark(true)
	decision.Allowed, decision.Reason, decision.Conditions = true, met, p.takeConditions()
	return decision
}

func (d *Derivation) mark(holds bool) {
	if d != nil {
		d.Holds = holds
	}
}

// discharged shows that an obligation does not prevent the flow: the obligation is kept,
// or an exit is open and the obligations behind it do not prevent the flow either.
func (p *prover) discharged(held duty, depth int, kept func(duty) bool) bool {
	node := p.enterDuty("held: ", held)
	defer p.leave(node)
	start := len(p.conditions)
	for i := range held.obligation.exits {
		if depth < MaxDepth && p.takesExit(&held.obligation.exits[i], held, depth, kept) {
			return node.holds()
		}
		p.conditions = p.conditions[:start]
	}
	if kept(held) {
		return node.holds()
	}
	p.conditions = p.conditions[:start]
	return false
}

func (p *prover) takesExit(way *exit, held duty, depth int, kept func(duty) bool) bool {
	if !p.satisfied(way.clause(), held.rule()) {
		return false
	}
	for _, behind := range way.behind {
		if !p.discharged(newDuty(behind, held.this), depth+1, kept) {
			return false
		}
	}
	return true
}

// evaluate shows that some clause of the rule holds in the environment.
func (p *prover) evaluate(rule Rule) bool {
	node := p.enterRule(rule)
	defer p.leave(node)
	clauses := rule.compiled().clauses
	for i := range clauses {
		if p.satisfied(&clauses[i], rule) {
			return node.holds()
		}
	}
	return false
}

// satisfied shows that a clause holds in the environment.
func (p *prover) satisfied(c *clause, owner Rule) bool {
	p.comparing = false
	p.hypotheses = p.hypotheses[:0]
	p.open(owner, c)
	proved := p.prove(c.body, 0, nil)
	p.explainClause(c, owner, proved)
	return proved
}
