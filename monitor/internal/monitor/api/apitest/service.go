// SPDX-License-Identifier: BSD-2-Clause

// Package apitest has a monitor that answers from fields, for tests of what talks
// to one.
package apitest

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/reading"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// Service is a fake monitor core. It checks manifests; all other answers are made up. If
// Err is set, every method returns it.
type Service struct {
	Err error

	mutex   sync.Mutex
	bundle  *manifest.Bundle
	version uint64
	calls   []string
}

var _ api.Service = (*Service)(nil)

// Began is the time of everything in the fake's answers.
var Began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Calls lists the calls so far, one line each.
func (s *Service) Calls() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]string{}, s.calls...)
}

func (s *Service) call(format string, arguments ...any) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, arguments...))
	return s.Err
}

// Ready implements [api.Service].
func (s *Service) Ready(context.Context) error { return s.call("ready") }

// Apply implements [api.Service].
func (s *Service) Apply(_ context.Context, request api.ApplyRequest) (api.ApplyResult, error) {
	if err := s.call("apply %d sources, dry run %t, prune %t", len(request.Sources), request.DryRun,
		request.Prune); err != nil {
		return api.ApplyResult{}, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	set := manifest.Parse(request.Sources...)
	if !request.Prune {
		set = set.Over(s.bundle)
	}
	bundle, err := set.Bundle()
	if err != nil {
		return api.ApplyResult{}, err
	}
	result := api.ApplyResult{Version: s.version + 1, Hash: bundle.Hash(), DryRun: request.DryRun}
	for _, change := range bundle.Changes(s.bundle) {
		result.Objects = append(result.Objects,
			api.ObjectChange{Kind: change.Kind, Name: change.Name, Change: change.What})
	}
	if !request.DryRun {
		s.bundle, s.version = bundle, s.version+1
	}
	return result, nil
}

// Status implements [api.Service].
func (s *Service) Status(context.Context) (api.Status, error) {
	since := Began
	pipeline := Pipeline("syse", "shai")
	pipeline.Tasks = []api.TaskStatus{
		{Name: "indexer", Run: "Once", State: "Succeeded", Enforcement: "full"},
		{Name: "worker", Run: "Always", State: "Running", Enforcement: "full", PID: 4711, Since: &since,
			Restarts: 1, LastEnd: "exited with status 3"},
	}
	pipeline.Sessions = []api.SessionStatus{{Instance: "worker(alice, de)", Task: "worker", Principal: "alice",
		Region: "de",
		Peer:   "127.0.1.1:40000", Slot: 3, Mode: "shai", Since: Began}}
	pipeline.SessionTotal = 1
	return api.Status{
		Version: "test", Started: Began, Ready: true,
		Machine:   Machine("full"),
		Bundle:    &api.BundleStatus{Version: 1, Hash: "00ff", Applied: Began, Objects: 17, Label: "release-3f2a"},
		Pipelines: []api.PipelineStatus{pipeline},
		Counters:  map[string]uint64{"shai_sessions_total": 12, "shai_denials_total": 3},
		FactSources: []api.FactSourceStatus{
			{Name: "blacklist", Tuples: 1200, LastSuccess: &since},
			{Name: "friends", Tuples: 7, Message: "connect to the store at /run/redis.sock: it is not running"},
		},
	}, s.call("status")
}

// Pipeline returns a pipeline without tasks.
func Pipeline(name, mode string) api.PipelineStatus {
	return api.PipelineStatus{Name: name, Mode: mode, Revocation: "lazy", Conduits: 20000, Classes: 4003}
}

// Machine returns a report of a machine whose enforcement is "full" or "none".
func Machine(enforcement string) sandbox.Report {
	report := sandbox.Report{System: "linux 6.18.1 x86_64", Backend: "landlock+seccomp", Enforcement: enforcement}
	landlock := sandbox.Feature{Name: "Landlock", Found: "ABI 7", Needed: "ABI 4 (Linux 6.7)", Present: true,
		Effect: "confines file access"}
	if enforcement == "none" {
		landlock.Found, landlock.Present = "missing", false
	}
	report.Features = []sandbox.Feature{landlock}
	return report
}

// Analyze implements [api.Service].
func (s *Service) Analyze(_ context.Context, request api.AnalyzeRequest, progress func(api.Progress)) (api.Analysis,
	error) {
	if err := s.call("analyze %s, full %t, scope %s", request.Pipeline, request.Full, request.Scope); err != nil {
		return api.Analysis{}, err
	}
	for done := uint64(0); done <= 2000; done += 1000 {
		progress(api.Progress{Phase: "instances", Done: done, Total: 2000})
	}
	return s.analysis(), nil
}

// ExportAnalysis implements [api.Service].
func (s *Service) ExportAnalysis(_ context.Context, pipeline string) (io.ReadCloser, int64, error) {
	if err := s.call("export analysis %s", pipeline); err != nil {
		return nil, 0, err
	}
	work := "the work of " + pipeline
	return io.NopCloser(strings.NewReader(work)), int64(len(work)), nil
}

// ImportAnalysis implements [api.Service].
func (s *Service) ImportAnalysis(_ context.Context, pipeline, basis string, result []byte) (api.Analysis, error) {
	if err := s.call("import analysis %s on %s: %q", pipeline, basis, result); err != nil {
		return api.Analysis{}, err
	}
	return s.analysis(), nil
}

// Compare implements [api.Service].
func (s *Service) Compare(_ context.Context, request api.CompareRequest, progress func(api.Progress)) (api.Comparison,
	error) {
	if err := s.call("compare %d sources, prune %t", len(request.Sources), request.Prune); err != nil {
		return api.Comparison{}, err
	}
	progress(api.Progress{Phase: "instances", Done: 2000, Total: 2000})
	closed := api.FlowChange{Pipeline: "syse", Task: "worker", Instance: "worker(bob, de)", Instances: 3,
		Access: "read", Conduits: "documents",
		Conduit: "/corpus/friends/alice/3.txt", Policy: "friends", Classes: 1, Documents: 4, Flows: 12}
	byChoice := closed
	byChoice.Instances, byChoice.Policy, byChoice.Documents, byChoice.Flows = 2, "public", 4, 8
	return api.Comparison{From: "00ff", To: "11ee", FlowsBefore: 1200, FlowsAfter: 1188, Opened: []api.FlowChange{},
		Closed:      []api.FlowChange{closed},
		ClosedTotal: 12, WouldClose: []api.FlowChange{}, WouldOpen: []api.FlowChange{byChoice}, WouldOpenTotal: 8,
		WouldOpenNotKnown: []api.NotKnown{{Pipeline: "syse", Policies: []string{"ids", "joint"}}},
		Modes: []api.ModeChange{{Kind: api.OfPipeline, Name: "syse", From: "shai", To: "audit",
			Effect: "accesses are not denied any more: what policies forbid happens, and is recorded"}}, ModesTotal: 1,
		Users: []string{"bob", "carol", "dave"}, UsersTotal: 3,
		Documents: []string{closed.Conduit}, DocumentsTotal: 4, DurationMicroseconds: 181_000}, nil
}

// LatestAnalysis implements [api.Service].
func (s *Service) LatestAnalysis(_ context.Context, pipeline string) (api.Analysis, error) {
	return s.analysis(), s.call("latest analysis %s", pipeline)
}

func (s *Service) analysis() api.Analysis {
	private := api.Cause{Policy: "private", Count: 345_678, Instance: "worker(carol, us)",
		Conduit:    "/corpus/private/alice/3.txt",
		Reason:     "only alice may read it (private, owner alice); carol is not alice",
		Suggestion: `policy private: add ` + "`read :- sKeyIs(\"carol\").`"}
	address := api.Cause{Policy: "log", Count: 2, Instance: "indexer", Conduit: "/index/log",
		Reason: "the session's address is known only then"}
	return api.Analysis{
		Scope: api.ScopeAll, Pipeline: "syse", Bundle: 1, Started: Began, DurationMicroseconds: 181_000,
		Conduits: 20000, Classes: 4003, Instances: 2003,
		AccessTally: api.AccessTally{Expected: 12_365_682, Granted: 12_020_001, Refused: 345_679, Undecided: 2},
		Accesses: []api.Accesses{
			{Task: "indexer", Access: "read", Conduits: "documents", Instances: 1,
				AccessTally: api.AccessTally{Expected: 20000, Granted: 20000}},
			{Task: "indexer", Access: "write", Conduits: "index", Instances: 1,
				AccessTally: api.AccessTally{Expected: 4, Granted: 1, Refused: 1, Undecided: 2},
				RefusedBecause: []api.Cause{{Policy: "tried", Count: 1, Instance: "indexer", Conduit: "/index/2",
					Reason: "nobody may write it (tried)", Mode: "Audit"}},
				UndecidedBecause: []api.Cause{address}},
			{Task: "worker", Access: "read", Conduits: "documents", Instances: 2000,
				AccessTally:    api.AccessTally{Expected: 12_345_678, Granted: 12_000_000, Refused: 345_678},
				RefusedBecause: []api.Cause{private}},
		},
		Warnings: []api.Warning{{Task: "worker", Access: "read", Conduits: "documents", Instance: "worker(carol, us)",
			Instances:  3,
			Message:    "worker(carol, us) may read nothing of documents: " + private.Reason,
			Suggestion: private.Suggestion}},
		Mermaid: "flowchart LR\n  documents --> indexer\n",
	}
}

// Explain implements [api.Service].
func (s *Service) Explain(_ context.Context, q api.Question) (api.Explanation, error) {
	return api.Explanation{
		Question: q, Allowed: true, Instance: "worker(" + q.Principal + ", de)", Class: 17,
		Policy: `friends(owner: "alice")`, Taint: "read of private(user: \"" + q.Principal + "\")", TaintOf: "declared",
		Sentence: "worker(" + q.Principal + ", de) may read it (friends(owner: \"alice\"))",
		Derivation: api.Derivation{Statement: "worker(bob, de) may read " + q.Conduit, Holds: true,
			Because: []api.Derivation{
				{Statement: `clause 1: sKeyIs("alice")`, Holds: false},
				{Statement: "clause 2", Holds: true, Because: []api.Derivation{
					{Statement: `"friends/alice" says friend("bob")`, Holds: true},
				}},
			}},
		Conditions: []string{`"friends/alice" says friend("bob")`},
	}, s.call("explain %+v", q)
}

// Readers implements [api.Service].
func (s *Service) Readers(_ context.Context, request api.ReadersRequest) (api.Readers, error) {
	return api.Readers{
		Pipeline: "syse", Conduit: request.Conduit, Access: "read", Policy: `friends(owner: "alice")`, Analyzed: Began,
		Current: true, Total: 40002, Readers: []api.Reader{
			{Task: "worker", Principal: "alice", Regions: []string{"de", "us"}},
			{Task: "worker", Principal: "bob", Regions: []string{"de"}},
		},
	}, s.call("readers %+v", request)
}

// Ingest implements [api.Service]. A path with "refused" in it is refused.
func (s *Service) Ingest(_ context.Context, request api.IngestRequest, progress func(api.Progress)) (api.IngestResult,
	error) {
	if err := s.call("ingest %q, remove %t", request.Paths, request.Remove); err != nil {
		return api.IngestResult{}, err
	}
	progress(api.Progress{Phase: "documents", Done: 1})
	result := api.IngestResult{DurationMicroseconds: 7300}
	for _, path := range request.Paths {
		switch {
		case strings.Contains(path, "refused"):
			result.RefusedTotal++
			result.Refused = append(result.Refused, api.RefusedDocument{Path: path, Reason: "it is not a regular file"})
		case request.Remove:
			result.Removed++
		default:
			result.Added++
		}
	}
	return result, nil
}

// ItemPolicy implements [api.Service].
func (s *Service) ItemPolicy(_ context.Context, conduit string) (api.ItemPolicy, error) {
	return api.ItemPolicy{Pipeline: "syse", Conduit: conduit, Number: 17, Policy: `friends(owner: "alice")`,
			Nonce: "2b2e", Choices: []api.PolicyChoice{{Principal: "alice", Policy: `private(owner: "alice")`},
				{Principal: "alice", Policy: `friends(owner: "alice")`}, {Principal: "carol", Policy: "hidden()"}}},
		s.call("item policy %s", conduit)
}

// ChoosePolicy implements [api.Service].
func (s *Service) ChoosePolicy(ctx context.Context, request api.ChoiceRequest) (api.ChoiceResult, error) {
	item, err := s.ItemPolicy(ctx, request.Conduit)
	if err != nil {
		return api.ChoiceResult{}, err
	}
	before := item.Policy
	item.Policy, item.ChosenBy, item.Nonce = request.Policy, request.Principal, "2b2f"
	return api.ChoiceResult{ItemPolicy: item, Before: before, SessionsReset: 1},
		s.call("choose %s for %s as %s with %s: %s", request.Policy, request.Conduit, request.Principal, request.Nonce,
			request.Signature)
}

// ChangeFacts implements [api.Service].
func (s *Service) ChangeFacts(_ context.Context, change api.FactChange) (api.FactResult, error) {
	return api.FactResult{Removed: len(change.Remove), Added: len(change.Add), Instances: 1, DurationMicroseconds: 310},
		s.call("facts -%v +%v", change.Remove, change.Add)
}

// SetMode implements [api.Service].
func (s *Service) SetMode(_ context.Context, pipeline, mode string) (api.PipelineStatus, error) {
	return Pipeline(pipeline, mode), s.call("mode %s %s", pipeline, mode)
}

// StartTask implements [api.Service].
func (s *Service) StartTask(_ context.Context, pipeline, task string) (api.TaskStatus, error) {
	return api.TaskStatus{Name: task, Run: "Always", State: "Running", Enforcement: "full", PID: 4711},
		s.call("start %s/%s", pipeline, task)
}

// Read implements [api.Service].
func (s *Service) Read(_ context.Context, request reading.Request) (api.SealedAnswer, error) {
	return api.SealedAnswer{Sealed: []byte("sealed")}, s.call("read for %s", request.Reader)
}

// TaskLog implements [api.Service].
func (s *Service) TaskLog(_ context.Context, request api.TaskLogRequest) (api.TaskLog, error) {
	return api.TaskLog{Label: `read of private(owner: "alice")`, Text: "2 words\nof \x1b[31malice\n", Shortened: true},
		s.call("log %+v", request)
}

// StopTask implements [api.Service].
func (s *Service) StopTask(_ context.Context, pipeline, task string) (api.TaskStatus, error) {
	return api.TaskStatus{Name: task, Run: "Always", State: "Stopped"}, s.call("stop %s/%s", pipeline, task)
}

// WaitTask implements [api.Service]. A task with the name "broken" has failed, and "search" was started again.
func (s *Service) WaitTask(_ context.Context, pipeline, task string) (api.TaskStatus, error) {
	status := api.TaskStatus{Name: task, Run: "Once", State: "Succeeded"}
	switch task {
	case "broken":
		status.State, status.Message = "Failed", "exit status 3"
	case "search":
		status.Run, status.State, status.PID, status.Restarts = "Always", "Running", 4712, 2
		status.LastEnd = "killed by SIGKILL"
	}
	return status, s.call("wait %s/%s", pipeline, task)
}

// run returns a run that has ended in this state.
func (s *Service) run(verb string, request api.TaskRunRequest, state string) (api.TaskRun, error) {
	ended, status := Began.Add(time.Minute), 3
	run := api.TaskRun{ID: request.ID, State: state, Started: Began, Denials: 2,
		Refusals: []api.TaskRefusal{{Operation: "read", Conduits: "documents", Policy: "private", Count: 2}}}
	if state == "Failed" {
		run.Ended, run.ExitStatus, run.Message = &ended, &status, "exited with status 3"
	}
	return run, s.call("%s run %s of %s/%s", verb, request.ID, request.Pipeline, request.Task)
}

// StartRun implements [api.Service].
func (s *Service) StartRun(_ context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	return s.run("start", request, "Running")
}

// AwaitRun implements [api.Service].
func (s *Service) AwaitRun(_ context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	return s.run("await", request, "Failed")
}

// StopRun implements [api.Service].
func (s *Service) StopRun(_ context.Context, request api.TaskRunRequest) (api.TaskRun, error) {
	return s.run("stop", request, "Stopped")
}

// Log returns an audit log with a few records in it.
func Log(t testing.TB) *audit.Log {
	t.Helper()
	log, err := audit.Open(audit.Options{Directory: filepath.Join(t.TempDir(), "audit")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	for _, event := range []audit.Event{
		{Kind: audit.Bundle, Operation: "apply", Allowed: true, Reason: "version 1"},
		{Kind: audit.Binding, Pipeline: "syse", Task: "worker", Instance: "worker(bob, de)", Principal: "bob",
			Operation: "authenticate", Allowed: true, LatencyMicroseconds: 90},
		{Kind: audit.Denial, Pipeline: "syse", Task: "worker", Instance: "worker(bob, de)", Principal: "bob",
			Operation: "open",
			Conduit:   "/corpus/private/alice/3.txt", Policy: `private(owner: "alice")`,
			Reason: `no read clause holds: sKeyIs("alice")`, LatencyMicroseconds: 35},
	} {
		if err := log.Append(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return log
}

// Serve serves the API on a socket in a temporary directory until the test ends. It
// returns the socket's path.
func Serve(t testing.TB, handler *api.Handler, endpoints api.Endpoints) (string, []net.Listener) {
	t.Helper()
	if endpoints.Socket == "" {
		endpoints.Socket = filepath.Join(t.TempDir(), "shai.sock")
	}
	listeners, err := endpoints.Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, listeners, handler.Mux()) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return endpoints.Socket, listeners
}

// Fact returns "conduit says relation(values…)".
func Fact(conduit, says string, values ...policy.Value) api.Fact {
	return api.Fact{Conduit: conduit, Says: says, Tuple: policy.NewTuple(values...)}
}
