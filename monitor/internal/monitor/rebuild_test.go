// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"slices"
	"strings"
	"testing"
)

// A pipeline that cannot be made leaves the running one alone, which can then be
// replaced, and closed, as ever.
func TestAPipelineThatCannotBeMadeReplacesNone(t *testing.T) {
	m, running := bareMonitor(t)
	var err error
	if running.acceptor, err = listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
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
	spec, err := catalogBundle(m.bundle, m.options.Data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.prepareSwap(&candidate{bundle: m.bundle, resolved: resolved, catalog: spec}); err == nil {
		t.Fatal("a taint that does not exist made a pipeline")
	}
	select {
	case <-running.acceptor.done:
		t.Error("the running pipeline was shut down")
	default:
	}
	if m.pipelines["bare"] != running {
		t.Error("the running pipeline was replaced")
	}
	applyBare(t, m, strings.Replace(bareManifest, "revocation: lazy", "revocation: immediate", 1))
}
