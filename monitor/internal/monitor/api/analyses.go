// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"time"

	"shai.dev/monitor/internal/analysis"
)

// AnalyzeRequest selects what to analyse.
type AnalyzeRequest struct {
	Pipeline string `json:"pipeline,omitempty"` // may be empty when there is only one
	Full     bool   `json:"full,omitempty"`     // do not reuse earlier results
	// Scope is "all" (also when empty), or "active": only instances with an open
	// session, and tasks without parameters.
	Scope string `json:"scope,omitempty"`
}

// The scopes of an analysis.
const (
	ScopeAll    = "all"
	ScopeActive = "active"
)

func (r AnalyzeRequest) check() error {
	switch r.Scope {
	case "", ScopeAll, ScopeActive:
		return nil
	}
	return Invalid("analyze", "use all or active", "scope %q is unknown", r.Scope)
}

// Progress is one step of a running analysis.
type Progress struct {
	Phase string `json:"phase"` // "conduits", "classes", "instances", "views"
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"` // 0 when unknown
}

// Analysis is the result of one run.
type Analysis struct {
	Scope                string     `json:"scope"` // "all" or "active"
	Pipeline             string     `json:"pipeline"`
	Bundle               uint64     `json:"bundle"` // version analysed
	Started              time.Time  `json:"started"`
	DurationMicroseconds int64      `json:"durationMicroseconds"`
	Conduits             uint64     `json:"conduits"`
	Classes              uint64     `json:"classes"`
	Instances            uint64     `json:"instances"`
	AccessTally                     // of all accesses
	Accesses             []Accesses `json:"accesses"` // one for each task and set of conduits that it lists
	Warnings             []Warning  `json:"warnings"`
	Mermaid              string     `json:"mermaid"` // the flows as a diagram
}

// AccessTally counts accesses. An access is one instance's access to one conduit. Every
// expected access is granted, refused or undecided.
type AccessTally struct {
	Expected  uint64 `json:"expected"`
	Granted   uint64 `json:"granted"`   // allowed without asking the monitor
	Refused   uint64 `json:"refused"`   // forbidden by a policy: the monitor refuses them when they happen
	Undecided uint64 `json:"undecided"` // the decision needs more information: the monitor decides when they happen
}

// Accesses are the expected accesses of one task, over all its instances, to one set of
// conduits. They leave out instances that cannot start.
type Accesses struct {
	Task      string `json:"task"`
	Access    string `json:"access"`   // "read" or "write"
	Conduits  string `json:"conduits"` // name in the pipeline, such as "documents"
	Instances uint64 `json:"instances"`
	AccessTally
	RefusedBecause   []Cause `json:"refusedBecause,omitempty"`   // the three policies that refuse most
	UndecidedBecause []Cause `json:"undecidedBecause,omitempty"` // the three policies that leave most undecided
}

// Cause is a policy because of which accesses are not granted, with one of them as an
// example.
type Cause struct {
	Policy   string `json:"policy"` // name; "" for conduits without a policy
	Count    uint64 `json:"count"`  // accesses
	Instance string `json:"instance"`
	Conduit  string `json:"conduit"`
	Reason   string `json:"reason"` // a sentence; "it" is the conduit
	// Suggestion is the smallest of the tried changes with which the policy would allow
	// the example. The user decides whether it should.
	Suggestion string `json:"suggestion,omitempty"`
	// Mode is "Audit" or "Warn" if only policies in these modes forbid the example. It is
	// then allowed, after a decision each time, and recorded. Empty means that it is
	// denied.
	Mode string `json:"mode,omitempty"`
}

// Warning says that instances of a task cannot do what the task was written for: they
// cannot start, or all accesses to a set of conduits that the task lists are refused.
type Warning struct {
	Task       string `json:"task"`
	Access     string `json:"access,omitempty"`   // empty for instances that cannot start
	Conduits   string `json:"conduits,omitempty"` // empty for instances that cannot start
	Instance   string `json:"instance"`           // one of them
	Instances  uint64 `json:"instances"`          // how many
	Message    string `json:"message"`            // a sentence
	Suggestion string `json:"suggestion,omitempty"`
}

// AnalysisOf returns what a pipeline's analysis of a bundle has found.
func AnalysisOf(pipeline string, found *analysis.Report, bundle uint64, started time.Time,
	took time.Duration) Analysis {
	out := Analysis{
		Scope: ScopeAll, Pipeline: pipeline, Bundle: bundle, Started: started,
		DurationMicroseconds: took.Microseconds(),
		Conduits:             found.Conduits, Classes: found.Classes, Instances: found.Instances,
		AccessTally: AccessTally(found.Total),
		Accesses:    []Accesses{}, Warnings: []Warning{}, Mermaid: found.Mermaid(),
	}
	for _, a := range found.Accesses {
		out.Accesses = append(out.Accesses, Accesses{
			Task: a.Task, Access: a.Access, Conduits: a.Conduits, Instances: a.Instances,
			AccessTally:    AccessTally(a.Tally),
			RefusedBecause: causes(a.RefusedBecause), UndecidedBecause: causes(a.UndecidedBecause),
		})
	}
	for _, w := range found.Warnings {
		out.Warnings = append(out.Warnings, Warning(w))
	}
	return out
}

func causes(list []analysis.Cause) []Cause {
	var out []Cause
	for _, c := range list {
		out = append(out, Cause{
			Policy: c.Policy, Count: c.Count, Instance: c.Instance, Conduit: c.Conduit,
			Reason: c.Reason, Suggestion: c.Suggestion, Mode: string(c.Mode),
		})
	}
	return out
}
