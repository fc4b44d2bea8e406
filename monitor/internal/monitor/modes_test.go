// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// inMode is a manifest in which a policy has a mode; its spec is on one line, or its
// text follows.
func inMode(t *testing.T, manifest, name, mode string) string {
	t.Helper()
	head, rest, found := strings.Cut(manifest, "metadata: {name: "+name+"}\nspec:")
	if !found {
		t.Fatalf("the manifest has no policy %s", name)
	}
	if inline, ok := strings.CutPrefix(rest, " {text"); ok {
		return head + "metadata: {name: " + name + "}\nspec: {mode: " + mode + ", text" + inline
	}
	return head + "metadata: {name: " + name + "}\nspec:\n  mode: " + mode + rest
}

// countOf is a counter's value, -1 if it has none; its labels' values are those given, in any order.
func countOf(t *testing.T, m *Monitor, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			if slices.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(labels))) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func (s *stack) recordsThat(says string) []audit.Record {
	s.t.Helper()
	return slices.DeleteFunc(s.records(), func(r audit.Record) bool { return !strings.Contains(r.Reason, says) })
}

// An access that a policy in mode Audit or Warn forbids is allowed, recorded and counted.
// One that an enforced policy forbids is still denied. One that no policy forbids is not
// recorded.
func TestPolicyModes(t *testing.T) {
	for _, test := range []struct {
		name, mode string
		pipeline   wire.Mode
		document   string
		allowed    bool
		would      bool
	}{
		{"enforced", "Enforce", wire.ModeShai, "/diary/alice/1.txt", false, false},
		{"audit", "Audit", wire.ModeShai, "/diary/alice/1.txt", true, true},
		{"warn", "Warn", wire.ModeShai, "/diary/alice/1.txt", true, true},
		{"another policy is enforced", "Audit", wire.ModeShai, "/dropbox/1.txt", false, false},
		{"nothing forbids it", "Audit", wire.ModeShai, "/open/1.txt", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			applyBare(t, m, inMode(t, pipelinetest.Bare, "diary", test.mode))
			begun := countOf(t, m, "shai_would_deny_total", "bare", "diary", test.mode, "policy")
			if relaxed := test.mode != "Enforce"; (begun == 0) != relaxed {
				t.Errorf("the counter of what would be denied begins at %v", begun)
			}
			if got := carolOpens(t, m, test.document, test.pipeline); got != test.allowed {
				t.Errorf("allowed %v, want %v", got, test.allowed)
			}
			count := countOf(t, m, "shai_would_deny_total", "bare", "diary", test.mode, "policy")
			if (count == 1) != test.would {
				t.Errorf("%v accesses would be denied", count)
			}
			if got := countOf(t, m, "shai_decisions_total", "bare", strconv.FormatBool(test.allowed)); got != 1 {
				t.Errorf("%v decisions are counted", got)
			}
			said := false
			if err := m.audit.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := m.audit.Query(t.Context(), audit.Query{Kinds: []audit.Kind{audit.Denial}},
				func(r audit.Record) error {
					said = said || r.Allowed && strings.HasPrefix(r.Reason, "would be denied: ") &&
						strings.Contains(r.Reason, "policy diary in mode "+test.mode)
					return nil
				})
			if err != nil || said != test.would {
				t.Errorf("the audit log says so: %v (%v), want %v", said, err, test.would)
			}
			explained, err := m.Explain(t.Context(),
				api.Question{Principal: "carol", Region: "de", Conduit: test.document})
			if err != nil || explained.Allowed != test.allowed || (explained.WouldDeny != "") != test.would {
				t.Errorf("explain: allowed %v, would deny %q, %v", explained.Allowed, explained.WouldDeny, err)
			}
		})
	}
}

// What a pipeline in mode audit allows although a policy forbids it is counted from the first one on,
// whether the manifest or an operator has chosen the mode.
func TestAPipelineInModeAuditCountsWhatItWouldDeny(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, m *Monitor){
		"manifest": func(t *testing.T, m *Monitor) {
			t.Helper()
			applyBare(t, m, strings.Replace(pipelinetest.Bare, "  mode: shai\n", "  mode: audit\n", 1))
		},
		"switched": func(t *testing.T, m *Monitor) {
			t.Helper()
			if _, err := m.SetMode(t.Context(), "bare", "audit"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			count := func() float64 {
				return countOf(t, m, "shai_would_deny_total", "bare", "diary", "audit", "policy")
			}
			if count() != -1 {
				t.Error("a pipeline in another mode has the series")
			}
			begin(t, m)
			if got := count(); got != 0 {
				t.Fatalf("it begins at %v", got)
			}
			denied := countOf(t, m, "shai_denials_total", "bare", "worker", "diary", "policy")
			if !carolOpens(t, m, "/diary/alice/1.txt", wire.ModeAudit) || count() != 1 {
				t.Errorf("it is refused, or %v are counted", count())
			}
			if got := countOf(t, m, "shai_denials_total", "bare", "worker", "diary", "policy"); got != denied {
				t.Errorf("%v denials, before %v", got, denied)
			}
		})
	}
}

// carolOpens has carol, whom no analysis expects, log in and ask for a document. It reports
// whether she gets it.
func carolOpens(t *testing.T, m *Monitor, document string, mode wire.Mode) bool {
	t.Helper()
	supervisor := superviseBare(t, m).Supervisor()
	const session = 7
	event := func(event supervision.Event) {
		event.Session, event.Worker, event.Mode = session, 4711, mode
		event.Peer = netip.MustParseAddr("192.0.2.1").As16()
		supervisor.Sessions.Receive(supervision.Events{Events: []supervision.Event{event}})
	}
	event(supervision.Event{Kind: supervision.EventAccepted, Reason: "de"})
	supervisor.Sessions.Receive(supervision.AskBind{Session: session, Principal: "carol", Region: "de"})
	bound := awaitRecord[supervision.Bind](t, supervisor)
	if bound.Status != 0 {
		t.Fatalf("carol may not log in: %s", bound.Reason)
	}
	event(supervision.Event{Kind: supervision.EventBound, Principal: "carol", Instance: "worker(carol, de)",
		Reason: "mispredicted"})
	id, found := m.state().ID(document)
	if !found {
		t.Fatalf("no conduit is called %s", document)
	}
	request, err := wire.Encode(1, wire.Open{Conduits: []uint32{id}})
	if err != nil {
		t.Fatal(err)
	}
	supervisor.Sessions.Receive(supervision.AskRecord{Session: session, Record: request})
	_, answer, err := wire.Decode(awaitRecord[supervision.Relay](t, supervisor).Record, wire.TypeOpened)
	if err != nil {
		t.Fatal(err)
	}
	return answer.(wire.Opened).Status[0] == 0
}

// awaitRecord waits until a supervisor is told something of one type.
func awaitRecord[T supervision.Record](t *testing.T, supervisor *pipelinetest.Supervisor) (record T) {
	t.Helper()
	waiting.Until(t, fmt.Sprintf("the supervisor is told %T", record), func() (told bool) {
		for _, one := range supervisor.Told() {
			if one, is := one.(T); is {
				record, told = one, true
			}
		}
		return told
	})
	return record
}

// An access that a policy in mode Audit or Warn forbids is in no capability set, and the
// analysis says that the refusal is only recorded.
func TestRelaxedFlowsTakeTheSlowPath(t *testing.T) {
	m, _ := bareMonitor(t)
	// bob is alice's friend no more; both are expected.
	applyBare(t, m, inMode(t, strings.Replace(pipelinetest.Bare, "tuples: [[bob]]", "tuples: [[carol]]", 1), "diary",
		"Audit"))
	report, err := m.Analyze(context.Background(), api.AnalyzeRequest{}, func(api.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if holds(t, superviseBare(t, m), "worker(bob, de)", classOf(t, m, "/diary/alice/1.txt")) {
		t.Error("bob's capability set has alice's diary")
	}
	modes := map[string]string{}
	for _, accesses := range report.Accesses {
		for _, refused := range accesses.RefusedBecause {
			modes[refused.Instance+" "+refused.Conduit] = refused.Mode
		}
	}
	if modes["worker(bob, de) /diary/alice/1.txt"] != "Audit" || modes["worker(bob, de) /dropbox/1.txt"] != "" {
		t.Errorf("modes of refused accesses: %v", modes)
	}
}

// A task whose flows only a policy in mode Audit forbids starts, and the audit log says
// that it would not have.
func TestATaskStartsUnderAPolicyThatIsTriedOut(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skipf("the example's task is a program in Python: %v", err)
	}
	text, err := os.ReadFile("../../../crds/examples/minimal/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "reads: [inbox-alice]", "reads: [inbox-alice, inbox-bob]", 1)
	changed = strings.Replace(changed, "  name: owned\nspec:\n", "  name: owned\nspec:\n  mode: Audit\n", 1)
	s := newStack(t)
	s.manifests = map[string]string{"pipeline.yaml": changed}
	s.options.Runtimes["python"] = s.options.Runtimes["system"]
	s.document("/inbox/alice/1.txt")
	s.document("/inbox/bob/1.txt")
	s.open()
	s.apply()
	if _, err := s.monitor.StartTask(t.Context(), "minimal", "count"); err != nil {
		t.Fatal(err)
	}
	status, err := s.monitor.WaitTask(t.Context(), "minimal", "count")
	if err != nil || status.State != "Succeeded" {
		t.Fatalf("the task ended %+v, %v", status, err)
	}
	if len(s.recordsThat("would be denied: only bob may read it (owned, owner bob); alice is not bob [the taint does not keep")) == 0 {
		t.Error("the audit log does not say that the task would not start")
	}
}

// Documents that workers open natively count as decisions that were allowed, when the
// session ends.
func TestNativelyOpenedDocumentsAreCounted(t *testing.T) {
	s := beginPair(t)
	allowed := func() uint64 { return s.monitor.metrics.Counters()["shai_decisions_total"] }
	before := allowed()
	u := s.login("alice", "127.0.1.1")
	for range 5 {
		u.must("read " + (&player{stack: s}).numbered("/left/1.txt"))
	}
	_, _ = u.say("quit")
	waiting.Until(t, "the 5 natively opened documents are counted", func() bool { return allowed()-before == 5 })
}
