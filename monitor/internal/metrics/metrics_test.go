// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// exposition is what a scrape gets that accepts a format.
func exposition(t testing.TB, m *Metrics, accepts string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accepts)
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	wanted, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted.Header = request.Header
	answer, err := server.Client().Do(wanted)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return readAll(t, answer)
}

// series returns the lines about a metric, sorted.
func seriesOf(text, name string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func expectSeries(t *testing.T, m *Metrics, name string, want ...string) {
	t.Helper()
	if got := seriesOf(exposition(t, m, "text/plain"), name); !slices.Equal(got, want) {
		t.Errorf("%s is\n  %s\nwant\n  %s", name, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// everything counts one of each, so that every metric has a value.
func everything(m *Metrics) *Pipeline {
	p := m.Pipeline("syse", Names{Tasks: []string{"worker"}, Conduits: []string{"documents"}})
	p.SessionBegan()
	p.SessionEnded("shai")
	p.Bound(Analyzed)
	p.Begin(Open).End()
	p.Decided("documents", "read", true)
	p.Opened(BySupervisor, true, 3)
	p.OpenedNatively(7)
	p.Refused("read")
	p.Denied("worker", "friends", ByPolicy).Recorded(17)
	p.WouldDeny("friends", "Audit", ByPolicy)
	p.Learned(2)
	p.Foreseen()
	p.AnalysisEnded("succeeded")
	p.Restarted("worker")
	p.Discarded("worker")
	m.AuditFailed()
	m.FactsChanged(true)
	m.FetchFailed("people")
	m.ReadFrom(func(to *Sheet) {
		for _, r := range m.readings {
			if len(r.labels) > 0 && r.labels[0] == pipelineLabel.Name {
				p.Set(to, r, 1, slices.Repeat([]string{"x"}, len(r.labels)-1)...)
			} else {
				to.Set(r, 1, slices.Repeat([]string{"x"}, len(r.labels))...)
			}
		}
	})
	return p
}

// Every row of the table is exported with its type, its labels and its meaning, and nothing else
// of Shai's is.
func TestTableIsWhatIsExported(t *testing.T) {
	m := New()
	everything(m)
	text := exposition(t, m, "text/plain")
	table := map[string]Metric{}
	for _, row := range Table() {
		if _, twice := table[row.Name]; twice || row.Meaning == "" {
			t.Errorf("%s: declared twice, or without a meaning", row.Name)
		}
		table[row.Name] = row
		if !strings.Contains(text, "# HELP "+row.Name+" "+row.Meaning+"\n# TYPE "+row.Name+" "+row.Type+"\n") {
			t.Errorf("%s is not exported as the table says", row.Name)
		}
	}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, "{")
		name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(strings.Fields(name + " ")[0], "")
		if !strings.HasPrefix(name, "shai_") {
			continue
		}
		row, listed := table[name]
		if !listed {
			t.Errorf("%s is not in the table", name)
		}
		for _, found := range label.FindAllStringSubmatch(rest, -1) {
			if found[1] != "le" && !slices.Contains(row.labelNames(), found[1]) {
				t.Errorf("%s has the label %s", name, found[1])
			}
		}
	}
}

// Prometheus' own checker finds nothing to say.
func TestPromtoolHasNoFinding(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install Debian's package prometheus")
	}
	m := New()
	everything(m)
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(exposition(t, m, "text/plain"))
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestWhatHappensIsWhatIsCounted(t *testing.T) {
	m := New()
	p := m.Pipeline("syse", Names{Tasks: []string{"worker"}, Conduits: []string{"documents", "index"}})
	for i := range 7 {
		p.Decided("documents", "read", i%2 == 0)
	}
	p.Decided("index", "write", true)
	p.Opened(BySupervisor, true, 5)
	p.Opened(ByMonitor, false, 1)
	p.OpenedNatively(11)
	p.OpenedNatively(0)
	p.Refused("ptrace")
	p.Refused("mount")
	p.Refused("read")
	p.Bound("refused: a reason")
	p.SessionBegan()
	p.SessionBegan()
	p.SessionOver()
	expectSeries(t, m, "shai_conduit_decisions_total",
		`shai_conduit_decisions_total{allowed="false",conduit="documents",operation="read",pipeline="syse"} 3`,
		`shai_conduit_decisions_total{allowed="true",conduit="documents",operation="read",pipeline="syse"} 4`,
		`shai_conduit_decisions_total{allowed="true",conduit="index",operation="write",pipeline="syse"} 1`)
	expectSeries(t, m, "shai_decisions_total", `shai_decisions_total{allowed="false",pipeline="syse"} 3`,
		`shai_decisions_total{allowed="true",pipeline="syse"} 21`)
	expectSeries(t, m, "shai_opens_total", `shai_opens_total{allowed="false",path="monitor",pipeline="syse"} 1`,
		`shai_opens_total{allowed="true",path="supervisor",pipeline="syse"} 5`)
	expectSeries(t, m, "shai_native_opens_total", `shai_native_opens_total{pipeline="syse"} 11`)
	expectSeries(t, m, "shai_refusals_total", `shai_refusals_total{operation="read",pipeline="syse"} 1`,
		`shai_refusals_total{operation="system call",pipeline="syse"} 2`)
	expectSeries(t, m, "shai_session_bindings_total", `shai_session_bindings_total{pipeline="syse",result="refused"} 1`)
	expectSeries(t, m, "shai_sessions_active", `shai_sessions_active{pipeline="syse"} 1`)
	if got := m.Counters(); got["shai_decisions_total"] != 24 || got["shai_sessions_active"] != 1 {
		t.Errorf("status: %v", got)
	}
}

// Exemplars carry the number of the audit record, whichever is known first: it, or the time.
func TestExemplarsNameTheAuditRecord(t *testing.T) {
	m := New()
	p := m.Pipeline("syse", Names{Tasks: []string{"worker"}})
	p.Denied("worker", "friends", ByPolicy).Recorded(17)
	p.Intercepted(Open, 3*time.Microsecond).Recorded(18)
	early := p.Begin(Path)
	early.Recorded(19)
	early.end(time.Hour) // beyond all buckets
	(*Interception)(nil).Recorded(20)
	text := exposition(t, m, "application/openmetrics-text;version=1.0.0")
	for _, want := range []string{
		`shai_denials_total\{pipeline="syse",policy="friends",reason="policy",task="worker"\} 1.0 # \{audit="17"\} 1.0 `,
		`shai_decision_seconds_bucket\{kind="open",le="4e-06"\} 1 # \{audit="18"\} 3e-06 `,
		`shai_decision_seconds_bucket\{kind="path",le="\+Inf"\} 1 # \{audit="19"\} 3600.0 `,
		`# EOF\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(text, `"20"`) {
		t.Error("no interception has an example")
	}
}

// hostile are values from users' files.
var hostile = map[string]string{
	"quote": `a"b\c`, "newline": "a\nb", "emoji": "🦊", "bidi": "\u202eevil", "invalid": "\xff\xfe", "nul": "a\x00b",
	"long": strings.Repeat("🦊", 1<<14), "markup": "</script>",
}

func TestHostileValuesAreSafe(t *testing.T) {
	for name, value := range hostile {
		t.Run(name, func(t *testing.T) {
			m := New()
			p := m.Pipeline(value, Names{[]string{value}, []string{value}, []Policy{{Name: value}}})
			p.Decided(value, "read", true)
			p.Denied(value, value, ByPolicy)
			p.Refused(value)
			m.FetchFailed(value)
			m.ReadFrom(func(to *Sheet) {
				to.Set(m.BundleInfo, 1, value, value, value)
				p.Set(to, m.TaskState, 1, value, value)
			})
			for _, accepts := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
				text := exposition(t, m, accepts)
				if len(text) > 64<<10 {
					t.Errorf("%d bytes", len(text))
				}
				if lines := seriesOf(text, "shai_task_state"); len(lines) != 1 {
					t.Errorf("%d series of one task", len(lines))
				}
			}
			check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
			check.Stdin = strings.NewReader(exposition(t, m, "text/plain"))
			if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// However many names manifests have, there are only so many series, and what has no series of
// its own is counted all the same.
func TestNamesAreBounded(t *testing.T) {
	m := New()
	const many = 3000
	var names []string
	for i := range many {
		names = append(names, fmt.Sprint("n", i))
	}
	p := m.Pipeline("wide", Names{Tasks: names, Conduits: names})
	m.FollowSources(names)
	for _, name := range names {
		p.Decided(name, "read", true)
		p.Denied(name, name, ByPolicy)
		p.Restarted(name)
		m.FetchFailed(name)
	}
	m.ReadFrom(func(to *Sheet) {
		for _, name := range names {
			p.Set(to, m.TaskState, 1, name, "Running")
			to.Set(m.FactSourceAge, 1, name)
		}
	})
	text := exposition(t, m, "text/plain")
	for metric, limit := range map[string]int64{
		"shai_conduit_decisions_total": limits["conduit"].each, "shai_task_restarts_total": limits["task"].each,
		"shai_fact_source_failures_total": limits["source"].each, "shai_task_state": limits["task"].each,
		"shai_denials_total": limits["policy"].each, "shai_fact_source_age_seconds": limits["source"].each,
	} {
		lines := seriesOf(text, metric)
		if int64(len(lines)) != limit+1 {
			t.Errorf("%s has %d series, want %d", metric, len(lines), limit+1)
		}
		if metric != "shai_fact_source_age_seconds" && sumOf(t, lines) != many {
			t.Errorf("%s: the series stand for %v of %d", metric, sumOf(t, lines), many)
		}
	}
}

func sumOf(t *testing.T, lines []string) (total float64) {
	t.Helper()
	for _, line := range lines {
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
			t.Fatal(err)
		}
		total += value
	}
	return total
}

// 500 pipelines have series of their own; beyond the limit they share some. All names together
// have a limit, too.
func TestPipelinesAreBounded(t *testing.T) {
	m := New()
	const many = maxPipelines + 100
	for i := range many {
		p := m.Pipeline(fmt.Sprint("p", i), Names{Tasks: []string{"worker", "indexer", "third"}})
		p.SessionEnded("shai")
		for _, task := range []string{"worker", "indexer", "third"} {
			p.Restarted(task)
		}
	}
	text := exposition(t, m, "text/plain")
	sessions, restarts := seriesOf(text, "shai_sessions_total"), seriesOf(text, "shai_task_restarts_total")
	if len(sessions) != maxPipelines+1 || sumOf(t, sessions) != many {
		t.Errorf("%d series for %v sessions", len(sessions), sumOf(t, sessions))
	}
	named := slices.DeleteFunc(slices.Clone(restarts), func(line string) bool { return strings.Contains(line, `task="(other)"`) })
	if int64(len(named)) != limits["task"].all || sumOf(t, restarts) != 3*many {
		t.Errorf("%d tasks have series of their own, and all stand for %v restarts", len(named), sumOf(t, restarts))
	}
}

// The series of a pipeline go with it, and their places are free again. A pipeline that takes
// over goes on counting, without the names that it has no more.
func TestSeriesOfRemovedPipelinesDisappear(t *testing.T) {
	m := New()
	for i := range 3 * limits["task"].all {
		p := m.Pipeline(fmt.Sprint("p", i), Names{[]string{"worker"}, []string{"documents"},
			[]Policy{{Name: fmt.Sprint("policy", i)}}})
		p.Restarted("worker")
		p.Close()
		p.Close()
		p.Restarted("worker") // nobody sees it
	}
	expectSeries(t, m, "shai_task_restarts_total")
	before := m.Pipeline("syse", Names{Tasks: []string{"old", "kept"}, Conduits: []string{"old", "kept"}})
	before.Restarted("old")
	before.Restarted("kept")
	before.Decided("old", "read", true)
	after := m.Pipeline("syse", Names{Tasks: []string{"kept", "new"}, Conduits: []string{"kept"}})
	before.Close()
	after.Restarted("kept")
	after.Restarted("new")
	expectSeries(t, m, "shai_task_restarts_total", `shai_task_restarts_total{pipeline="syse",task="kept"} 2`,
		`shai_task_restarts_total{pipeline="syse",task="new"} 1`)
	expectSeries(t, m, "shai_conduit_decisions_total")
	m.Pipeline("last", Names{Tasks: []string{"worker"}, Policies: []Policy{{Name: "friends"}}})
	expectSeries(t, m, "shai_denials_total",
		`shai_denials_total{pipeline="last",policy="friends",reason="policy",task="worker"} 0`,
		`shai_denials_total{pipeline="last",policy="friends",reason="taint",task="worker"} 0`)
	m.FollowSources([]string{"a", "b"})
	m.FetchFailed("a")
	m.FollowSources([]string{"b"})
	expectSeries(t, m, "shai_fact_source_failures_total", `shai_fact_source_failures_total{source="b"} 0`)
}

// Policies that are renamed again and again leave their places to those that follow. What a
// pipeline was denied by the policies of others goes, too, with the next change of its own.
func TestPlacesOfRenamedPoliciesAreFree(t *testing.T) {
	m := New()
	named := func(i int) Names {
		return Names{Tasks: []string{"worker"}, Policies: []Policy{{Name: "kept"}, {Name: fmt.Sprint("own", i)}}}
	}
	p := m.Pipeline("syse", named(0))
	p.Denied("worker", "kept", ByPolicy)
	last := int(3 * limits["policy"].all)
	for i := range last {
		p.Denied("worker", fmt.Sprint("of others", i), ByPolicy)
		p.Denied("worker", "", NoPolicy)
		next := m.Pipeline("syse", named(i+1))
		p.Close()
		p = next
	}
	series := func(policy string, reason Reason, count int) string {
		return fmt.Sprintf(`shai_denials_total{pipeline="syse",policy="%s",reason="%s",task="worker"} %d`, policy, reason, count)
	}
	own := fmt.Sprint("own", last)
	expectSeries(t, m, "shai_denials_total", series("", NoPolicy, last), series("kept", ByPolicy, 1),
		series("kept", ByTaint, 0), series(own, ByPolicy, 0), series(own, ByTaint, 0))
}

// What begins at 0 for each task and policy is bounded as what is counted.
func TestExpectedDenialsAreBounded(t *testing.T) {
	m := New()
	var names Names
	for i := range 300 {
		names.Tasks = append(names.Tasks, fmt.Sprint("task", i))
		names.Policies = append(names.Policies, Policy{Name: fmt.Sprint("policy", i)})
	}
	m.Pipeline("wide", names)
	lines := seriesOf(exposition(t, m, "text/plain"), "shai_denials_total")
	if want := (limits["task"].each + 1) * (limits["policy"].each + 1) * 2; int64(len(lines)) != want {
		t.Errorf("%d series, want %d", len(lines), want)
	}
}
