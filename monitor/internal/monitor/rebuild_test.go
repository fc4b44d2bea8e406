// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"net"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// A pipeline that cannot be made leaves the running one alone, which can then be
// replaced, and closed, as ever.
func TestAPipelineThatCannotBeMadeReplacesNone(t *testing.T) {
	m, running := bareMonitor(t)
	superviseBare(t, m)
	resolved, err := m.resolve(m.bundle)
	if err != nil {
		t.Fatal(err)
	}
	broken := *resolved["bare"]
	broken.Tasks = slices.Clone(broken.Tasks)
	for i := range broken.Tasks {
		taint := *broken.Tasks[i].Spec.Taint
		taint.Name = "missing"
		broken.Tasks[i].Spec.Taint = &taint
	}
	resolved["bare"] = &broken
	spec, err := meaning.ForCatalog(m.bundle, m.options.Data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.prepareSwap(&candidate{bundle: m.bundle, resolved: resolved, catalog: spec}); err == nil {
		t.Fatal("a taint that does not exist made a pipeline")
	}
	connection, err := net.Dial("tcp", m.options.Define["LISTEN"])
	if err != nil {
		t.Fatalf("the running pipeline was shut down: %v", err)
	}
	connection.Close()
	if m.pipelines["bare"] != running {
		t.Error("the running pipeline was replaced")
	}
	applyBare(t, m, strings.Replace(pipelinetest.Bare, "revocation: lazy", "revocation: immediate", 1))
}
