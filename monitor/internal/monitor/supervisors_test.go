// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
)

// A change has happened when every supervisor has confirmed it.
func TestChangesWaitForSupervisors(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	supervisor := superviseBare(t, m).Supervisor()
	for name, change := range map[string]func() error{
		"a change of facts": func() error {
			bob := []api.Fact{apiFact("friends/alice", "friend", "bob")}
			_, err := m.ChangeFacts(t.Context(), api.FactChange{Remove: bob})
			return err
		},
		"an analysis": func() error {
			_, err := m.Analyze(t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
			return err
		},
		"a bundle that leaves the pipeline as it is": func() error {
			return applyText(m, pipelinetest.Bare+"---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: other}\n"+
				"spec: {text: \"read :- true.\"}\n")
		},
		"an expiry":            func() error { return m.expire(t.Context(), time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)) },
		"a change of the mode": func() error { _, err := m.SetMode(t.Context(), "bare", "audit"); return err },
	} {
		supervisor.Since()
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told := supervisor.Told()
		if len(told) == 0 {
			t.Fatalf("%s: the supervisor was told nothing", name)
		}
		if _, waited := told[len(told)-1].(supervision.Fence); !waited {
			t.Errorf("%s: not confirmed; the last record is %T", name, told[len(told)-1])
		}
	}
	if m.pipelines["bare"] != p {
		t.Error("the bundle has replaced the pipeline")
	}
}
