// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"net/http"

	"shai.dev/monitor/internal/manifest"
)

// CompareRequest is a candidate: the bundle that the same ApplyRequest would put in
// force.
type CompareRequest struct {
	Sources []manifest.Source `json:"sources"`
	Prune   bool              `json:"prune,omitempty"` // remove objects that the sources do not name
}

// NotKnown is a pipeline in which a choice for one document can open others, because policies ask for the
// policies of other conduits. What is compared is one choice for all documents that have it.
type NotKnown struct {
	Pipeline string   `json:"pipeline"`
	Policies []string `json:"policies"` // that ask
}

// Comparison lists the flows that a candidate would open and close, compared with the
// bundle in force. A flow is one expected access of one task instance to one conduit. It
// is open if the enforced policies allow it whatever the session. Lists have at most 20
// entries; totals count all of them.
type Comparison struct {
	From        string `json:"from"` // hash of the bundle in force, "" when there is none
	To          string `json:"to"`   // hash of the candidate
	FlowsBefore uint64 `json:"flowsBefore"`
	FlowsAfter  uint64 `json:"flowsAfter"`

	Opened      []FlowChange `json:"opened"` // those with the most flows first
	OpenedTotal uint64       `json:"openedTotal"`
	Closed      []FlowChange `json:"closed"`
	ClosedTotal uint64       `json:"closedTotal"` // of FlowsBefore
	// WouldClose are flows that are open now and that, under the candidate, only policies
	// in mode Audit or Warn forbid. They stay open and are recorded.
	WouldClose      []FlowChange `json:"wouldClose"`
	WouldCloseTotal uint64       `json:"wouldCloseTotal"`
	// WouldOpen are flows that stay closed, and that principals could open by choosing a policy for a
	// document, which nobody can under the bundle in force. Policy is the one to choose.
	WouldOpen      []FlowChange `json:"wouldOpen"`
	WouldOpenTotal uint64       `json:"wouldOpenTotal"`
	// WouldOpenNotKnown are pipelines of which WouldOpen may miss flows.
	WouldOpenNotKnown []NotKnown `json:"wouldOpenNotKnown"`

	// Modes are the policies and pipelines with another mode, and new ones that do not deny what is forbidden.
	Modes      []ModeChange `json:"modes"`
	ModesTotal uint64       `json:"modesTotal"`

	Users          []string `json:"users"` // of instances with a flow that is opened or closed, sorted
	UsersTotal     uint64   `json:"usersTotal"`
	Documents      []string `json:"documents"` // examples of conduits of such a flow
	DocumentsTotal uint64   `json:"documentsTotal"`

	DurationMicroseconds int64 `json:"durationMicroseconds"`
}

// FlowChange is a group of flows that change in the same way: those of one task to the
// conduits of one name under one policy.
type FlowChange struct {
	Pipeline  string `json:"pipeline"`
	Task      string `json:"task"`
	Instance  string `json:"instance"`  // an example: "worker(alice, de)"
	Instances uint64 `json:"instances"` // number of instances with such a flow
	Access    string `json:"access"`    // "read" or "write"
	Conduits  string `json:"conduits"`  // name in the pipeline, such as "documents"
	Conduit   string `json:"conduit"`   // an example: "/corpus/public/17.txt"
	Policy    string `json:"policy"`    // name of the conduit's policy in the candidate
	Classes   uint64 `json:"classes"`   // classes of conduits with the same decisions
	Documents uint64 `json:"documents"` // conduits of these flows
	Flows     uint64 `json:"flows"`
}

// The kinds of objects that have a mode.
const (
	OfPolicy   = "Policy"
	OfPipeline = "Pipeline"
)

// ModeChange is a change of what happens to accesses that policies forbid.
type ModeChange struct {
	Kind   string `json:"kind"` // "Policy" or "Pipeline"
	Name   string `json:"name"`
	From   string `json:"from"`   // the mode in force: "Enforce", "shai"; empty if the object is new
	To     string `json:"to"`     // the mode in the candidate: "Audit", "baseline"
	Effect string `json:"effect"` // a clause: what happens to accesses that are forbidden
}

// comparisonLine is one line of a running comparison. The last line holds the result or a
// problem.
type comparisonLine struct {
	Progress   *Progress   `json:"progress,omitempty"`
	Comparison *Comparison `json:"comparison,omitempty"`
	Problem    *Problem    `json:"problem,omitempty"`
}

func (l comparisonLine) step() (*Progress, *Comparison, *Problem) {
	return l.Progress, l.Comparison, l.Problem
}

func (h *Handler) compare(w http.ResponseWriter, r *http.Request) error {
	var request CompareRequest
	if err := read(w, r, maxManifests, &request); err != nil {
		return err
	}
	return streamed(w, r, "compare", func(ctx context.Context, progress func(Progress)) (any, error) {
		result, err := h.Service.Compare(ctx, request, progress)
		return comparisonLine{Comparison: &result}, err
	})
}

// Compare implements [Calls].
func (c *Client) Compare(ctx context.Context, request CompareRequest, progress func(Progress)) (Comparison, error) {
	return follow[comparisonLine](ctx, c, "/v1/comparisons", request, progress)
}
