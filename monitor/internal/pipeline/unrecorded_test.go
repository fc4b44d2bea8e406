// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// diaryTried has policy diary in mode Audit.
var diaryTried = strings.Replace(pipelinetest.Bare, "{name: diary}\nspec:\n",
	"{name: diary}\nspec:\n  mode: Audit\n", 1)

// recordsNothing makes the audit log refuse every record.
func (f *fixture) recordsNothing() {
	f.t.Helper()
	f.must(f.services.Audit.Close())
	f.t.Cleanup(func() { // before the fixture closes it
		var err error
		f.services.Audit, err = audit.Open(audit.Options{Directory: f.t.TempDir()})
		f.must(err)
	})
}

// conduit returns a conduit as decisions know it.
func (f *fixture) conduit(name string) policy.Conduit {
	f.t.Helper()
	found, known := f.services.conduitNamed(name)
	if !known {
		f.t.Fatalf("no conduit is called %s", name)
	}
	found.Name = name
	return found
}

// What cannot be recorded is refused whatever the modes are: it is counted as a refusal and a denial,
// and not as what a mode allows.
func TestWhatIsUnrecordedIsCountedAsRefused(t *testing.T) {
	p := bare(t)
	p.apply(diaryTried)
	p.analyze()
	bob := p.setOf("worker(bob, de)").subject
	tainted := bob
	tainted.Taint = p.conduit("/diary/alice/1.txt").Label()
	p.recordsNothing()
	for name, allowed := range map[string]bool{
		"a policy allows it": p.decide(nil, actor{Subject: bob, mode: wire.ModeShai}, policy.Read,
			p.conduit("/open/1.txt")).Allowed,
		"mode audit allows it": p.decide(nil, actor{Subject: bob, mode: wire.ModeAudit}, policy.Read,
			p.conduit("/dropbox/1.txt")).Allowed,
		"a policy in mode Audit does not forbid it": p.decide(nil, actor{Subject: tainted, mode: wire.ModeShai}, policy.Write,
			p.conduit("/open/1.txt")).Allowed,
	} {
		if allowed {
			t.Errorf("%s: it is allowed without a record", name)
		}
	}
	p.expectMeasured("afterwards", map[string]float64{
		"shai_denials_total  unrecorded worker":      3,
		"shai_refusals_total read":                   2,
		"shai_refusals_total write":                  1,
		"shai_decisions_total false":                 3,
		"shai_would_deny_total audit dropbox policy": 0,
		"shai_would_deny_total Audit diary taint":    0,
	})
}

// A task does not start if what a policy in mode Audit forbids cannot be recorded. That is the reason
// which is counted.
func TestADirectoryIsNotGivenUnrecorded(t *testing.T) {
	p := bare(t)
	p.apply(strings.NewReplacer("  taint: {name: open}\n  reads: [documents]", "  taint: {name: open}\n  reads: [kept]\n  writes: [kept]",
		"    - name: web\n", "    - name: kept\n      kind: file\n      directory: true\n"+
			"      paths: [{path: /kept/**, policy: {name: kept}}]\n    - name: web\n").Replace(pipelinetest.Bare) + `
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: kept}
spec: {mode: Audit, text: "read :- true. update :- sKeyIs(\"carol\")."}
`)
	a := p.tasks["collector"].starts()
	if _, err := a.task.perimeter(true, a); err != nil {
		t.Fatal(err)
	}
	p.recordsNothing()
	if _, err := a.task.perimeter(true, a); err == nil {
		t.Error("the task gets the directory without a record")
	}
	p.expectMeasured("afterwards", map[string]float64{
		"shai_denials_total  unrecorded collector": 1,
		"shai_denials_total  limit collector":      0,
		"shai_refusals_total write":                1,
		"shai_would_deny_total Audit kept policy":  1,
	})
}

// A login that is refused is a refusal and a denial, whoever has refused it, and so is one that cannot be
// recorded.
func TestRefusedLoginsAreCounted(t *testing.T) {
	p := probe(t, SessionLimits{})
	expect := func(when string, logins, unrecorded float64) {
		t.Helper()
		p.expectMeasured(when, map[string]float64{
			"shai_denials_total  login worker":      logins,
			"shai_denials_total  unrecorded worker": unrecorded,
			"shai_refusals_total authenticate":      logins + unrecorded,
			"shai_session_bindings_total refused":   logins + unrecorded,
		})
	}
	p.wireSession(t).authenticate("mallory")
	expect("by the monitor", 1, 0)
	v, _ := superviseBare(t, p)
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventRefused, Principal: "mallory", Peer: peerInGermany, Reason: "the signature is wrong"}}})
	expect("by a supervisor", 2, 0)
	s := p.wireSession(t)
	p.recordsNothing()
	s.authenticate("alice")
	expect("without a record", 2, 1)
}
