// SPDX-License-Identifier: BSD-2-Clause

// Package decision decides on flows: whether the policies of a state allow a task instance
// an access. Every decision of the monitor about a flow that was not settled ahead of time
// is made here, and so are explanations.
package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Subject is what an access is decided for: a task instance with its taint.
type Subject struct {
	Task     string
	Instance string // "indexer", "worker(alice, de)"
	Taint    policy.Label
	Session  *policy.Session // the user, or "task/<name>" for a task without one
}

// Flow is an access to decide on.
type Flow struct {
	Who     Subject
	What    policy.Operation
	Conduit policy.Conduit
	Update  *policy.Update // what is written, if the monitor has read it
	Explain bool           // with a derivation, which costs several times the decision
}

// Decision is the answer. If only policies that are not enforced forbid the flow, it is
// allowed, and the decision holds their reason.
type Decision struct {
	policy.Decision
	// Onward says that a read was decided on by where the data could flow from then on, and not
	// by the policy of what is read.
	Onward    bool
	WouldDeny string    // their reason; "" if nothing would be denied
	Relaxed   []Relaxed // the policies that would deny it, each once whatever its arguments
}

// ByEveryPolicy reports whether no policy forbids the flow, not even one in mode Audit or
// Warn.
func (d Decision) ByEveryPolicy() bool { return d.Allowed && d.WouldDeny == "" }

// Relaxed is a policy in mode Audit or Warn.
type Relaxed struct {
	Policy *policy.Policy
	Mode   catalog.Mode
}

// Decide evaluates the policies on a state. It does nothing else: no I/O, no cache.
func Decide(f Flow, state *catalog.State, now time.Time) Decision {
	environment := policy.Environment{Session: f.Who.Session, Now: now, Update: f.Update, Explain: f.Explain}
	all := policy.Decide(f.What, f.Who.Taint, f.Conduit, state, environment)
	waive := state.Waive()
	if all.Allowed || waive == nil {
		return Decision{Decision: all}
	}
	environment.Waive = waive
	enforced := policy.Decide(f.What, f.Who.Taint, f.Conduit, state, environment)
	if !enforced.Allowed {
		return Decision{Decision: enforced}
	}
	out := Decision{Decision: enforced, WouldDeny: all.Reason}
	for _, p := range all.Unmet {
		if waive(p) {
			out.relax(Relaxed{p, state.ModeOf(p)})
		}
	}
	return out
}

// relax adds policies that would deny the flow. A taint may hold one of them for each user: the
// mode is that of the policy, so they count as one.
func (d *Decision) relax(list ...Relaxed) {
	for _, one := range list {
		known := func(r Relaxed) bool { return r.Policy.Template().File() == one.Policy.Template().File() }
		if !slices.ContainsFunc(d.Relaxed, known) {
			d.Relaxed = append(d.Relaxed, one)
		}
	}
}

// Would returns the audit log's text about an access that is allowed because the policies
// that forbid it are in mode Audit or Warn.
func (d Decision) Would() string {
	var names []string
	for _, r := range d.Relaxed {
		names = append(names, fmt.Sprintf("policy %s in mode %s", r.Policy.Template().File(), r.Mode))
	}
	return "would be denied: " + d.WouldDeny + " (" + strings.Join(names, ", ") + ")"
}
