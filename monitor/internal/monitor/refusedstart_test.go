// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// The smallest example with one change each that a policy forbids: the task does not
// start, the reason names the flow, the policy is counted, and nothing stays open of the attempt.
func TestForbiddenFlowsKeepATaskFromStarting(t *testing.T) {
	text, err := os.ReadFile("../../../crds/examples/minimal/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, before, after, want, counted, refused string }{
		{"reads foreign data", "reads: [inbox-alice]", "reads: [inbox-alice, inbox-bob]", "may not read /inbox/bob",
			"owned policy count", "read of inbox-bob by owned"},
		{"writes where another reads", "made-for, arguments: {owner: alice,", "made-for, arguments: {owner: bob,",
			"may not write /summary", "owned taint count", "write of summary by owned"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStack(t)
			changed := strings.Replace(string(text), test.before, test.after, 1)
			if changed == string(text) {
				t.Fatalf("the example has no %q any more", test.before)
			}
			// The example's program and its runtime are Linux's.
			changed = strings.NewReplacer("/usr/bin/python3", "$(PROBE)/probe_worker",
				"runtimeName: python", "runtimeName: probe").Replace(changed)
			s.manifests = map[string]string{"pipeline.yaml": changed}
			s.document("/inbox/alice/1.txt")
			s.document("/inbox/bob/1.txt")
			s.open()
			s.apply()
			start := func() error {
				_, err := s.monitor.StartTask(t.Context(), "minimal", "count")
				return err
			}
			if err := start(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error that says %q", err, test.want)
			}
			s.expectMeasured("afterwards", map[string]float64{"shai_denials_total minimal " + test.counted: 1})
			run := s.monitor.pipelines["minimal"].Task("count").Status().LastRun
			if run.State != "Failed" || run.Denials != 1 || len(run.Refusals) != 1 || shown(run.Refusals[0]) != test.refused {
				t.Errorf("the run that did not start: %+v", run)
			}
			// The collector would close what was forgotten, and hide it.
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			before := pipelinetest.OpenDescriptors(t)
			for range 20 {
				if start() == nil {
					t.Fatal("the task has started")
				}
			}
			// Others are open for a while: a snapshot follows the apply.
			waiting.Until(t, "nothing stays open of 20 refused starts", func() bool {
				return pipelinetest.OpenDescriptors(t) <= before
			})
		})
	}
}

func shown(r api.TaskRefusal) string { return r.Operation + " of " + r.Conduits + " by " + r.Policy }
