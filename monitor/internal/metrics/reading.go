// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Reading is a metric whose values something else keeps.
type Reading struct {
	name        string
	description *prometheus.Desc
	kind        prometheus.ValueType
	labels      []string
	merge       func(a, b float64) float64 // of what has the same labels, because names are too many
}

func sum(a, b float64) float64      { return a + b }
func smallest(a, b float64) float64 { return min(a, b) }
func largest(a, b float64) float64  { return max(a, b) }

// merged sets how values with the same labels become one.
func (r *Reading) merged(how func(a, b float64) float64) *Reading {
	r.merge = how
	return r
}

// Readings are the metrics that are read when somebody asks.
type Readings struct {
	BuildInfo, Started, Ready, BundleInfo, BundleApplied                   *Reading
	sessionsActive, PipelineMode, TaskState, TaskEnforcement, Workers, CPU *Reading
	Flow                                                                   *Reading
	AnalysisSuccess, AnalysisDuration, AnalysisAccesses, AnalysisFailing   *Reading
	AnalysisInstances, AnalysisClasses, AnalysisConduits                   *Reading
	CapabilitySets, CapabilitySetsStale                                    *Reading
	Facts, FactSourceAge, FactSourceFailing                                *Reading
	AuditRecords, AuditBacklog, AuditSize, AuditRefusing, AuditOmitted     *Reading
	AuditVerified, AuditLastVerified                                       *Reading
}

func (m *Metrics) declareReadings() Readings {
	r := Readings{}
	m.declareBundle(&r)
	m.declareTasks(&r)
	m.declareAnalysis(&r)
	m.declareAudit(&r)
	return r
}

func (m *Metrics) declareBundle(r *Readings) {
	r.BuildInfo = m.gauge("shai_build_info", noUnit, "The monitor that runs; always 1.",
		Label{"version", "version of Shai"}, Label{"goversion", "version of Go that it was built with"})
	r.Started = m.gauge("shai_start_time_seconds", seconds, "When the monitor started.")
	r.Ready = m.gauge("shai_ready", noUnit, "1 while the monitor decides and records.")
	r.BundleInfo = m.gauge("shai_bundle_info", noUnit, "The bundle in force; always 1.",
		Label{"version", "number of the bundle"}, Label{"hash", "SHA-256 of its content"},
		Label{"label", "name that its sender gave it"})
	r.BundleApplied = m.gauge("shai_bundle_applied_timestamp_seconds", seconds, "When the bundle came into force.")
	r.Facts = m.gauge("shai_facts", noUnit, "Tuples of facts in the catalog.")
	r.FactSourceAge = m.gauge("shai_fact_source_age_seconds", seconds, "Time since facts were last fetched from a source, "+
		"or, if they never were, since the monitor began to follow it.", sourceLabel).merged(largest)
	r.FactSourceFailing = m.gauge("shai_fact_source_failing", noUnit,
		"1 if the last fetch from a source failed, 0 if it succeeded, or none has ended.", sourceLabel).merged(largest)
}

func (m *Metrics) declareTasks(r *Readings) {
	r.sessionsActive = m.gauge("shai_sessions_active", noUnit, "Sessions that are open now.", pipelineLabel)
	r.PipelineMode = m.gauge("shai_pipeline_mode", noUnit, "The mode of sessions that begin now; always 1.",
		pipelineLabel, modeLabel)
	r.TaskState = m.gauge("shai_task_state", noUnit, "The present state of a task; always 1.", pipelineLabel, taskLabel,
		Label{"state", "Stopped, Starting, Running, Succeeded or Failed"})
	r.TaskEnforcement = m.gauge("shai_task_enforcement", noUnit, "What the kernel enforces on a task; always 1.",
		pipelineLabel, taskLabel, Label{"level", "full, partial or none"})
	r.Flow = m.gauge("shai_flow", noUnit, "An edge of the flow graph: a conduit that a task is expected to use; always 1.",
		pipelineLabel, taskLabel, conduitLabel, Label{"direction", "reads or writes"}).merged(largest)
	r.Workers = m.gauge("shai_workers", noUnit, "Workers of a task that serve users, with a session or without (Linux).",
		pipelineLabel, taskLabel, Label{"kind", "rolled_back: serves one session after the other; forked: serves one"})
	r.CPU = m.total("shai_cpu_seconds_total", seconds, "Processor time of a task, from the kernel. "+
		"That of the monitor itself is process_cpu_seconds_total.", pipelineLabel, taskLabel,
		Label{"part", "task: its processes; supervisor: the process between them and the monitor"})
}

func (m *Metrics) declareAnalysis(r *Readings) {
	r.AnalysisSuccess = m.gauge("shai_analysis_last_success_timestamp_seconds", seconds,
		"When the last successful analysis began.", pipelineLabel).merged(smallest)
	r.AnalysisFailing = m.gauge("shai_analysis_failing", noUnit,
		"1 if a run of the analysis failed and none of as large a scope has succeeded since, else 0. "+
			"Runs that were cancelled change nothing.",
		pipelineLabel).merged(largest)
	r.AnalysisDuration = m.gauge("shai_analysis_duration_seconds", seconds, "How long the last successful analysis took.",
		pipelineLabel).merged(largest)
	r.AnalysisAccesses = m.gauge("shai_analysis_accesses", noUnit,
		"Accesses that manifests expect, as the last successful analysis found them.", pipelineLabel,
		Label{"outcome", "granted: allowed ahead; refused; undecided: decided when they happen"})
	r.AnalysisInstances = m.gauge("shai_analysis_instances", noUnit, "Task instances of the last successful analysis.",
		pipelineLabel)
	r.AnalysisClasses = m.gauge("shai_analysis_classes", noUnit, "Classes of the last successful analysis.", pipelineLabel)
	r.AnalysisConduits = m.gauge("shai_analysis_conduits", noUnit, "Conduits of the last successful analysis.",
		pipelineLabel)
	r.CapabilitySets = m.gauge("shai_capability_sets", noUnit, "Capability sets in force.", pipelineLabel,
		Label{"state", "current; stale: live sessions hold it, and facts or bundle have changed since"})
	r.CapabilitySetsStale = m.gauge("shai_capability_sets_stale_seconds", seconds,
		"For how long the oldest stale capability set has been stale; 0 if there is none.", pipelineLabel).merged(largest)
}

func (m *Metrics) declareAudit(r *Readings) {
	r.AuditRecords = m.total("shai_audit_records_total", noUnit, "Records that were added to the audit log.",
		Label{"kind", "kind of the record"})
	r.AuditBacklog = m.gauge("shai_audit_backlog_records", noUnit,
		"Records that the audit log has accepted and that are not in stable storage.")
	r.AuditSize = m.gauge("shai_audit_size_bytes", inBytes, "Size of the audit log.")
	r.AuditRefusing = m.gauge("shai_audit_refusing", noUnit,
		"1 while accesses that need an audit record are refused, since it cannot be written.")
	r.AuditOmitted = m.total("shai_audit_omitted_total", noUnit,
		"Denials that the audit log counts in summaries, and does not record one by one.")
	r.AuditVerified = m.gauge("shai_audit_verified", noUnit,
		"1 if the last verification of the audit log's chain found no fault, 0 if it found one or could not read it.")
	r.AuditLastVerified = m.gauge("shai_audit_last_verified_timestamp_seconds", seconds,
		"When the last verification of the audit log's chain ended.")
}

// ReadFrom adds a function that writes readings on a sheet. It must not wait for anything that
// lasts, nor take a lock for which decisions wait.
func (m *Metrics) ReadFrom(source func(*Sheet)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources = append(m.sources, source)
}

// Sheet takes the readings of one moment.
type Sheet struct {
	metrics *Metrics
	values  map[*Reading]map[[4]string]float64
}

// Set writes a reading of the monitor.
func (s *Sheet) Set(r *Reading, value float64, texts ...string) {
	s.set(s.metrics.monitor, r, value, texts)
}

// Set writes a reading of the pipeline, whose name is not among the texts of the labels.
func (p *Pipeline) Set(sheet *Sheet, r *Reading, value float64, texts ...string) {
	sheet.set(p.scope, r, value, append([]string{p.scope.pipeline}, texts...))
}

func (s *Sheet) set(in *scope, r *Reading, value float64, texts []string) {
	var key [4]string
	for i, text := range texts {
		if _, bounded := limits[r.labels[i]]; bounded {
			key[i] = in.label(&s.metrics.scopes, Label{Name: r.labels[i]}, text)
		} else {
			key[i] = safe(text)
		}
	}
	known := s.values[r]
	if known == nil {
		known = map[[4]string]float64{}
		s.values[r] = known
	}
	if before, twice := known[key]; twice {
		value = r.merge(before, value)
	}
	known[key] = value
}

// read fills a sheet.
func (m *Metrics) read() *Sheet {
	sheet := &Sheet{metrics: m, values: map[*Reading]map[[4]string]float64{}}
	for _, s := range m.scopes.open() {
		sheet.set(s, m.sessionsActive, float64(s.active.Load()), []string{s.pipeline})
	}
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	for _, source := range sources {
		source(sheet)
	}
	return sheet
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, counter := range m.counters {
		to <- counter.description
	}
	for _, reading := range m.readings {
		to <- reading.description
	}
	m.latency.vector.Describe(to)
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range append(m.scopes.open(), m.monitor) {
		for _, counter := range m.counters {
			counter.collect(s, to)
		}
	}
	for r, values := range m.read().values {
		for key, value := range values {
			to <- prometheus.MustNewConstMetric(r.description, r.kind, value, key[:len(r.labels)]...)
		}
	}
	m.latency.collect(to)
}

// Gather implements [prometheus.Gatherer].
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }
