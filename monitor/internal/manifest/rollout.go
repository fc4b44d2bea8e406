// SPDX-License-Identifier: BSD-2-Clause

package manifest

// What this file describes is the operator's business: the monitor checks it, and
// leaves it out of the bundle. A changed pause must not be a changed bundle, which
// every member would analyse again.

// Rollout says how a change of definitions reaches a pool.
type Rollout struct {
	// Paused holds a rollout where it is.
	Paused bool           `json:"paused,omitempty"`
	Steps  []RolloutStep  `json:"steps,omitempty" rule:"max=16"`
	Limits *RolloutLimits `json:"limits,omitempty"`
}

// PolicyRollout is how a change of one policy reaches a pool.
type PolicyRollout struct {
	Steps []RolloutStep `json:"steps,omitempty" rule:"max=16"`
}

// RolloutStep updates members, then waits before it judges.
type RolloutStep struct {
	// Members updated when the step is done: a number, or a share such as "25%".
	Members      Share `json:"members" rule:"required"`
	PauseSeconds int   `json:"pauseSeconds,omitempty" rule:"default=60,min=0,max=86400"`
}

// RolloutLimits are what a rollout must keep to; beyond them it is rolled back.
type RolloutLimits struct {
	// DenialsPercent more of all decisions denied than by members without the change.
	DenialsPercent int `json:"denialsPercent,omitempty" rule:"default=5,min=0,max=100"`
	// OverheadPercent more time a decision than on members without the change.
	OverheadPercent int `json:"overheadPercent,omitempty" rule:"default=50,min=0,max=1000"`
	// ClosedPercent of the flows that were open and no longer are.
	ClosedPercent int `json:"closedPercent,omitempty" rule:"default=50,min=0,max=100"`
	// MinimumSessions that a verdict needs.
	MinimumSessions int `json:"minimumSessions,omitempty" rule:"default=20,min=0,max=1000000"`
}

// Share is a number of members, or a percentage of them: "2", "25%".
type Share string

// maxMembers is the size of the largest pool.
const maxMembers = 256

// enforced is the part of a policy that a monitor acts on.
func (s PolicySpec) enforced() PolicySpec {
	s.Rollout, s.RevisionHistoryLimit = nil, 0
	return s
}

// enforced is the part of a pipeline that a monitor acts on.
func (s PipelineSpec) enforced() PipelineSpec {
	s.Pool, s.Rollout = "", nil
	return s
}
