// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// No session is bound while the sets of an analysis are put in force: it could get one that the
// analysis replaces by a lesser one, after the sessions that have it were ended.
func TestSetsOfAnAnalysisWaitForBindings(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	supervisor := superviseBare(t, m).Supervisor()
	supervisor.Since()
	m.services.Binding.RLock() // as by a session that is being bound
	ended := make(chan error)
	go func() {
		_, err := m.Analyze(t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
		ended <- err
	}()
	waiting.Until(t, "the analysis waits", func() bool {
		free := m.services.Binding.TryRLock()
		if free {
			m.services.Binding.RUnlock()
		}
		return !free
	})
	if told := supervisor.Since(); len(told) > 0 {
		t.Errorf("meanwhile these are in force: %v", told)
	}
	m.services.Binding.RUnlock()
	if err := <-ended; err != nil || len(supervisor.Since()) == 0 {
		t.Errorf("no sets are put in force: %v", err)
	}
}

// A run that fails, or that is cancelled, leaves the previous result in force, and status
// says how the run ended.
func TestAFailedRunLeavesTheLastResult(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, m *Monitor) error
		want string
	}{
		{"it cannot be stored", func(t *testing.T, m *Monitor) error {
			if err := os.Remove(m.analysisPath("bare")); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(m.analysisPath("bare"), "in the way"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := m.Analyze(t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
			return err
		}, "store analysis"},
		{"it is given up at once", func(t *testing.T, m *Monitor) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := m.Analyze(ctx, api.AnalyzeRequest{}, func(api.Progress) {})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("given up with %v", err)
			}
			return err
		}, "context canceled"},
		{"it is given up while capability sets are made", func(t *testing.T, m *Monitor) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := m.Analyze(ctx, api.AnalyzeRequest{}, func(p api.Progress) {
				if p.Phase == "capability sets" {
					cancel()
				}
			})
			return err
		}, "context canceled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			analyzeBare(t, m)
			known, supervisor := m.analyses["bare"], superviseBare(t, m).Supervisor()
			supervisor.Since()
			good, err := m.LatestAnalysis(t.Context(), "bare")
			if err != nil {
				t.Fatal(err)
			}
			if err := test.run(t, m); err == nil {
				t.Fatal("the run succeeded")
			}
			if told := supervisor.Since(); m.analyses["bare"] != known || len(told) > 0 {
				t.Errorf("the result in force is another, or its capability sets are: %q", told)
			}
			if latest, err := m.LatestAnalysis(t.Context(), "bare"); err != nil || !latest.Started.Equal(good.Started) {
				t.Errorf("the latest analysis is that of %v, %v", latest.Started, err)
			}
			status, err := m.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			run := status.Pipelines[0].LastAnalysis
			if run == nil || run.Succeeded || !strings.Contains(run.Message, test.want) ||
				run.Hash != m.state().BundleHash() {
				t.Errorf("status says %+v, want a failure with %q", run, test.want)
			}
			if test.want == "store analysis" {
				return
			}
			analyzeBare(t, m)
			status, err = m.Status(t.Context())
			if run := status.Pipelines[0].LastAnalysis; err != nil || !run.Succeeded || run.Message != "" ||
				run.Scope != api.ScopeAll {
				t.Errorf("after a good run status says %+v, %v", run, err)
			}
		})
	}
}

// What is wrong with an analysis stays wrong until one succeeds. A cancelled run is no verdict.
func TestAFailingAnalysisIsSeenUntilOneSucceeds(t *testing.T) {
	m, _ := bareMonitor(t)
	given := func() context.Context { return t.Context() }
	givenUp := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}
	obstacle := filepath.Join(m.analysisPath("bare"), "in the way") // a result cannot be stored there
	for _, step := range []struct {
		name     string
		ctx      func() context.Context
		obstacle bool
		want     float64
	}{
		{"cancelled before any", givenUp, false, 0},
		{"failed", given, true, 1},
		{"cancelled", givenUp, true, 1},
		{"succeeded", given, false, 0},
		{"cancelled again", givenUp, false, 0},
	} {
		if err := os.RemoveAll(m.analysisPath("bare")); err != nil {
			t.Fatal(err)
		}
		if step.obstacle {
			if err := os.MkdirAll(obstacle, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_, err := m.Analyze(step.ctx(), api.AnalyzeRequest{}, func(api.Progress) {})
		if (err == nil) != (step.name == "succeeded") {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := countOf(t, m, "shai_analysis_failing", "bare"); got != step.want {
			t.Errorf("%s: failing is %v, want %v", step.name, got, step.want)
		}
	}
}

// What waits while manifests change is done to the pipeline that is there afterwards: the analysis of a closed one
// came into force for it, and a mode was set that nobody had any more.
func TestWhatWaitsForAChangeIsDoneToThePipelineAfterwards(t *testing.T) {
	for name, one := range map[string]struct {
		do      func(context.Context, *Monitor) error
		nothing func(*Monitor, *pipeline.Pipeline) bool
	}{
		"Analyze": {
			func(ctx context.Context, m *Monitor) error {
				_, err := m.Analyze(ctx, api.AnalyzeRequest{Pipeline: "bare"}, func(api.Progress) {})
				return err
			},
			func(m *Monitor, _ *pipeline.Pipeline) bool { return m.runs["bare"] == nil && m.analyses["bare"] == nil },
		},
		"SetMode": {
			func(ctx context.Context, m *Monitor) error {
				_, err := m.SetMode(ctx, "bare", wire.ModeDynamic.String())
				return err
			},
			func(_ *Monitor, former *pipeline.Pipeline) bool { return former.Mode() == wire.ModeShai },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, former := bareMonitor(t)
			m.changing.Lock()
			done := make(chan error, 1)
			go func() { done <- one.do(t.Context(), m) }()
			stacks := make([]byte, 1<<20)
			waiting.Until(t, "it waits", func() bool {
				all := string(stacks[:runtime.Stack(stacks, true)])
				_, locks, _ := strings.Cut(all, "sync.(*Mutex).Lock(")
				return len(done) > 0 || strings.Contains(locks, "(*Monitor)."+name+"(")
			})
			m.mu.Lock()
			delete(m.pipelines, "bare")
			m.mu.Unlock()
			m.changing.Unlock()
			if err := <-done; err == nil || !one.nothing(m, former) {
				t.Errorf("it was done to a pipeline that is gone: %v", err)
			}
			m.mu.Lock()
			m.pipelines["bare"] = former // for Close
			m.mu.Unlock()
		})
	}
}

// A failure lasts over changes of the manifests that do not make the analysis succeed, and over runs that
// have looked at less. It ends with the pipeline.
func TestOnlyASuccessEndsAFailingAnalysis(t *testing.T) {
	m, _ := bareMonitor(t)
	analyze := func(scope string) func() error {
		return func() error {
			_, err := m.Analyze(t.Context(), api.AnalyzeRequest{Scope: scope}, func(api.Progress) {})
			return err
		}
	}
	apply := func(text string) func() error { return func() error { return applyText(m, text) } }
	changed := strings.Replace(pipelinetest.Bare, "  revocation: lazy\n", "  revocation: immediate\n", 1)
	removed, _, _ := strings.Cut(pipelinetest.Bare, "---\napiVersion: shai.dev/v1alpha1\nkind: Task\n")
	obstacle := filepath.Join(m.analysisPath("bare"), "in the way") // a result cannot be stored there
	for _, step := range []struct {
		name     string
		do       func() error
		obstacle bool
		want     float64
	}{
		{"all fails", analyze(api.ScopeAll), true, 1},
		{"a change without an analysis", apply(changed), true, 1},
		{"active succeeds", analyze(api.ScopeActive), false, 1},
		{"all succeeds", analyze(api.ScopeAll), false, 0},
		{"active fails", analyze(api.ScopeActive), true, 1},
		{"active succeeds after active", analyze(api.ScopeActive), false, 0},
		{"active fails again", analyze(api.ScopeActive), true, 1},
		{"all succeeds after active", analyze(api.ScopeAll), false, 0},
		{"all fails again", analyze(api.ScopeAll), true, 1},
		{"the pipeline is removed", apply(removed), true, -1},
		{"another of its name comes", apply(pipelinetest.Bare), false, 0},
	} {
		if err := os.RemoveAll(m.analysisPath("bare")); err != nil {
			t.Fatal(err)
		}
		if step.obstacle {
			if err := os.MkdirAll(obstacle, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := step.do(); (err != nil) != strings.Contains(step.name, "fails") {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := countOf(t, m, "shai_analysis_failing", "bare"); got != step.want {
			t.Errorf("%s: failing is %v, want %v", step.name, got, step.want)
		}
	}
}

// The scope active analyses only the instances of open sessions. The results about the
// others are kept if they are of the same state.
func TestOnlyActiveInstancesAreAnalyzedAgain(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	supervisor := superviseBare(t, m).Supervisor()
	supervisor.Sessions.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventAccepted, Session: 7, Worker: 4711, Peer: netip.MustParseAddr("192.0.2.1").As16(),
			Reason: "de"},
		{Kind: supervision.EventBound, Session: 7, Worker: 4711, Principal: "alice", Instance: "worker(alice, de)",
			Reason: "analyzed"},
	}})
	supervisor.Since()
	const alices = "set worker(alice, de) alice de flags 3, 3 classes"
	for _, step := range []struct {
		name      string
		full      bool
		instances uint64
		told      []string // the supervisor
	}{
		{"alice again", false, 3, []string{alices}},
		// The result about bob must not be used: he is left out.
		{"in full", true, 2, []string{"forget bob de flags 0", alices}},
		// Nothing is known of this state: he is left out, too.
		{"of another state", false, 2, []string{alices}},
	} {
		if step.name == "of another state" {
			analyzeBare(t, m)
			m.setAnalysis("bare", &analyzed{plan: p.Plan()})
			p.DropSets()
			supervisor.Since()
		}
		request := api.AnalyzeRequest{Scope: api.ScopeActive, Full: step.full}
		report, err := m.Analyze(t.Context(), request, func(api.Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		told := supervisor.Since()
		if report.Scope != api.ScopeActive || report.Instances != step.instances || !slices.Equal(told, step.told) {
			t.Errorf("%s: scope %s, %d instances; the supervisor is told %q", step.name, report.Scope, report.Instances, told)
		}
	}
}
