// SPDX-License-Identifier: BSD-2-Clause

package manifest

// The operator acts on the types in this file. The monitor only checks them, and leaves
// them out of the bundle: otherwise a changed pause would be a changed bundle, which
// every member would analyse again.

// Rollout describes how a change of definitions reaches a pool.
type Rollout struct {
	// Paused stops a rollout at its current step.
	Paused bool           `json:"paused,omitempty"`
	Steps  []RolloutStep  `json:"steps,omitempty" rule:"max=16"`
	Limits *RolloutLimits `json:"limits,omitempty"`
}

// PolicyRollout describes how a change of one policy reaches a pool.
type PolicyRollout struct {
	Steps []RolloutStep `json:"steps,omitempty" rule:"max=16"`
}

// RolloutStep updates members, then waits before it judges them.
type RolloutStep struct {
	// Members is how many are updated after the step: a number, or a share such as "25%".
	Members      Share `json:"members" rule:"required"`
	PauseSeconds int   `json:"pauseSeconds,omitempty" rule:"default=60,min=0,max=86400"`
}

// RolloutLimits are the limits beyond which a rollout is rolled back.
type RolloutLimits struct {
	// DenialsPercent is how much larger the share of denied decisions may be than on
	// members without the change.
	DenialsPercent int `json:"denialsPercent,omitempty" rule:"default=5,min=0,max=100"`
	// OverheadPercent is how much longer a decision may take than on members without the
	// change.
	OverheadPercent int `json:"overheadPercent,omitempty" rule:"default=50,min=0,max=1000"`
	// ClosedPercent is the share of open flows that the change may close.
	ClosedPercent int `json:"closedPercent,omitempty" rule:"default=50,min=0,max=100"`
	// MinimumSessions is the number of sessions that a verdict needs.
	MinimumSessions int `json:"minimumSessions,omitempty" rule:"default=20,min=0,max=1000000"`
}

// TaskRuns describes how tasks that run once are run, and which of their TaskRuns are kept.
type TaskRuns struct {
	Retries *Retries `json:"retries,omitempty"`
	// TimeoutSeconds limits a run with all its attempts; 0: no limit.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty" rule:"min=1,max=2592000"`
	// The history limits are for each task on each member.
	SuccessfulRunsHistoryLimit int `json:"successfulRunsHistoryLimit,omitempty" rule:"default=3,min=0,max=100"`
	FailedRunsHistoryLimit     int `json:"failedRunsHistoryLimit,omitempty" rule:"default=1,min=0,max=100"`
	// TTLSecondsAfterFinished is how long a TaskRun is kept after its end at most.
	TTLSecondsAfterFinished int `json:"ttlSecondsAfterFinished,omitempty" rule:"min=0,max=31536000"`
}

// Retries describes how a failed run is repeated.
type Retries struct {
	Limit int `json:"limit,omitempty" rule:"default=0,min=0,max=100"`
	// BackoffSeconds is the time before the first repetition. It doubles with each.
	BackoffSeconds int `json:"backoffSeconds,omitempty" rule:"default=10,min=1,max=3600"`
}

// Share is a number of members, or a percentage of them: "2", "25%".
type Share string

// maxMembers is the size of the largest pool.
const maxMembers = 256

// enforced returns the part of a policy that a monitor acts on.
func (s PolicySpec) enforced() PolicySpec {
	s.Rollout, s.RevisionHistoryLimit = nil, 0
	return s
}

// enforced returns the part of a pipeline that a monitor acts on.
func (s PipelineSpec) enforced() PipelineSpec {
	s.Pool, s.Rollout, s.TaskRuns = "", nil, nil
	return s
}
