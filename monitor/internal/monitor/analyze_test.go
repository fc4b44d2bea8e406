// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
)

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
			m, p := bareMonitor(t)
			analyzeBare(t, m)
			known, set := m.analyses["bare"], bareSet(t, p)
			good, err := m.LatestAnalysis(t.Context(), "bare")
			if err != nil {
				t.Fatal(err)
			}
			if err := test.run(t, m); err == nil {
				t.Fatal("the run succeeded")
			}
			if m.analyses["bare"] != known || bareSet(t, p) != set {
				t.Error("the result in force, or its capability sets, are others")
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

// The scope active analyses only the instances of open sessions. The results about the
// others are kept if they are of the same state.
func TestOnlyActiveInstancesAreAnalyzedAgain(t *testing.T) {
	s := wireStack(t)
	p := s.pipeline()
	if bound := s.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Fatal(bound.Reason)
	}
	alice, bob := p.sets["worker(alice, de)"], p.sets["worker(bob, de)"]
	active := func(full bool) api.Analysis {
		report, err := s.monitor.Analyze(t.Context(), api.AnalyzeRequest{Scope: api.ScopeActive, Full: full},
			func(api.Progress) {})
		s.must(err)
		return report
	}
	report := active(false)
	if report.Scope != api.ScopeActive || report.Instances != 3 || p.sets["worker(alice, de)"] == alice ||
		p.sets["worker(bob, de)"] != bob {
		t.Errorf("scope %s, %d instances; alice is new: %v, bob is new: %v", report.Scope, report.Instances,
			p.sets["worker(alice, de)"] != alice, p.sets["worker(bob, de)"] != bob)
	}
	// The result about bob must not be used: he is left out.
	report = active(true)
	if report.Instances != 2 || p.sets["worker(bob, de)"] != nil {
		t.Errorf("in full: %d instances; bob: %v", report.Instances, p.sets["worker(bob, de)"])
	}
	// Nothing is known of this state: he is left out, too.
	s.monitor.setAnalysis("probe", &analyzed{plan: p.plan})
	p.dropSets(every, "")
	report = active(false)
	if report.Instances != 2 || p.sets["worker(alice, de)"] == nil || p.sets["worker(bob, de)"] != nil {
		t.Errorf("%d instances; alice: %v, bob: %v", report.Instances, p.sets["worker(alice, de)"],
			p.sets["worker(bob, de)"])
	}
}
