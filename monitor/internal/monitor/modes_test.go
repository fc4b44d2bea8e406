// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
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

// countOf is a counter's value; its labels' values are those given, in any order.
func countOf(t *testing.T, m *Monitor, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.metrics.registry.Gather()
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
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
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
		{"audit, decided at run time", "Audit", wire.ModeDynamic, "/diary/alice/1.txt", true, true},
		{"another policy is enforced", "Audit", wire.ModeShai, "/dropbox/1.txt", false, false},
		{"nothing forbids it", "Audit", wire.ModeShai, "/open/1.txt", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			applyBare(t, m, inMode(t, bareManifest, "diary", test.mode))
			p := m.pipelines["bare"]
			holds, err := p.capabilities(p.tasks["worker"], parametersOf("carol", "de"))
			if err != nil {
				t.Fatal(err)
			}
			conduit, _ := m.conduitNamed(test.document)
			if got := p.decide(holds.subject, policy.Read, conduit, test.pipeline); got.Allowed != test.allowed {
				t.Errorf("allowed %v (%s), want %v", got.Allowed, got.Reason, test.allowed)
			}
			count := countOf(t, m, "shai_would_deny_total", "bare", "diary", test.mode)
			if (count == 1) != test.would {
				t.Errorf("%v accesses would be denied", count)
			}
			if got := m.metrics.outcomes.count[outcomeKey{"bare", test.allowed}]; got != 1 {
				t.Errorf("%d decisions are counted", got)
			}
			said := false
			if err := m.audit.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			err = m.audit.Query(t.Context(), audit.Query{Kinds: []audit.Kind{audit.Denial}},
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

// An access that a policy in mode Audit or Warn forbids is in no capability set, and the
// analysis says that the refusal is only recorded.
func TestRelaxedFlowsTakeTheSlowPath(t *testing.T) {
	m, _ := bareMonitor(t)
	// bob is alice's friend no more; both are expected.
	applyBare(t, m, inMode(t, strings.Replace(bareManifest, "tuples: [[bob]]", "tuples: [[carol]]", 1), "diary",
		"Audit"))
	report, err := m.Analyze(context.Background(), api.AnalyzeRequest{}, func(api.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if holds := m.pipelines["bare"].sets["worker(bob, de)"]; holds == nil ||
		holds.holdsClass(classOf(t, m, "/diary/alice/1.txt")) {
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
	s.document("/inbox/alice/1.txt")
	s.document("/inbox/bob/1.txt")
	s.open()
	s.apply()
	if _, err := s.monitor.StartTask(t.Context(), "minimal", "count"); err != nil {
		t.Fatal(err)
	}
	status, err := s.monitor.WaitTask(t.Context(), "minimal", "count")
	if err != nil || status.State != stateSucceeded {
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
	allowed := func() uint64 { return s.monitor.metrics.counters()["shai_decisions_total"] }
	before := allowed()
	u := s.login("alice", "127.0.1.1")
	for range 5 {
		u.must("read " + (&player{stack: s}).numbered("/left/1.txt"))
	}
	_, _ = u.say("quit")
	waiting.Until(t, "the 5 natively opened documents are counted", func() bool { return allowed()-before == 5 })
}
