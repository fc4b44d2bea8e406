// SPDX-License-Identifier: BSD-2-Clause

// Package policytest asks policies questions: one at a time, or as the cases of a file that
// stands beside the policy. It needs no monitor. What it is not told, such as the time or the
// content of a write, is absent, and conditions about it do not hold.
package policytest

import (
	"shai.dev/monitor/policy"
)

// Operation is what a question is about.
type Operation string

// The operations.
const (
	Read   Operation = "read"   // the session gets the conduit's data itself
	Update Operation = "update" // the session changes the conduit
	Derive Operation = "derive" // data derived from the conduit flow to another one
)

// Operations lists them.
func Operations() []string { return []string{string(Read), string(Update), string(Derive)} }

// Question asks whether a policy allows an operation.
type Question struct {
	Operation   Operation
	Conduit     policy.Conduit // with its policy
	To          policy.Conduit // of Derive; without a policy: where the session's party gets the data
	Holds       policy.Label   // of Update: what the data that are written derive from
	State       policy.State
	Environment policy.Environment // without a target: the operation says which it is
}

// Decide answers the question with the functions by which the monitor decides.
//
// Read evaluates the read rule for the session. Update evaluates the update rule, and whether
// the conduit keeps what the data derive from. Derive asks whether each restriction on derived
// data is kept by the conduit that they flow to, admits the session, or has ended.
func (q Question) Decide() policy.Decision {
	decision := q.decide()
	if decision.Derivation != nil {
		decision.Derivation.Text = q.String()
	}
	return decision
}

func (q Question) decide() policy.Decision {
	switch q.Operation {
	case Update:
		return policy.Decide(policy.Write, q.Holds, q.Conduit, q.State, q.Environment)
	case Derive:
		label := q.Conduit.Label()
		if q.To.Policy != nil {
			return policy.Decide(policy.Write, label, q.To, q.State, q.Environment)
		}
		return policy.Decide(policy.Leave, label, q.To, q.State, q.Environment)
	default:
		return policy.Decide(policy.Leave, policy.Label{}, q.Conduit, q.State, q.Environment)
	}
}

// String names what is asked about.
func (q Question) String() string {
	if q.Operation == Derive {
		return "data derived from " + q.Conduit.Name + " flow to " + q.To.Name + " (" + q.To.Kind.String() + ")"
	}
	return string(q.Operation) + " " + q.Conduit.Name
}
