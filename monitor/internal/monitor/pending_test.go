// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// resultOf is the result in force of pipeline "bare", nil if there is none.
func resultOf(m *Monitor) *analysis.Result {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if known := m.analyses["bare"]; known != nil {
		return known.result
	}
	return nil
}

// equalsAFullRun reports whether a result is that of a full run at the time of its last step.
func equalsAFullRun(t *testing.T, m *Monitor, got *analysis.Result) bool {
	t.Helper()
	want, err := analysis.Run(t.Context(), m.pipelines["bare"].Plan(), m.state(), analysis.Options{Now: got.Analyzed})
	if err != nil {
		t.Fatal(err)
	}
	return slices.EqualFunc(got.Instances(), want.Instances(), func(a, b *analysis.Capabilities) bool {
		return a.Instance.Name() == b.Instance.Name() && slices.Equal(a.Reads, b.Reads) &&
			slices.Equal(a.Writes, b.Writes) && slices.Equal(a.Others, b.Others)
	})
}

// A change that gives an access to many is answered before all of them have it: the monitor
// decides on it meanwhile. One that takes it is answered when nobody has it.
func TestChangesThatConcernMany(t *testing.T) {
	const users = 3 * decidedWithin
	m, _ := bareMonitor(t)
	applyBare(t, m, strings.Replace(pipelinetest.Bare, "timeIs(T), lt(T, 2100-01-01T00:00:00Z).",
		`\"offers\" says for-all(\"yes\").`, 1))
	var homes []api.Fact
	for i := range users {
		homes = append(homes, bareFact("population", "home", fmt.Sprintf("user%d", i), "de"))
	}
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: homes}); err != nil {
		t.Fatal(err)
	}
	analyzeBare(t, m)
	offer := classOf(t, m, "/offer/1.txt")
	holders := func() (count int) {
		for _, one := range resultOf(m).Instances() {
			if slices.Contains(one.Reads, offer) {
				count++
			}
		}
		return count
	}
	before := holders() // the collector's taint is for nobody
	forAll := []api.Fact{bareFact("offers", "for-all", "yes")}
	for range 3 {
		done, err := m.ChangeFacts(t.Context(), api.FactChange{Add: forAll})
		if err != nil || done.Instances == 0 || done.Instances > decidedWithin+1 {
			t.Fatalf("of %d instances %d were decided on before the answer, %v", users, done.Instances, err)
		}
		waiting.Until(t, "everybody holds the offer", func() bool { return !resultOf(m).Pending() })
		if got := holders(); got != before+users+2 || !equalsAFullRun(t, m, resultOf(m)) {
			t.Fatalf("%d instances hold the offer", got)
		}
		if _, err := m.ChangeFacts(t.Context(), api.FactChange{Remove: forAll}); err != nil || holders() != before {
			t.Fatalf("%d instances hold the offer that was withdrawn, %v", holders(), err)
		}
	}
	// Withdrawn while the monitor still finds out who gets it.
	for range 5 {
		if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: forAll}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.ChangeFacts(t.Context(), api.FactChange{Remove: forAll}); err != nil || holders() != before {
			t.Fatalf("%d instances hold the offer that was withdrawn, %v", holders(), err)
		}
	}
	waiting.Until(t, "nothing is to be found", func() bool { return !resultOf(m).Pending() })
	if holders() != before || !equalsAFullRun(t, m, resultOf(m)) {
		t.Errorf("%d instances hold the offer that was withdrawn", holders())
	}
}

// An access that a policy gives from some time on comes into the capability sets then.
func TestWhatTimeGivesComesIntoTheCapabilitySets(t *testing.T) {
	m, _ := bareMonitor(t)
	soon := time.Now().Add(500 * time.Millisecond).UTC()
	applyBare(t, m, strings.Replace(pipelinetest.Bare, "lt(T, 2100-01-01T00:00:00Z)",
		"ge(T, "+soon.Format(time.RFC3339Nano)+")", 1))
	analyzeBare(t, m)
	backend := superviseBare(t, m)
	offer := classOf(t, m, "/offer/1.txt")
	if held := holds(t, backend, "worker(alice, de)", offer); held && time.Now().Before(soon) {
		t.Error("the offer is in the capability set before its time")
	}
	waiting.Until(t, "the offer is in the capability set", func() bool { return holds(t, backend, "worker(alice, de)", offer) })
	if time.Now().Before(soon) {
		t.Error("the offer was in the capability set before its time")
	}
}

// A monitor that is killed after a change of facts and before it has stored the analysis starts
// with the stored one of before the change, does not use it, and makes another one.
func TestKilledBeforeTheAnalysisIsStored(t *testing.T) {
	options := bareOptions(t)
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	applyBare(t, m, pipelinetest.Bare)
	analyzeBare(t, m)
	stored, err := os.ReadFile(m.analysisPath("bare"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ChangeFacts(t.Context(),
		api.FactChange{Remove: []api.Fact{bareFact("friends/alice", "friend", "bob")}}); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(m.analysisPath("bare")); err != nil || !bytes.Equal(now, stored) {
		t.Fatalf("a change of facts waits until the analysis is stored, %v", err)
	}
	path := m.analysisPath("bare")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, stored) {
		t.Fatalf("the end of the monitor does not store the analysis, %v", err)
	}
	for _, test := range []struct {
		name    string
		content []byte
	}{
		{"the end of the monitor stores it", nil}, {"it was killed", stored},
		{"while it was storing", stored[:len(stored)/2]},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.content != nil {
				if err := os.WriteFile(path, test.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			waiting.Until(t, "the pipeline is analysed", func() bool { return resultOf(m) != nil })
			m.changing.Lock()
			defer m.changing.Unlock()
			if got := resultOf(m); !got.Current(m.state()) || !equalsAFullRun(t, m, got) {
				t.Error("the analysis is not that of the state")
			}
		})
	}
}
