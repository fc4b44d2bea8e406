// SPDX-License-Identifier: BSD-2-Clause

// Package api is the monitor's HTTP interface: the types of requests and answers, the
// server that turns requests into calls of a [Service], and the client that the command
// line uses. It makes no decisions.
package api

import (
	"context"
	"io"

	"shai.dev/monitor/internal/reading"
)

// Service is the interface of the monitor's core.
type Service interface {
	Calls
	// Ready returns nil once the monitor can make decisions: the state is recovered, the
	// bundle loaded, the sandbox probed. Otherwise the error says what is missing.
	Ready(ctx context.Context) error
	// Read answers a user whom the one who makes the request has authenticated and authorized. It
	// records who reads what, and refuses what it cannot record (Unavailable). The answer is sealed
	// for the reader, and so is a refusal of what is asked: nobody between learns more than that
	// there is an answer. A request that asks nothing, or has no reader or key, is Invalid.
	Read(ctx context.Context, request reading.Request) (SealedAnswer, error)
}

// Calls are the requests that a client can make. Methods are called concurrently, and
// return early when ctx ends. An error that a user can do something about is a
// [*Problem], or a manifest.Errors for manifests. Any other error is sent as an internal
// error.
type Calls interface {
	// Apply checks the manifests, merges them into the current bundle (or replaces it,
	// with Prune), persists the result and acknowledges it. A dry run does everything but
	// persist. A bundle is never applied in part: tasks and sessions of a pipeline whose
	// meaning changes end before the bundle is put in force. If the tasks do not start
	// again under the new bundle, the old one is put in force again.
	Apply(ctx context.Context, request ApplyRequest) (ApplyResult, error)

	// Status returns a snapshot. It never waits for an analysis or a task.
	Status(ctx context.Context) (Status, error)

	// Analyze runs the offline analysis now and returns its result. If ctx ends, or the
	// run fails, the previous result stays in force. progress is called from one
	// goroutine at a time. It may be slow, and is not always called.
	Analyze(ctx context.Context, request AnalyzeRequest, progress func(Progress)) (Analysis, error)

	// ExportAnalysis returns the work of a run, for shards on other machines, and its size in
	// bytes. The caller closes it. It has all facts, and the names of all documents.
	ExportAnalysis(ctx context.Context, pipeline string) (work io.ReadCloser, size int64, err error)

	// ImportAnalysis puts the result of all shards in force, as Analyze does with its own. It
	// believes what the result grants. It refuses (Conflict) the result of another state: basis
	// is that of the work.
	ImportAnalysis(ctx context.Context, pipeline, basis string, result []byte) (Analysis, error)

	// Compare analyses a candidate on a copy of the state and returns the flows that it
	// would open and close. It changes nothing. progress is as for Analyze.
	Compare(ctx context.Context, request CompareRequest, progress func(Progress)) (Comparison, error)

	// LatestAnalysis returns the result in force, or NotFound before the first run.
	LatestAnalysis(ctx context.Context, pipeline string) (Analysis, error)

	// Explain returns who may do what, and why, in the current state. It changes nothing
	// and writes no audit record.
	Explain(ctx context.Context, question Question) (Explanation, error)

	// Readers returns who may access a conduit by the last analysis, or NotFound before the
	// first run. It takes tens of milliseconds with 40,000 users.
	Readers(ctx context.Context, request ReadersRequest) (Readers, error)

	// ChangeFacts removes, then adds, in one step: no decision sees only a part of it.
	ChangeFacts(ctx context.Context, change FactChange) (FactResult, error)

	// Ingest catalogues files as they are: new, changed or gone. It is not one step: what was
	// catalogued before an error, or before ctx ends, stays so. progress is as for Analyze.
	Ingest(ctx context.Context, request IngestRequest, progress func(Progress)) (IngestResult, error)

	// ItemPolicy returns the policy of one document, and what can be chosen for it, or NotFound.
	ItemPolicy(ctx context.Context, conduit string) (ItemPolicy, error)

	// ChoosePolicy gives one document the policy that a principal has chosen and signed: durably,
	// and while the pipeline permits it. The problem has the status Denied if the signature is not
	// the principal's, or if the pipeline does not permit the choice, and Conflict if the nonce is
	// not that of the document as it is.
	ChoosePolicy(ctx context.Context, request ChoiceRequest) (ChoiceResult, error)

	// SetMode switches a pipeline's mode: "baseline", "dynamic", "dynamic-lazy", "shai" or "audit".
	SetMode(ctx context.Context, pipeline, mode string) (PipelineStatus, error)

	// StartTask starts a task of a pipeline. It does nothing if the task is running.
	StartTask(ctx context.Context, pipeline, task string) (TaskStatus, error)

	// TaskLog returns what a task has printed, if the one who reads it may, and records who
	// that is.
	TaskLog(ctx context.Context, request TaskLogRequest) (TaskLog, error)

	// StopTask ends a task and every process that it forked. It does nothing if the task
	// is stopped.
	StopTask(ctx context.Context, pipeline, task string) (TaskStatus, error)

	// WaitTask returns when the task has ended: "Succeeded", "Failed" or "Stopped".
	WaitTask(ctx context.Context, pipeline, task string) (TaskStatus, error)

	// StartRun starts a task as the run of this identity and returns it, or returns the run if the
	// task has, or had, it already: a request that is repeated starts nothing twice. The problem has
	// the status Conflict if another run goes on or the task does not start, and
	// PreconditionFailed if the monitor has started anew since request.Started.
	StartRun(ctx context.Context, request TaskRunRequest) (TaskRun, error)

	// AwaitRun returns a run when it has ended, or NotFound if the monitor does not know it: it knows
	// the last ones of each task since its own start.
	AwaitRun(ctx context.Context, request TaskRunRequest) (TaskRun, error)

	// StopRun ends a run with every process that it forked, if it goes on, and returns it. A run that
	// has not begun never will: a start that was on its way starts nothing.
	StopRun(ctx context.Context, request TaskRunRequest) (TaskRun, error)
}
