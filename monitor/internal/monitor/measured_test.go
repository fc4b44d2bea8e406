// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// measured are the values of all metrics by name and labels, such as "shai_ready" and
// "shai_opens_total true monitor probe": the labels' values are in the order of their names.
func (s *stack) measured() map[string]float64 {
	s.t.Helper()
	s.settle()
	families, err := s.monitor.metrics.Gather()
	s.must(err)
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := metric.GetLabel()
			slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			name := family.GetName()
			for _, label := range labels {
				name += " " + label.GetValue()
			}
			found[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// expectMeasured compares some metrics.
func (s *stack) expectMeasured(when string, want map[string]float64) {
	s.t.Helper()
	found := s.measured()
	for name, value := range want {
		if got, there := found[name]; !there || got != value {
			s.t.Errorf("%s: %s is %v (there: %v), want %v", when, name, got, there, value)
		}
	}
}

// Whatever happens in a pipeline is counted, each thing once.
func TestWhatUsersDoIsWhatIsCounted(t *testing.T) {
	s := newLearningStack(t, "immediate")
	s.options.NoLearning = true
	s.document("/albums/alice/1.txt")
	s.startLearning()
	begun := s.measured()
	probes := begun["shai_opens_total false monitor probe"] // of the programs, when they started
	if count, begins := begun["shai_denials_total probe friends policy worker"]; !begins || count != 0 {
		t.Error("the first denial is no increase")
	}
	alice := s.login("alice", "127.0.1.1")
	for range 3 {
		alice.reading("/albums/bob/1.txt") // decided by the monitor each time
	}
	bob := s.login("bob", "127.0.1.3")
	s.expect("of others", bob.reading("/albums/alice/1.txt"), "error EACCES withheld 1, asked 1")
	if answer := alice.must("count 7"); answer != "counted 7" {
		t.Fatal(answer)
	}
	s.expectMeasured("while they are there", map[string]float64{
		"shai_ready":                                                 1,
		"shai_sessions_active probe":                                 2,
		"shai_session_bindings_total probe analyzed":                 2,
		"shai_opens_total true monitor probe":                        3,
		"shai_opens_total false monitor probe":                       probes + 1,
		"shai_conduit_decisions_total true albums read probe":        3,
		"shai_conduit_decisions_total false albums read probe":       1,
		"shai_decisions_total false probe":                           1,
		"shai_refusals_total read probe":                             1,
		"shai_denials_total probe friends policy worker":             1,
		"shai_interceptions_total open probe":                        4,
		"shai_decision_seconds open":                                 4,
		"shai_task_state probe Running worker":                       1,
		"shai_pipeline_mode shai probe":                              1,
		"shai_analyses_total probe succeeded":                        1,
		"shai_fact_changes_total succeeded":                          1,
		"shai_facts":                                                 float64(s.monitor.state().Facts()),
		"shai_capability_sets_stale_seconds probe":                   0,
		"shai_capability_sets probe stale":                           0,
		"shai_bundle_info " + s.monitor.state().BundleHash() + "  1": 1,
	})
	if _, err := alice.say("quit"); err == nil {
		t.Error("the session goes on")
	}
	if answer, err := s.connect("127.0.1.9"); err != nil {
		t.Fatal(err)
	} else if said, err := answer.authenticate("alice", "bob"); err != nil || strings.HasPrefix(said, "bound") {
		t.Fatalf("a login with another's key: %q, %v", said, err)
	}
	waiting.Until(t, "alice's session is over", func() bool { return s.counted("shai_sessions_total") == 1 })
	s.expectMeasured("afterwards", map[string]float64{
		"shai_native_opens_total probe":             7,
		"shai_decisions_total true probe":           10,
		"shai_sessions_total shai probe":            1,
		"shai_session_bindings_total probe refused": 1,
		"shai_denials_total probe  login worker":    1,
	})
}

// What the analysis, the audit log and the kernel say is read when somebody asks.
func TestReadingsAreThoseOfTheParts(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	report, err := s.monitor.LatestAnalysis(t.Context(), "probe")
	s.must(err)
	s.login("alice", "127.0.1.1")
	stored := s.records()
	found := s.measured()
	for name, want := range map[string]float64{
		"shai_analysis_instances probe":          float64(report.Instances),
		"shai_analysis_classes probe":            float64(report.Classes),
		"shai_analysis_conduits probe":           float64(report.Conduits),
		"shai_analysis_accesses granted probe":   float64(report.Granted),
		"shai_analysis_accesses refused probe":   float64(report.Refused),
		"shai_analysis_accesses undecided probe": float64(report.Undecided),
		"shai_analysis_duration_seconds probe":   float64(report.DurationMicroseconds) / 1e6,
		"shai_start_time_seconds":                timestamp(s.monitor.started),
		"shai_audit_backlog_records":             0,
		"shai_audit_records_total analysis":      1,
		"shai_audit_records_total binding":       1,
		"shai_audit_refusing":                    0,
		"shai_capability_sets probe current":     2, // of the two users
	} {
		if found[name] != want {
			t.Errorf("%s is %v, want %v", name, found[name], want)
		}
	}
	var total float64
	for name, value := range found {
		if strings.HasPrefix(name, "shai_audit_records_total ") {
			total += value
		}
	}
	if total == 0 || total > float64(stored[len(stored)-1].Sequence) {
		t.Errorf("%v records are counted, and the last one is %d", total, stored[len(stored)-1].Sequence)
	}
	files, err := filepath.Glob(filepath.Join(s.auditDirectory(), "audit-*.jsonl"))
	s.must(err)
	var size int64
	for _, file := range files {
		about, err := os.Stat(file)
		s.must(err)
		size += about.Size()
	}
	if found["shai_audit_size_bytes"] != float64(size) {
		t.Errorf("the log has %v bytes, and its files %d", found["shai_audit_size_bytes"], size)
	}
	if at := found["shai_analysis_last_success_timestamp_seconds probe"]; at < float64(s.monitor.started.Unix()) {
		t.Errorf("the analysis was at %v", at)
	}
}

// With immediate revocation a change of facts is timed until the sessions that it ends are gone;
// with lazy revocation their sets are stale for as long as the sessions last.
func TestRevocationIsTimedAndStaleSetsAreSeen(t *testing.T) {
	for revocation, want := range map[string]struct{ revocations, stale float64 }{
		"immediate": {revocations: 1}, "lazy": {stale: 1},
	} {
		t.Run(revocation, func(t *testing.T) {
			s := newLearningStack(t, revocation)
			s.startLearning()
			alice := s.login("alice", "127.0.1.1")
			s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("friends/bob", "friend", "carol")}})
			s.expectMeasured("nobody has lost anything", map[string]float64{
				"shai_revocation_seconds": 0, "shai_capability_sets probe stale": 0,
			})
			s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}})
			s.expectMeasured("alice has", map[string]float64{
				"shai_revocation_seconds": want.revocations, "shai_capability_sets probe stale": want.stale,
				"shai_capability_sets probe current": 2, "shai_fact_change_seconds": 3,
			})
			if age := s.measured()["shai_capability_sets_stale_seconds probe"]; (age > 0) != (want.stale > 0) {
				t.Errorf("stale for %v s", age)
			}
			alice.connection.Close()
			waiting.Until(t, "nothing is stale", func() bool {
				now := s.measured()
				return now["shai_capability_sets probe stale"] == 0 && now["shai_capability_sets_stale_seconds probe"] == 0
			})
		})
	}
}

// The chain of the audit log is verified in the background; an altered record is seen.
func TestAlteredAuditLogIsSeen(t *testing.T) {
	m := startedBare(t, bareOptions(t))
	defer m.Close()
	value := func(name string) float64 { return metricOf(t, m, name) }
	waiting.Until(t, "the log is verified", func() bool { return value("shai_audit_verified") == 1 })
	before := value("shai_audit_last_verified_timestamp_seconds")
	if before < float64(m.started.Unix()) {
		t.Errorf("it was verified at %v", before)
	}
	m.metrics.FactsChanged(true)
	applyBare(t, m, pipelinetest.Bare)
	if err := m.audit.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(m.options.State, auditFolder, "audit-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(text), `"kind":"bundle"`, `"kind":"binder"`, 1)
	if altered == string(text) {
		t.Fatal("there is no record to alter")
	}
	if err := os.WriteFile(files[0], []byte(altered), 0o600); err != nil {
		t.Fatal(err)
	}
	m.verifyAudit(t.Context(), m.audit)
	if value("shai_audit_verified") != 0 || value("shai_audit_last_verified_timestamp_seconds") <= before {
		t.Errorf("verified %v, at %v", value("shai_audit_verified"), value("shai_audit_last_verified_timestamp_seconds"))
	}
}

// A named pipe in the place of a file of the audit log does not hold the verification, and with it
// the monitor's end. The log counts as not verified.
func TestUnreadableAuditLogIsSeen(t *testing.T) {
	m := startedBare(t, bareOptions(t))
	defer m.Close()
	value := func(name string) float64 { return metricOf(t, m, name) }
	waiting.Until(t, "the log is verified", func() bool { return value("shai_audit_verified") == 1 })
	before := value("shai_audit_last_verified_timestamp_seconds")
	folder := filepath.Join(m.options.State, auditFolder)
	pipe := filepath.Join(folder, fmt.Sprintf("audit-%020d.jsonl", 1<<40))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	m.verifyAudit(t.Context(), m.audit)
	if value("shai_audit_verified") != 0 || value("shai_audit_last_verified_timestamp_seconds") != before {
		t.Errorf("verified %v, at %v", value("shai_audit_verified"), value("shai_audit_last_verified_timestamp_seconds"))
	}
	if err := errors.Join(os.Remove(pipe), os.Symlink("/dev/zero", pipe)); err != nil {
		t.Fatal(err)
	}
	m.verifyAudit(t.Context(), m.audit)
	if value("shai_audit_verified") != 0 {
		t.Error("a link in the place of a file is verified")
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	m.verifyAudit(t.Context(), m.audit)
	if value("shai_audit_verified") != 1 {
		t.Error("the log is not verified again")
	}
}

// The series of a pipeline that is removed go with it.
func TestRemovedPipelinesHaveNoSeries(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	s.login("alice", "127.0.1.1").connection.Close()
	if s.measured()["shai_session_bindings_total probe analyzed"] != 1 {
		t.Fatal("nothing is counted")
	}
	_, err := s.monitor.Apply(t.Context(), api.ApplyRequest{Prune: true})
	s.must(err)
	for name := range s.measured() {
		if slices.Contains(strings.Fields(name), "probe") {
			t.Errorf("%s is there still", name)
		}
	}
}

// Every metric that the table has is fed by a real pipeline: none is only declared.
func TestEveryMetricIsFed(t *testing.T) {
	s := newLearningStack(t, "immediate")
	s.document("/albums/alice/1.txt")
	s.startLearning()
	alice := s.login("alice", "127.0.1.1")
	alice.reading("/albums/bob/1.txt")
	s.expect("of others", s.login("bob", "127.0.1.3").reading("/albums/alice/1.txt"),
		"error EACCES withheld 1, asked 1")
	s.await(learnedMetric, 1)
	waiting.Until(t, "the log is verified", func() bool { return s.monitor.verified.last.Load() != nil })
	found := map[string]bool{}
	for name := range s.measured() {
		found[strings.Fields(name)[0]] = true
	}
	// What needs a mistake or a defect, or cannot happen to this pipeline.
	exceptions := map[string]string{
		"shai_native_opens_total":         "TestWhatUsersDoIsWhatIsCounted",
		"shai_sessions_total":             "TestWhatUsersDoIsWhatIsCounted",
		"shai_would_deny_total":           "TestPolicyModes",
		"shai_background_analyses_total":  "TestAnUnforeseenInstanceIsAnalysed",
		"shai_fact_source_failures_total": "TestFactsFromKeys",
		"shai_fact_source_age_seconds":    "TestFactsFromKeys",
		"shai_fact_source_failing":        "TestFactsFromKeys",
	}
	for _, row := range metrics.Table() {
		if runtime.GOOS == "freebsd" && strings.Contains(row.Meaning, "(Linux)") {
			continue
		}
		if other := exceptions[row.Name]; !found[row.Name] && other == "" {
			t.Errorf("%s has no value, and no other test feeds it", row.Name)
		} else if found[row.Name] && other != "" {
			t.Errorf("%s has a value here: it is no exception", row.Name)
		}
	}
}

// An exemplar names the record that the audit log has of the denial.
func TestExemplarsAreInTheAuditLog(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.document("/albums/alice/1.txt")
	s.startLearning()
	bob := s.login("bob", "127.0.1.3")
	s.expect("of others", bob.reading("/albums/alice/1.txt"), "error EACCES withheld 1, asked 1")
	var denied string
	for _, record := range s.records() {
		if record.Kind == audit.Denial && record.Conduit == "/albums/alice/1.txt" {
			denied = strconv.FormatUint(record.Sequence, 10)
		}
	}
	families, err := s.monitor.metrics.Gather()
	s.must(err)
	found := map[string]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetCounter().GetExemplar().GetLabel() {
				found[family.GetName()+" "+metric.GetLabel()[2].GetValue()] = label.GetValue()
			}
			for _, bucket := range metric.GetHistogram().GetBucket() {
				for _, label := range bucket.GetExemplar().GetLabel() {
					found[family.GetName()+" "+metric.GetLabel()[0].GetValue()] = label.GetValue()
				}
			}
		}
	}
	if denied == "" || found["shai_denials_total policy"] != denied || found["shai_decision_seconds open"] != denied {
		t.Errorf("record %q, exemplars %v", denied, found)
	}
	if found["shai_decision_seconds authenticate"] == "" {
		t.Error("the login has no exemplar")
	}
}
