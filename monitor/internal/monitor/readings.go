// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"maps"
	"runtime"
	"strconv"
	"time"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline"
)

// read writes what metrics say about the monitor as it is now. It takes no lock for which
// decisions wait.
func (m *Monitor) read(to *metrics.Sheet) {
	kept := m.metrics
	to.Set(kept.BuildInfo, 1, m.options.Version, runtime.Version())
	to.Set(kept.Started, timestamp(m.started))
	if m.audit == nil || m.catalog == nil {
		return // it is being opened
	}
	to.Set(kept.Facts, float64(m.state().Facts()))
	to.Set(kept.Ready, number(m.Ready(context.Background()) == nil))
	m.readAudit(to)
	m.sources.read(to)
	m.mu.RLock()
	bundle, applied := m.bundle, m.applied
	pipelines, analyses := maps.Clone(m.pipelines), maps.Clone(m.analyses)
	failing := map[string]bool{}
	for name, known := range m.runs {
		failing[name] = known.failing()
	}
	m.mu.RUnlock() // changes of facts wait for mu, sessions for them, and to read all pipelines takes time
	if bundle != nil {
		inForce := m.state().Bundle()
		to.Set(kept.BundleInfo, 1, strconv.FormatUint(inForce.Version, 10), inForce.Hash, inForce.Label)
		to.Set(kept.BundleApplied, timestamp(applied))
	}
	for name, p := range pipelines {
		p.Read(to)
		p.Counts().Set(to, kept.AnalysisFailing, number(failing[name]))
		if known := analyses[name]; known != nil && known.result != nil {
			m.readAnalysis(to, p, known)
		}
	}
}

func (m *Monitor) readAudit(to *metrics.Sheet) {
	kept := m.metrics
	to.Set(kept.AuditRefusing, number(m.audit.Failing() != nil))
	to.Set(kept.AuditOmitted, float64(m.audit.Omitted()))
	now := m.audit.Stats()
	for kind, added := range now.Added {
		to.Set(kept.AuditRecords, float64(added), string(kind))
	}
	to.Set(kept.AuditBacklog, float64(now.Backlog))
	to.Set(kept.AuditSize, float64(now.Size))
	if last := m.verified.last.Load(); last != nil {
		to.Set(kept.AuditVerified, number(last.fault == ""))
		if !last.ended.IsZero() {
			to.Set(kept.AuditLastVerified, timestamp(last.ended))
		}
	}
}

// readAnalysis writes what the last successful analysis of a pipeline has found.
func (m *Monitor) readAnalysis(to *metrics.Sheet, p *pipeline.Pipeline, known *analyzed) {
	kept, counts, report := m.metrics, p.Counts(), known.report
	counts.Set(to, kept.AnalysisSuccess, timestamp(report.Started))
	counts.Set(to, kept.AnalysisDuration, (time.Duration(report.DurationMicroseconds) * time.Microsecond).Seconds())
	for outcome, accesses := range map[string]uint64{"granted": report.Granted, "refused": report.Refused,
		"undecided": report.Undecided} {
		counts.Set(to, kept.AnalysisAccesses, float64(accesses), outcome)
	}
	counts.Set(to, kept.AnalysisInstances, float64(report.Instances))
	counts.Set(to, kept.AnalysisClasses, float64(report.Classes))
	counts.Set(to, kept.AnalysisConduits, float64(report.Conduits))
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func timestamp(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }
