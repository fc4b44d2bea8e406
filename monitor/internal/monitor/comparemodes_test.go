// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// A comparison shows what is not denied any more, and what is denied from then on, though no flow changes.
func TestCompareShowsChangesOfModes(t *testing.T) {
	m, _ := bareMonitor(t)
	applyBare(t, m, pipelinetest.Bare)
	audited := strings.Replace(pipelinetest.Bare, "  mode: shai\n", "  mode: audit\n", 1)
	policy := func(mode string) string { return inMode(t, pipelinetest.Bare, "diary", mode) }
	compared := func(what, text string, want ...api.ModeChange) {
		t.Helper()
		got, err := compareText(m, text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]api.ModeChange{}, want...), got.Modes); diff != "" ||
			got.ModesTotal != uint64(len(want)) {
			t.Errorf("%s: %d\n%s", what, got.ModesTotal, diff)
		}
	}
	compared("nothing changes", pipelinetest.Bare)
	compared("a pipeline that is tried out", audited, api.ModeChange{Kind: "Pipeline", Name: "bare", From: "shai",
		To: "audit", Effect: "accesses are not denied any more: what policies forbid happens, and is recorded"})
	compared("a policy that is tried out", policy("Audit"), api.ModeChange{Kind: "Policy", Name: "diary",
		From: "Enforce", To: "Audit", Effect: "what it forbids is not denied any more: it happens, and is recorded"})
	if _, err := m.SetMode(t.Context(), "bare", "audit"); err != nil {
		t.Fatal(err)
	}
	compared("a bundle that leaves the pipeline as it is", pipelinetest.Bare)
	compared("a mode that is in force already", audited)
	compared("a changed pipeline gets the mode of its manifest", policy("Warn"),
		api.ModeChange{Kind: "Pipeline", Name: "bare", From: "audit", To: "shai",
			Effect: "what policies forbid is denied from then on: it happened"},
		api.ModeChange{Kind: "Policy", Name: "diary", From: "Enforce", To: "Warn",
			Effect: "what it forbids is not denied any more: it happens, and is recorded with warnings"})
	applyBare(t, m, policy("Warn"))
	compared("a policy that is enforced at last", pipelinetest.Bare, api.ModeChange{Kind: "Policy", Name: "diary",
		From: "Warn", To: "Enforce", Effect: "what it forbids is denied from then on: it happened, and was recorded"})
	renamed := strings.NewReplacer("name: diary,", "name: journal,", "name: diary}", "name: journal}",
		"policy diary", "policy journal").Replace(policy("Audit"))
	compared("a policy with another name", renamed, api.ModeChange{Kind: "Policy", Name: "journal", To: "Audit",
		Effect: "what it forbids is not denied: it happens, and is recorded"})
}

// Each change of a pipeline's mode says whether anything is denied.
func TestEffectsOfPipelineModes(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"shai", "dynamic", "what policies forbid is denied as before"},
		{"dynamic-lazy", "audit", "accesses are not denied any more: what policies forbid happens, and is recorded"},
		{"shai", "baseline", "nothing is enforced any more: what policies forbid happens, and is not recorded"},
		{"audit", "baseline", "nothing is enforced any more: what policies forbid happens, and is not recorded"},
		{"baseline", "audit", "what policies forbid happens as before, and is recorded from then on"},
		{"baseline", "shai", "what policies forbid is denied from then on: it happened"},
		{"", "audit", "accesses are not denied: what policies forbid happens, and is recorded"},
		{"", "baseline", "nothing is enforced: what policies forbid happens, and is not recorded"},
	} {
		if got := effectOfPipeline(test.from, test.to); got != test.want {
			t.Errorf("%s to %s: %s", test.from, test.to, got)
		}
	}
}
