// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"shai.dev/monitor/internal/audit"
)

// Kinds of interceptions. Each counts how often a task's progress waited for the monitor,
// except reset, which makes no task wait.
const (
	interceptRegister     = "register"
	interceptAccept       = "accept"
	interceptAuthenticate = "authenticate"
	interceptOpen         = "open"
	interceptPath         = "path"
	interceptSend         = "send"
	interceptReset        = "reset"
)

// metrics are the monitor's Prometheus metrics. They are safe for concurrent use.
type metrics struct {
	registry      *prometheus.Registry
	interceptions *prometheus.CounterVec // pipeline, kind
	sessions      *prometheus.CounterVec // pipeline, mode
	refusals      *prometheus.CounterVec // pipeline, operation
	bindings      *prometheus.CounterVec // pipeline, result
	active        *prometheus.GaugeVec   // pipeline
	latency       *prometheus.HistogramVec
	factChange    prometheus.Histogram
	restarts      *prometheus.CounterVec
	auditFailures prometheus.Counter
	outcomes      *outcomes              // pipeline, allowed
	wouldDeny     *prometheus.CounterVec // pipeline, policy, mode
	fetchFailures *prometheus.CounterVec // source
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		interceptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_interceptions_total",
			Help: "Times a task involved the reference monitor, by kind.",
		}, []string{"pipeline", "kind"}),
		sessions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_sessions_total",
			Help: "Sessions that have ended, by the mode they ran in.",
		}, []string{"pipeline", "mode"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_refusals_total",
			Help: "Accesses and system calls that were refused, by operation.",
		}, []string{"pipeline", "operation"}),
		bindings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_session_bindings_total",
			Help: "Attempts to bind a session to a principal, by result: analyzed, mispredicted or refused.",
		}, []string{"pipeline", "result"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "shai_sessions_active",
			Help: "Sessions that are open now.",
		}, []string{"pipeline"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "shai_decision_seconds",
			Help:    "Time the monitor took for a decision, by kind of interception.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"kind"}),
		factChange: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "shai_fact_change_seconds",
			Help:    "Time from a change of facts to updated capability sets, without the write to disk.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_task_restarts_total",
			Help: "Tasks that ended unexpectedly and were to be started again.",
		}, []string{"pipeline", "task"}),
		fetchFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_fact_source_failures_total",
			Help: "Fetches of facts that failed; the last facts stay in force.",
		}, []string{"source"}),
		auditFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shai_audit_failures_total",
			Help: "Audit records that could not be written.",
		}),
		outcomes: newOutcomes(),
		wouldDeny: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shai_would_deny_total",
			Help: "Accesses that were allowed because the policy that forbids them is in mode Audit or Warn.",
		}, []string{"pipeline", "policy", "mode"}),
	}
	m.registry.MustRegister(m.interceptions, m.sessions, m.refusals, m.bindings, m.active, m.latency,
		m.factChange, m.fetchFailures, m.restarts, m.auditFailures, m.outcomes, m.wouldDeny,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watchAudit adds the metrics of the audit log.
func (m *metrics) watchAudit(log *audit.Log) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shai_audit_refusing",
			Help: "1 while accesses that need an audit record are refused, since it cannot be written.",
		}, func() float64 {
			if log.Failing() != nil {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "shai_audit_omitted_total",
			Help: "Denials that the audit log counts in summaries, and does not record one by one.",
		}, func() float64 { return float64(log.Omitted()) }))
}

// decided counts one decision of the monitor.
func (m *metrics) decided(pipeline string, allowed bool) { m.outcomes.add(pipeline, allowed, 1) }

// counters returns every counter and gauge of the monitor, summed over its labels, for
// status.
func (m *metrics) counters() map[string]uint64 {
	sums := map[string]uint64{}
	families, err := m.registry.Gather()
	if err != nil {
		return sums // a collector failed; status then has no counters
	}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "shai_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			switch {
			case metric.GetCounter() != nil:
				sums[family.GetName()] += uint64(metric.GetCounter().GetValue())
			case metric.GetGauge() != nil && family.GetName() == "shai_sessions_active":
				sums[family.GetName()] += uint64(metric.GetGauge().GetValue())
			}
		}
	}
	return sums
}
