// SPDX-License-Identifier: BSD-2-Clause

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Ingested are the numbers of files that a step has catalogued, by what has become of them.
type Ingested struct{ Added, Renewed, Removed, Refused int }

func (m *Metrics) declareIngested() *Counter {
	return m.counter("shai_ingested_documents_total", "Files that the monitor has looked at and that were not catalogued as they are.",
		Label{"result", "added; renewed: their content is new; removed; or refused: they are no documents, and count each time they are looked at"})
}

func (m *Metrics) declareIngest() prometheus.Histogram {
	return m.histogram("shai_ingest_seconds",
		"Time of a step in which at most 1,000 files are catalogued, with the wait for other changes.",
		prometheus.ExponentialBuckets(1e-3, 2, 14))
}

// CountIngested counts a step's files.
func (m *Metrics) CountIngested(done Ingested) {
	for result, files := range map[string]int{"added": done.Added, "renewed": done.Renewed, "removed": done.Removed,
		"refused": done.Refused} {
		m.ingested.in(m.monitor, values{result}).add(uint64(max(0, files)))
	}
}
