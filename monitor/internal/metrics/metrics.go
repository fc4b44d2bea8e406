// SPDX-License-Identifier: BSD-2-Clause

// Package metrics counts what the monitor does, for Prometheus and for its status.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"shai.dev/monitor/internal/audit"
)

// Kinds of interceptions. Each counts how often a task's progress waited for the monitor,
// except reset, which makes no task wait.
const (
	Register     = "register"
	Accept       = "accept"
	Authenticate = "authenticate"
	Open         = "open"
	Path         = "path"
	Send         = "send"
	Reset        = "reset"
)

// Metrics are the monitor's Prometheus metrics. They are safe for concurrent use.
type Metrics struct {
	Registry      *prometheus.Registry
	Interceptions *prometheus.CounterVec // pipeline, kind
	Sessions      *prometheus.CounterVec // pipeline, mode
	Refusals      *prometheus.CounterVec // pipeline, operation
	Bindings      *prometheus.CounterVec // pipeline, result
	Active        *prometheus.GaugeVec   // pipeline
	Latency       *prometheus.HistogramVec
	FactChange    prometheus.Histogram
	Restarts      *prometheus.CounterVec
	AuditFailures prometheus.Counter
	Outcomes      *Outcomes              // pipeline, allowed
	WouldDeny     *prometheus.CounterVec // pipeline, policy, mode
	FetchFailures *prometheus.CounterVec // source
	Learned       *prometheus.CounterVec // pipeline
	Foreseen      *prometheus.CounterVec // pipeline
	Discarded     *prometheus.CounterVec // pipeline, task
}

// New returns metrics that count nothing yet.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	m := &Metrics{
		Registry: registry,
		Interceptions: counter("shai_interceptions_total",
			"Times a task involved the reference monitor, by kind.", "pipeline", "kind"),
		Sessions: counter("shai_sessions_total",
			"Sessions that have ended, by the mode they ran in.", "pipeline", "mode"),
		Refusals: counter("shai_refusals_total",
			"Accesses and system calls that were refused, by operation.", "pipeline", "operation"),
		Bindings: counter("shai_session_bindings_total",
			"Attempts to bind a session to a principal, by result: analyzed, mispredicted or refused.", "pipeline", "result"),
		Active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "shai_sessions_active",
			Help: "Sessions that are open now.",
		}, []string{"pipeline"}),
		Latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "shai_decision_seconds",
			Help:    "Time the monitor took for a decision, by kind of interception.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"kind"}),
		FactChange: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "shai_fact_change_seconds",
			Help:    "Time from a change of facts to updated capability sets, without the write to disk.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		Restarts: counter("shai_task_restarts_total",
			"Tasks that ended unexpectedly and were to be started again.", "pipeline", "task"),
		FetchFailures: counter("shai_fact_source_failures_total",
			"Fetches of facts that failed; the last facts stay in force.", "source"),
		AuditFailures: counter("shai_audit_failures_total",
			"Audit records that could not be written.").WithLabelValues(),
		Outcomes: newOutcomes(),
		WouldDeny: counter("shai_would_deny_total",
			"Accesses that were allowed because the policy that forbids them is in mode Audit or Warn.",
			"pipeline", "policy", "mode"),
		Learned: counter("shai_learned_classes_total",
			"Classes that capability sets have gained because a session asked for a document of them.", "pipeline"),
		Foreseen: counter("shai_background_analyses_total",
			"Instances that were analysed when their first session began, because no analysis had foreseen them.", "pipeline"),
		Discarded: counter("shai_workers_discarded_total",
			"Workers that were killed because they were not rolled back as they should.", "pipeline", "task"),
	}
	registry.MustRegister(m.Active, m.Latency, m.FactChange, m.Outcomes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// WatchAudit adds the metrics of the audit log.
func (m *Metrics) WatchAudit(log *audit.Log) {
	m.Registry.MustRegister(
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

// Decided counts one decision of the monitor.
func (m *Metrics) Decided(pipeline string, allowed bool) { m.Outcomes.Add(pipeline, allowed, 1) }

// Counters returns every counter and gauge of the monitor, summed over its labels, for
// status.
func (m *Metrics) Counters() map[string]uint64 {
	sums := map[string]uint64{}
	families, err := m.Registry.Gather()
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
