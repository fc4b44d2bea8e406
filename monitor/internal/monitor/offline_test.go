// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// Without a monitor, manifests give the answers that a monitor gives which has them in force.
func TestManifestsAloneGiveTheMonitorsAnswers(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	project, err := offline.Load(t.Context(), []manifest.Source{{Name: "bare.yaml", Text: pipelinetest.Bare}},
		offline.Options{Data: m.options.Data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := project.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(project.Missing) > 0 {
		t.Errorf("missing: %q", project.Missing)
	}
	for _, document := range pipelinetest.BareDocuments {
		for _, question := range []api.Question{
			{Principal: "alice", Region: "de"}, {Principal: "bob", Region: "de"}, {Principal: "carol", Region: "us"},
			{Task: "collector"}, {Task: "collector", Access: "write"}, {Principal: "alice", Access: "write"},
		} {
			question.Conduit = document
			want, err := m.Explain(t.Context(), question)
			if err != nil {
				t.Fatal(err)
			}
			got, err := project.Explain(question, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			got.Class, want.Class = 0, 0 // numbers of two catalogs
			if diff := cmp.Diff(want, got.Explanation); diff != "" {
				t.Errorf("%+v:\n%s", question, diff)
			}
		}
		request := api.ReadersRequest{Conduit: document, Limit: 10}
		want, err := m.Readers(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := project.Who(t.Context(), request, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Readers, got.Readers); diff != "" {
			t.Errorf("readers of %s:\n%s", document, diff)
		}
	}
}
