// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
)

// All decisions about flows are made in this file.

// Decision says whether a flow is allowed, and why.
type Decision struct {
	Allowed bool
	// Conditions under which an allowed flow stays allowed, sorted, without
	// duplicates. Empty when denied.
	Conditions []Condition
	// Sentence says of a denial what a person would say; "it" is the conduit. It and
	// Reason are empty for a denial with Environment.Bulk.
	Sentence string
	// Reason is one line for the audit log and for people. On a denial it is the
	// sentence, and then in brackets the obligation or rule that failed and the nearest
	// literal that did not hold.
	Reason string
	// Remedy is a change of one fact after which the flow would be allowed; nil where
	// there is none, or Environment.Explain is not set.
	Remedy *FactChange
	// Unmet are the policies of which something was not met, each once, in the order
	// in which they were asked. Of a taint's obligation it is the policy that the taint
	// comes from. Empty when allowed.
	Unmet []*Policy
	// Derivation is filled when Environment.Explain is set.
	Derivation *Derivation
	// Err is the limit that was exceeded, if that is why the flow was denied.
	Err error
}

// Operation is what a task wants to do with a conduit.
type Operation uint8

// The operations on conduits. Data leave when they go to the connected party through an
// egress connection.
const (
	Read Operation = iota
	Write
	Leave
)

var operationNames = [...]string{"read", "write", "leave"}

// String is "read", "write" or "leave".
func (o Operation) String() string {
	if int(o) < len(operationNames) {
		return operationNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Decide decides whether a task with this taint may do something with a conduit:
//
//   - Read: the taint has to be at least as restrictive as what the conduit's policy
//     demands of everything derived from it. This does not depend on the session.
//   - Write: every obligation of the taint has to be kept by the conduit's policy, or to
//     end with this write; and the conduit's update rule has to hold for the session.
//   - Leave: every obligation of the taint has to admit the session, which is the
//     connected party, or to end here; and so has the conduit's read rule. A connection
//     without a policy adds nothing to what the taint demands.
//
// A conduit without a policy may be neither read nor written by anybody.
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

// judgement is what has become of a decision so far.
type judgement struct {
	unmet  []*Policy
	denial denial // of the first that is not met
	remedy *FactChange
}

// ask checks one thing that a policy asks for, unless that policy is waived.
func (p *prover) ask(owner *Policy, holds func() bool, unmet func() denial) {
	if p.environment.Waive != nil && p.environment.Waive(owner) {
		return
	}
	p.failure.literal = nil
	// What ran out of steps may have been cut short anywhere.
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

// deny notes why the decision is a denial.
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

// remedied keeps a remedy only if the decision would then be another one.
func remedied(change *FactChange, state State, environment Environment, flow string,
	judge func(*prover) string) *FactChange {
	environment.Explain, environment.Bulk = false, true
	if change == nil || !decide(changed{state, *change}, &environment, flow, judge).Allowed {
		return nil
	}
	return change
}

// decide runs one decision and puts its result together. judge asks for everything,
// and says what holds if all of it is met.
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

// discharged shows that an obligation is no obstacle: an exit is open and what lies
// behind it is no obstacle either, or the obligation is kept.
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
