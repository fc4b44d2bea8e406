// SPDX-License-Identifier: BSD-2-Clause

// Package metrics counts what the monitor does, for Prometheus and for its status.
//
// [New] declares every metric once: the rows of a table, from which the reference page is made,
// too. What happens in a pipeline is counted by its [Pipeline]. What something else knows is
// read when somebody asks, by the functions that [Metrics.ReadFrom] was given. To gather
// metrics takes no lock for which a decision waits.
package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the monitor's Prometheus metrics. They are safe for concurrent use.
type Metrics struct {
	pipelineCounters
	monitorCounters
	Readings
	FactChange prometheus.Histogram // seconds
	Revocation prometheus.Histogram // seconds
	Ingest     prometheus.Histogram // seconds

	registry *prometheus.Registry
	table    []Metric
	counters []*Counter
	readings []*Reading
	latency  latency
	scopes   scopes
	monitor  *scope // of what belongs to no pipeline

	mu      sync.Mutex
	sources []func(*Sheet)
}

// revocationBuckets have ten seconds among them: a supervisor that takes longer is ended, and an
// alert counts the revocations beyond.
var revocationBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// New returns metrics that count nothing yet.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.pipelineCounters = m.declarePipelineCounters()
	m.latency = m.declareLatency()
	m.monitorCounters = m.declareMonitorCounters()
	m.FactChange = m.histogram("shai_fact_change_seconds",
		"Time from a change of facts to updated capability sets, without the write to disk.",
		prometheus.ExponentialBuckets(1e-5, 4, 10))
	m.Revocation = m.histogram("shai_revocation_seconds",
		"Time from the request that changes facts to the moment when the last session that it ends can do nothing any more.",
		revocationBuckets)
	m.Ingest = m.declareIngest()
	m.Readings = m.declareReadings()
	m.scopes.begin(len(m.counters))
	m.monitor = newScope("", len(m.counters))
	for _, plain := range []*Counter{m.auditFailures, m.scrapesRejected} {
		plain.begin(m.monitor, values{}) // they have a value before anything happens
	}
	m.CountIngested(Ingested{})
	for _, succeeded := range []bool{true, false} {
		m.factChanges.begin(m.monitor, values{resultOf(succeeded)})
	}
	m.registry.MustRegister(m, m.FactChange, m.Revocation, m.Ingest, collectors.NewGoCollector(), ofProcess())
	return m
}

// pipelineCounters count what happens in pipelines; see pipeline.go.
type pipelineCounters struct {
	sessions, bindings, interceptions                      *Counter
	decisions, conduitDecisions, opens, nativeOpens        *Counter
	refusals, denials, wouldDeny                           *Counter
	learned, foreseen, analyses, restarts, discardedWorker *Counter
}

func (m *Metrics) declarePipelineCounters() pipelineCounters {
	return pipelineCounters{
		sessions: m.perPipeline("shai_sessions_total", "Sessions of users that have ended, by the mode they ran in.",
			modeLabel),
		bindings: m.perPipeline("shai_session_bindings_total", "Attempts to bind a session to a user.",
			Label{"result", "analyzed: the analysis foresaw the instance; mispredicted: it did not; refused"}),
		interceptions: m.perPipeline("shai_interceptions_total",
			"Times a task waited for the reference monitor, or for a supervisor in its place.", kindLabel),
		decisions: m.perPipeline("shai_decisions_total",
			"Accesses that were decided on, one by one or, if their opens are counted, ahead.", allowedLabel),
		conduitDecisions: m.perPipeline("shai_conduit_decisions_total",
			"Decisions of the monitor one by one, by the conduit that they are about.",
			Label{"conduit", conduitLabel.Meaning + "; empty for what belongs to none of it"},
			Label{"operation", "read, write or leave"}, allowedLabel),
		opens: m.perPipeline("shai_opens_total",
			"Opens that a task asked for because the kernel did not allow them by itself. "+
				"Documents of a transfer that the monitor decides on count, too.",
			Label{"path", "supervisor: answered from what was decided ahead; monitor: decided by it"}, allowedLabel),
		nativeOpens: m.perPipeline("shai_native_opens_total",
			"Opens that the kernel allowed by itself. Workers say their number, which is bounded, but no evidence."),
		refusals: m.perPipeline("shai_refusals_total",
			"Accesses, logins and system calls that were refused, or would have been in mode audit.", operationLabel),
		denials: m.perPipeline("shai_denials_total", "Accesses, logins and system calls that were denied.",
			taskLabel, forbidsLabel, reasonLabel),
		wouldDeny: m.perPipeline("shai_would_deny_total",
			"Accesses that were allowed only because the policies that forbid them, or the pipeline, deny nothing: "+
				"once for each policy in mode Audit or Warn, or once for a pipeline in mode audit. "+
				"The start of a task, a login and a rise of the taint count what they decide on ahead, "+
				"whether they succeed or not.",
			forbidsLabel, Label{"mode", "Audit or Warn: of the policy; audit: of the pipeline"}, reasonLabel),
		learned: m.perPipeline("shai_learned_classes_total",
			"Classes that capability sets have gained because a session asked for a document of them."),
		foreseen: m.perPipeline("shai_background_analyses_total",
			"Instances that were analysed when their first session began, because no analysis had foreseen them."),
		analyses: m.perPipeline("shai_analyses_total", "Runs of the offline analysis that have ended.",
			Label{"result", "succeeded, failed or cancelled"}),
		restarts: m.perPipeline("shai_task_restarts_total",
			"Tasks that ended unexpectedly and were to be started again.", taskLabel),
		discardedWorker: m.perPipeline("shai_workers_discarded_total",
			"Workers that were killed because they were not rolled back as they should.", taskLabel),
	}
}

// monitorCounters count what belongs to no pipeline.
type monitorCounters struct {
	auditFailures, factChanges, fetchFailures, scrapesRejected, ingested *Counter
}

func (m *Metrics) declareMonitorCounters() monitorCounters {
	return monitorCounters{
		auditFailures: m.counter("shai_audit_failures_total", "Audit records that could not be written."),
		factChanges: m.counter("shai_fact_changes_total", "Changes of facts, by requests or fetched.",
			Label{"result", "succeeded or failed"}),
		fetchFailures: m.counter("shai_fact_source_failures_total",
			"Fetches of facts that failed; the last facts stay in force.", sourceLabel),
		scrapesRejected: m.counter("shai_scrapes_rejected_total",
			"Scrapes that were refused because too many others were under way."),
		ingested: m.declareIngested(),
	}
}

// AuditFailed counts an audit record that could not be written.
func (m *Metrics) AuditFailed() { m.auditFailures.in(m.monitor, values{}).add(1) }

// FactsChanged counts a change of facts.
func (m *Metrics) FactsChanged(succeeded bool) {
	m.factChanges.in(m.monitor, values{resultOf(succeeded)}).add(1)
}

// FetchFailed counts a failed fetch from a source of facts.
func (m *Metrics) FetchFailed(source string) {
	m.fetchFailures.in(m.monitor, values{m.monitor.label(&m.scopes, sourceLabel, source)}).add(1)
}

// FollowSources says which sources of facts there are. The series of others disappear.
func (m *Metrics) FollowSources(names []string) {
	m.monitor.keep(&m.scopes, map[string][]string{sourceLabel.Name: names})
	m.fetchFailures.keepIn(m.monitor)
	for _, name := range names {
		m.fetchFailures.begin(m.monitor, values{m.monitor.label(&m.scopes, sourceLabel, name)})
	}
}

func resultOf(succeeded bool) string {
	if succeeded {
		return "succeeded"
	}
	return "failed"
}

// Counters returns the monitor's own counters by name, summed over their labels, and the number
// of sessions that are open, for status.
func (m *Metrics) Counters() map[string]uint64 {
	sums := map[string]uint64{}
	for _, s := range append(m.scopes.open(), m.monitor) {
		for _, counter := range m.counters {
			for _, one := range counter.all(s) {
				sums[counter.name] += one.count.Load()
			}
		}
		sums[m.sessionsActive.name] += uint64(max(0, s.active.Load()))
	}
	return sums
}
