// SPDX-License-Identifier: BSD-2-Clause

// Package api is the monitor's HTTP interface: the types of requests and answers, the
// server that turns requests into calls of a [Service], and the client that the command
// line uses. It takes no decisions.
package api

import "context"

// Service is what the monitor's core offers.
type Service interface {
	Calls
	// Ready is nil once the monitor can take decisions: state recovered, bundle
	// loaded, sandbox probed. Otherwise it says what is missing.
	Ready(ctx context.Context) error
}

// Calls are what a client can ask for. Methods are called concurrently and end early
// when ctx does. An error that a user can do something about is a [*Problem], or a
// manifest.Errors for manifests; any other error is answered as an internal one.
type Calls interface {
	// Apply checks the manifests, merges them into the current bundle (or replaces
	// it, with Prune), persists the result and acknowledges it. A dry run does all
	// but persist. Nothing is half applied: tasks and sessions of a pipeline whose
	// meaning changes end before the bundle is put in force, and where its tasks do
	// not start again under the new one, the old one is in force again.
	Apply(ctx context.Context, request ApplyRequest) (ApplyResult, error)

	// Status is a snapshot; it never blocks on an analysis or a task.
	Status(ctx context.Context) (Status, error)

	// Analyze runs the offline analysis now and returns its result. When ctx ends, or
	// the run fails, the result that was in force stays. progress is called from one
	// goroutine at a time; it may be slow and must not be needed.
	Analyze(ctx context.Context, request AnalyzeRequest, progress func(Progress)) (Analysis, error)

	// Compare analyses a candidate on a shadow of the state and says which flows it
	// would open and close. It changes nothing. progress is as for Analyze.
	Compare(ctx context.Context, request CompareRequest, progress func(Progress)) (Comparison, error)

	// LatestAnalysis is the result that is in force; NotFound before the first run.
	LatestAnalysis(ctx context.Context, pipeline string) (Analysis, error)

	// Explain answers who may do what, and why, on the current state. It changes
	// nothing and leaves no trace in the audit log.
	Explain(ctx context.Context, question Question) (Explanation, error)

	// ChangeFacts removes, then adds, in one step: no decision sees half of it.
	ChangeFacts(ctx context.Context, change FactChange) (FactResult, error)

	// SetMode switches a pipeline's mode: "baseline", "dynamic", "shai" or "audit".
	SetMode(ctx context.Context, pipeline, mode string) (PipelineStatus, error)

	// StartTask starts a task of a pipeline, or does nothing when it runs already.
	StartTask(ctx context.Context, pipeline, task string) (TaskStatus, error)

	// StopTask ends a task and every process it forked; nothing when it is stopped.
	StopTask(ctx context.Context, pipeline, task string) (TaskStatus, error)

	// WaitTask returns when the task has ended: "Succeeded", "Failed" or "Stopped".
	WaitTask(ctx context.Context, pipeline, task string) (TaskStatus, error)
}
