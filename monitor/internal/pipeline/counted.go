// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/policy"
)

// Names that metrics have as labels.

func taskNames(resolved *manifest.Resolved) (names []string) {
	for _, task := range resolved.Tasks {
		names = append(names, task.Metadata.Name)
	}
	return names
}

func conduitNames(spec manifest.PipelineSpec) (names []string) {
	for _, conduit := range spec.Conduits {
		names = append(names, conduit.Name)
	}
	return names
}

// manifestName returns the name in the manifest of a conduit: of a file or tuple, the one whose
// pattern matches it. It is empty for what belongs to no conduit of the pipeline.
func (p *Pipeline) manifestName(conduit policy.Conduit) string {
	switch conduit.Kind {
	case policy.ConnectionConduit:
		return conduit.Name
	case policy.PipeConduit, policy.DescriptorConduit:
		name, _, _ := strings.Cut(strings.TrimPrefix(conduit.Name, p.name+"/"), "/")
		return name
	}
	name, own := strings.CutPrefix(p.services.state().SetOf(conduit), p.name+"/")
	if !own {
		return ""
	}
	return name
}

// Read writes what metrics say about the pipeline as it is now.
func (p *Pipeline) Read(to *metrics.Sheet) {
	kept := p.services.Metrics
	p.counts.Set(to, kept.PipelineMode, 1, p.Mode().String())
	p.readFlows(to)
}
