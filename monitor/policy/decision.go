// SPDX-License-Identifier: BSD-2-Clause

package policy

// All decisions about flows are made in this file.

// Decision is the answer to "may this flow happen".
type Decision struct {
	Allowed bool
	// Conditions under which an allowed flow stays allowed, sorted, without
	// duplicates. Empty when denied.
	Conditions []Condition
	// Reason is one line for the audit log and for people. On a denial it names
	// the obligation or rule that failed and the nearest literal that did not hold.
	Reason string
	// Derivation is filled when Environment.Explain is set.
	Derivation *Derivation
	// Err is the limit that was exceeded, if that is why the flow was denied.
	Err error
}

// MayRead decides whether a task with this taint may read data with this label: the
// taint has to be at least as restrictive. It does not depend on the session.
func MayRead(taint, label Label, state State, environment Environment) Decision {
	return decide(state, &environment, "read", func(p *prover) (bool, string) {
		for _, demanded := range label.duties {
			p.failure.literal = nil
			if !p.covered(taint, demanded) {
				return false, "the taint does not keep the obligation " + demanded.String()
			}
		}
		return true, "the taint keeps every obligation of the data"
	})
}

// MayWrite decides whether a task with this taint may write the target: every
// obligation of the taint has to be kept by the target's policy, or to end with
// this write; and the target's update rule has to hold for the environment's session.
func MayWrite(taint Label, target Conduit, state State, environment Environment) Decision {
	environment.Target = &target
	return decide(state, &environment, "write "+target.Name, func(p *prover) (bool, string) {
		label := target.Label()
		read := Rule{target.Policy, readRule, target.Name}
		for _, held := range taint.duties {
			p.failure.literal = nil
			if !p.discharged(held, 0, func(held duty) bool {
				return p.ruleAtLeast(read, held.rule()) && p.covered(label, held)
			}) {
				return false, "the conduit does not keep the taint's obligation " + held.String()
			}
		}
		p.failure.literal = nil
		if !p.evaluate(Rule{target.Policy, updateRule, target.Name}) {
			return false, "the update rule of " + target.Name + " does not hold"
		}
		return true, "the conduit keeps every obligation of the taint, and its update rule holds"
	})
}

// MayLeave decides whether data with this taint may leave by the egress conduit to
// the environment's session, the connected party. An egress conduit without a
// policy adds nothing to what the taint demands.
func MayLeave(taint Label, egress Conduit, state State, environment Environment) Decision {
	environment.Target = &egress
	return decide(state, &environment, "leave by "+egress.Name, func(p *prover) (bool, string) {
		for _, held := range taint.duties {
			p.failure.literal = nil
			if !p.discharged(held, 0, func(held duty) bool { return p.evaluate(held.rule()) }) {
				return false, "the connected party may not read under the obligation " + held.String()
			}
		}
		p.failure.literal = nil
		if egress.Policy != nil && !p.evaluate(egress.Policy.Read(egress.Name)) {
			return false, "the connected party may not read " + egress.Name
		}
		return true, "the connected party may read everything the data derives from"
	})
}

// Evaluate decides one rule for the environment's session and target.
func Evaluate(rule Rule, state State, environment Environment) Decision {
	return decide(state, &environment, rule.name.String(), func(p *prover) (bool, string) {
		if p.evaluate(rule) {
			return true, "the " + rule.String() + " holds"
		}
		return false, "the " + rule.String() + " does not hold"
	})
}

// decide runs one decision and puts its result together.
func decide(state State, environment *Environment, flow string, judge func(*prover) (allowed bool, reason string)) Decision {
	p := newProver(state, environment)
	defer p.release()
	var root *Derivation
	if environment.Explain {
		root = &Derivation{Text: flow}
		p.tree = root
	}
	allowed, reason := judge(p)
	// A decision that ran out of steps may have been cut short anywhere.
	allowed = allowed && p.budget.err == nil
	decision := Decision{Allowed: allowed, Reason: reason, Derivation: root, Err: p.budget.err}
	if allowed {
		root.mark(true)
		decision.Conditions = p.takeConditions()
		return decision
	}
	decision.Reason += "; " + p.reason()
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
