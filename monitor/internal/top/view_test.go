// SPDX-License-Identifier: BSD-2-Clause

package top_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/top"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// typed adds the types that a monitor's answer has.
func typed(metrics string) string {
	var text strings.Builder
	known := ""
	for line := range strings.Lines(metrics) {
		name, _, _ := strings.Cut(strings.ReplaceAll(line, " ", "{"), "{")
		if name != known && strings.HasSuffix(name, "_total") {
			text.WriteString("# TYPE " + name + " counter\n")
		} else if name != known && strings.TrimSpace(name) != "" {
			text.WriteString("# TYPE " + name + " gauge\n")
		}
		known = name
		text.WriteString(line)
	}
	return text.String() + "\n"
}

func sample(t *testing.T, after time.Duration, started time.Time, metrics string,
	pipelines ...api.PipelineStatus) top.Sample {
	t.Helper()
	metrics = typed(metrics)
	status := api.Status{Version: "test", Started: started, Ready: true, Pipelines: pipelines}
	status.Machine.Enforcement = "full"
	made, err := top.NewSample(began.Add(after), status, []byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func syse(sessions ...api.SessionStatus) api.PipelineStatus {
	return api.PipelineStatus{Name: "syse", Mode: "shai", SessionTotal: len(sessions), Sessions: sessions,
		Tasks: []api.TaskStatus{{Name: "worker", State: "Running", Enforcement: "full", Restarts: 1}}}
}

const first = `
shai_sessions_total{pipeline="syse",mode="shai"} 100
shai_sessions_total{pipeline="syse",mode="dynamic"} 10
shai_native_opens_total{pipeline="syse"} 1000
shai_opens_total{pipeline="syse",path="monitor",allowed="true"} 5
shai_denials_total{pipeline="syse",task="worker",policy="private",reason="read"} 1
shai_cpu_seconds_total{pipeline="syse",task="worker",part="task"} 1
shai_cpu_seconds_total{pipeline="syse",task="worker",part="supervisor"} 0.5
process_cpu_seconds_total 2
`

const second = `
shai_sessions_total{pipeline="syse",mode="shai"} 140
shai_sessions_total{pipeline="syse",mode="dynamic"} 10
shai_sessions_active{pipeline="syse"} 2
shai_native_opens_total{pipeline="syse"} 3000
shai_opens_total{pipeline="syse",path="monitor",allowed="true"} 9
shai_opens_total{pipeline="syse",path="monitor",allowed="false"} 2
shai_opens_total{pipeline="syse",path="supervisor",allowed="true"} 8
shai_denials_total{pipeline="syse",task="worker",policy="private",reason="read"} 4
shai_denials_total{pipeline="syse",task="worker",policy="",reason="system call"} 7
shai_would_deny_total{pipeline="syse",policy="private",mode="Audit",reason="policy"} 2
shai_analysis_accesses{pipeline="syse",outcome="granted"} 30
shai_analysis_accesses{pipeline="syse",outcome="refused"} 10
shai_analysis_last_success_timestamp_seconds{pipeline="syse"} 1772366374
shai_workers{pipeline="syse",task="worker",kind="rolled_back"} 6
shai_workers{pipeline="syse",task="worker",kind="forked"} 1
shai_cpu_seconds_total{pipeline="syse",task="worker",part="task"} 3
shai_cpu_seconds_total{pipeline="syse",task="worker",part="supervisor"} 0.506
process_cpu_seconds_total 2.002
`

func TestWhatHappenedBetweenTwoSamples(t *testing.T) {
	older := api.SessionStatus{Principal: "alice", Since: began}
	newer := api.SessionStatus{Principal: "bob", Since: began.Add(time.Second)}
	got := top.Compare(sample(t, 0, began, first, syse()), sample(t, 4*time.Second, began, second, syse(older, newer)))
	each, coverage, age := 200.0, 0.75, 30.0
	want := top.View{
		Time: began.Add(4 * time.Second), Seconds: 4, Version: "test", Ready: true, Enforcement: "full",
		MonitorCPU: 0.0005, EnforcementMicrosecondsPerSession: &each,
		Pipelines: []top.Pipeline{{
			Name: "syse", Mode: "shai", Sessions: 2, SessionsPerSecond: 10,
			Opens:   top.Opens{Native: 500, Supervisor: 2, Monitor: 1.5},
			Denials: 2.5, WouldDeny: 0.5, Coverage: &coverage, AnalysisAgeSeconds: &age,
			Tasks: []top.Task{{Name: "worker", State: "Running", Enforcement: "full", Restarts: 1, CPU: 0.5,
				SupervisorCPU: 0.0015, Workers: 7}},
		}},
		Denials: []top.Denial{
			{Pipeline: "syse", Task: "worker", Reason: "system call", Count: 7},
			{Pipeline: "syse", Task: "worker", Policy: "private", Reason: "read", Count: 3},
		},
		Sessions: []api.SessionStatus{newer, older},
	}
	close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, close); diff != "" {
		t.Error(diff)
	}
}

func TestCountersThatBeganAnew(t *testing.T) {
	const few = `shai_sessions_total{pipeline="syse",mode="shai"} 8`
	const more = `shai_sessions_total{pipeline="syse",mode="shai"} 130`
	for _, test := range []struct {
		name    string
		started time.Time
		metrics string
		want    float64
	}{
		{"the counter is smaller", began, few, 8},
		{"the monitor started again, and counted more than before", began.Add(time.Second), more, 130},
		{"it goes on", began, more, 30},
		{"the pipeline is gone", began, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := sample(t, 0, began, `shai_sessions_total{pipeline="syse",mode="shai"} 100`, syse())
			view := top.Compare(before, sample(t, time.Second, test.started, test.metrics, syse()))
			if got := view.Pipelines[0].SessionsPerSecond; got != test.want {
				t.Errorf("%v sessions a second, want %v", got, test.want)
			}
		})
	}
}

// A clock that was set back, or a look that took no time, makes no rate infinite.
func TestTimeThatDoesNotPass(t *testing.T) {
	for _, passed := range []time.Duration{0, -time.Hour} {
		view := top.Compare(sample(t, 0, began, first, syse()), sample(t, passed, began, second, syse()))
		if got := view.Pipelines[0].SessionsPerSecond; got != 40 {
			t.Errorf("after %v: %v sessions a second", passed, got)
		}
		if age := *view.Pipelines[0].AnalysisAgeSeconds; age < 0 {
			t.Errorf("after %v: the analysis is %v seconds old", passed, age)
		}
	}
}

// Labels come from users.
func TestHostileLabels(t *testing.T) {
	names := []string{`a"b`, "a\nb", `a\`, "🦊", `x="y",z="`, strings.Repeat("n", 64<<10)}
	var metrics strings.Builder
	for i, name := range names {
		quoted := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(name)
		metrics.WriteString("shai_denials_total{pipeline=\"" + quoted + "\",task=\"t\",policy=\"\",reason=\"read\"} ")
		metrics.WriteString(string(rune('1'+i)) + "\n")
	}
	view := top.Compare(sample(t, 0, began, ""), sample(t, time.Second, began, metrics.String()))
	for i, denial := range view.Denials {
		if want := names[len(names)-1-i]; denial.Pipeline != want {
			t.Errorf("denial %d is of pipeline %.20q, want %.20q", i, denial.Pipeline, want)
		}
	}
	if len(view.Denials) != len(names) {
		t.Errorf("%d denials, want %d", len(view.Denials), len(names))
	}
}

func TestNotMetrics(t *testing.T) {
	_, err := top.NewSample(began, api.Status{}, []byte("<html>"))
	if err == nil || !strings.HasPrefix(err.Error(), "read the monitor's metrics: ") {
		t.Errorf("got %v", err)
	}
}
