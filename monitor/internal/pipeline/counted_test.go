// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// measured are the values of the pipeline's metrics by name and the values of other labels, in
// the order of the labels' names.
func (f *fixture) measured() map[string]float64 {
	f.t.Helper()
	families, err := f.services.Metrics.Gather()
	f.must(err)
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			words := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				if label.GetName() != "pipeline" {
					words = append(words, label.GetValue())
				}
			}
			found[strings.Join(words, " ")] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return found
}

func (f *fixture) expectMeasured(when string, want map[string]float64) {
	f.t.Helper()
	found := f.measured()
	for name, value := range want {
		if found[name] != value {
			f.t.Errorf("%s: %s is %v, want %v", when, name, found[name], value)
		}
	}
}

// busy is a task's program that has used some time.
type busy struct {
	*pipelinetest.Task
	used sandbox.CPU
}

func (b busy) CPU() sandbox.CPU { return b.used }

// What a supervisor says it has opened is counted once, over its whole life, and so are workers
// while they live; another start begins anew. The time of all starts is one sum.
func TestWhatSupervisorsCount(t *testing.T) {
	p := bare(t)
	p.analyze()
	p.services.Metrics.ReadFrom(p.Read)
	v, _ := superviseBare(t, p)
	task := p.tasks["worker"]
	first := busy{pipelinetest.NewTask("worker", 0), sandbox.CPU{Task: 2 * time.Second, Supervisor: time.Second}}
	task.seen.begin(first, v)
	v.Receive(supervision.Counts{Idle: 0, RolledBack: 2, Forked: 1, Opens: 5})
	v.Receive(supervision.Counts{Idle: 0, RolledBack: 3, Opens: 7})
	p.expectMeasured("of one supervisor", map[string]float64{
		"shai_opens_total true supervisor": 7, "shai_decisions_total true": 7,
		"shai_workers rolled_back worker": 3, "shai_workers forked worker": 0,
		"shai_cpu_seconds_total task worker": 2, "shai_cpu_seconds_total supervisor worker": 1,
		"shai_task_state Stopped worker": 1,
	})
	task.seen.end()
	if _, there := p.measured()["shai_workers rolled_back worker"]; there {
		t.Error("workers of a task that has ended are counted")
	}
	next := newSupervised(task)
	task.seen.begin(busy{pipelinetest.NewTask("worker", 0), sandbox.CPU{Task: time.Second}}, next)
	next.Receive(supervision.Counts{RolledBack: 1, Opens: 2})
	p.expectMeasured("of the next one, too", map[string]float64{
		"shai_opens_total true supervisor": 9, "shai_workers rolled_back worker": 1,
		"shai_cpu_seconds_total task worker": 3, "shai_cpu_seconds_total supervisor worker": 1,
	})
}

// Denials, and what would be one, say which policy was not met, and whether the conduit's or that of
// what was read.
func TestReasonsOfDenials(t *testing.T) {
	p := bare(t)
	p.analyze()
	alice := actor{Subject: p.setOf("worker(alice, de)").subject, mode: wire.ModeShai}
	bob := actor{Subject: p.setOf("worker(bob, de)").subject, mode: wire.ModeShai}
	p.decide(nil, bob, policy.Read, p.conduit("/dropbox/1.txt"))
	p.decide(nil, alice, policy.Write, p.conduit("/open/1.txt"))
	p.decide(nil, alice, policy.Read, policy.Conduit{Name: "/nowhere"})
	p.decide(nil, actor{Subject: bob.Subject, mode: wire.ModeAudit}, policy.Read, p.conduit("/dropbox/1.txt"))
	p.decide(nil, actor{Subject: alice.Subject, mode: wire.ModeAudit}, policy.Write, p.conduit("/open/1.txt"))
	p.Refused(sandbox.RefusedCall{Task: pipelinetest.NewTask("worker", 0), Call: "ptrace", Errno: 1})
	p.Refused(sandbox.RefusedCall{Task: pipelinetest.NewTask("worker", 0), Call: "openat", Errno: unix.EMFILE,
		Unavailable: true})
	p.expectMeasured("afterwards", map[string]float64{
		"shai_denials_total  unavailable worker":             1,
		"shai_denials_total dropbox policy worker":           1,
		"shai_denials_total user taint worker":               1,
		"shai_denials_total  no_policy worker":               1,
		"shai_denials_total  system_call worker":             1,
		"shai_refusals_total read":                           3,
		"shai_would_deny_total audit dropbox policy":         1,
		"shai_would_deny_total audit user taint":             1,
		"shai_refusals_total write":                          2,
		"shai_refusals_total system call":                    2,
		"shai_decisions_total false":                         3,
		"shai_decisions_total true":                          2,
		"shai_conduit_decisions_total false documents read":  1,
		"shai_conduit_decisions_total true documents read":   1,
		"shai_conduit_decisions_total false documents write": 1,
		"shai_conduit_decisions_total true documents write":  1,
		"shai_conduit_decisions_total false  read":           1,
	})
}

// An access that several policies in mode Audit forbid counts once for each of them, however many users
// a policy protects the data of, and however the taint is tracked.
func TestEachPolicyCountsAnAccessOnce(t *testing.T) {
	tried := strings.NewReplacer("{name: diary}\nspec:\n", "{name: diary}\nspec:\n  mode: Audit\n",
		"spec: {text: \"read :- sKeyIs", "spec: {mode: Audit, text: \"read :- sKeyIs").Replace(pipelinetest.Bare)
	read := []string{"/diary/alice/1.txt", "/diary/bob/1.txt", "/dropbox/1.txt"}
	for _, mode := range append([]wire.Mode{wire.ModeShai}, dynamicModes...) {
		p := bare(t)
		p.apply(tried)
		allowed := false
		if mode.IsDynamic() {
			s := p.begins(mode, "carol", unchanged)
			for _, name := range read {
				p.reads(s, name)
			}
			allowed = s.sends().Errno == 0
		} else {
			p.analyze()
			who := actor{Subject: p.setOf("worker(alice, de)").subject, mode: mode}
			who.Taint = policy.Label{}
			for _, name := range read {
				who.Taint = who.Taint.Join(p.conduit(name).Label())
			}
			allowed = p.decide(nil, who, policy.Write, p.conduit("/open/1.txt")).Allowed
		}
		if !allowed {
			t.Errorf("%v: it is refused", mode)
		}
		p.expectMeasured(mode.String(), map[string]float64{
			"shai_would_deny_total Audit diary taint": 1, "shai_would_deny_total Audit dropbox taint": 1,
		})
	}
}

// In mode dynamic a read is refused for what is open for writing, and never by the policy of what is read.
// The reason is the same if the policy is in mode Audit.
func TestAReadIsRefusedForWhatIsOpenForWriting(t *testing.T) {
	for text, series := range map[string]string{
		pipelinetest.Bare: "shai_denials_total diary taint collector", diaryTried: "shai_would_deny_total Audit diary taint",
	} {
		p, self := bare(t), os.Getpid()
		p.apply(text)
		p.tasks["collector"].starts()
		p.must(p.SwitchTo(wire.ModeDynamic))
		open := func(name string, flags int) sandbox.Verdict {
			return p.opens(pipelinetest.NewTask("collector", self), self, name, flags)
		}
		if verdict := open("/open/1.txt", unix.O_WRONLY); verdict.Errno != 0 {
			t.Fatal(verdict.Reason)
		}
		verdict := open("/diary/alice/1.txt", unix.O_RDONLY)
		if refused := verdict.Errno != 0; refused != (text == pipelinetest.Bare) {
			t.Errorf("refused: %v (%s)", refused, verdict.Reason)
		}
		p.expectMeasured("afterwards", map[string]float64{
			series: 1, strings.Replace(series, "taint", "policy", 1): 0,
		})
	}
}
