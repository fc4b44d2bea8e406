// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import "shai.dev/monitor/internal/metrics"

// readFlows writes the edges of the flow graph: the conduits that each task is expected to use.
// Most accesses are native, and nobody counts them, so only the manifests tell where data flows.
func (p *Pipeline) readFlows(to *metrics.Sheet) {
	for _, name := range p.order {
		expected := p.tasks[name].spec
		for _, conduit := range expected.Reads {
			p.counts.Set(to, p.services.Metrics.Flow, 1, name, conduit, "reads")
		}
		for _, conduit := range expected.Writes {
			p.counts.Set(to, p.services.Metrics.Flow, 1, name, conduit, "writes")
		}
	}
}
