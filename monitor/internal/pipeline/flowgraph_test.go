// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"slices"
	"testing"
)

// Metrics have the edges of the flow graph as the manifests expect them.
func TestFlowGraph(t *testing.T) {
	f := bare(t)
	f.services.Metrics.ReadFrom(f.Read)
	families, err := f.services.Metrics.Gather()
	f.must(err)
	var found []string
	for _, family := range families {
		if family.GetName() != "shai_flow" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["pipeline"] != f.name || metric.GetGauge().GetValue() != 1 {
				t.Errorf("%v", metric)
			}
			found = append(found, labels["task"]+" "+labels["direction"]+" "+labels["conduit"])
		}
	}
	want := []string{"collector reads documents", "worker reads documents", "worker writes web"}
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("edges %q, want %q", found, want)
	}
}
