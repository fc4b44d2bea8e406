// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// answers returns explain's answers about every expected instance and document: who may
// read what.
func answers(t *testing.T, m *Monitor) map[string]bool {
	t.Helper()
	allowed := map[string]bool{}
	for _, document := range pipelinetest.BareDocuments {
		for _, q := range []api.Question{
			{Principal: "alice", Region: "de", Task: "worker"}, {Principal: "bob", Region: "de", Task: "worker"},
			{Task: "collector"},
		} {
			q.Pipeline, q.Conduit = "bare", document
			explained, err := m.Explain(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if explained.Allowed {
				allowed[explained.Instance+" "+document] = true
			}
		}
	}
	return allowed
}

func compareText(m *Monitor, text string) (api.Comparison, error) {
	return m.Compare(context.Background(), api.CompareRequest{Prune: true,
		Sources: []manifest.Source{{Name: "bare.yaml", Text: text}}}, func(api.Progress) {})
}

// A comparison shows the same changes as explain's answers when the candidate is applied.
// Until then nothing has changed.
func TestCompareForetellsAnApply(t *testing.T) {
	replace := func(old, with string) func(*testing.T, string) string {
		return func(t *testing.T, text string) string {
			if !strings.Contains(text, old) {
				t.Fatalf("the manifest has no %q", old)
			}
			return strings.Replace(text, old, with, 1)
		}
	}
	mode := func(name, mode string) func(*testing.T, string) string {
		return func(t *testing.T, text string) string { return inMode(t, text, name, mode) }
	}
	diary := replace("F says friend(K).", `F says friend(K), sRegionIs("us").`)
	for _, test := range []struct {
		name          string
		before, after []func(*testing.T, string) string
		closed        []string // of "instance document"
		opened        []string
		wouldClose    uint64
		users         []string
	}{
		{name: "nothing changes"},
		{name: "a narrower rule", after: []func(*testing.T, string) string{diary},
			closed: []string{"worker(bob, de) /diary/alice/1.txt"}, users: []string{"bob"}},
		{name: "a wider rule", before: []func(*testing.T, string) string{diary},
			opened: []string{"worker(bob, de) /diary/alice/1.txt"}, users: []string{"bob"}},
		{name: "a narrower rule that is tried out",
			after: []func(*testing.T, string) string{diary, mode("diary", "Audit")}, wouldClose: 1,
			opened: []string{"collector /diary/alice/1.txt"}},
		{name: "a rule that is enforced at last",
			before: []func(*testing.T, string) string{diary, mode("diary", "Warn")},
			after:  []func(*testing.T, string) string{diary},
			closed: []string{"collector /diary/alice/1.txt", "worker(bob, de) /diary/alice/1.txt"},
			users:  []string{"bob"}},
		{name: "facts", after: []func(*testing.T, string) string{replace("[[bob]]", "[[carol]]")},
			closed: []string{"worker(bob, de) /diary/alice/1.txt"}, users: []string{"bob"}},
		{name: "a document's policy", after: []func(*testing.T,
			string) string{replace(`"/dropbox/**", policy: {name: dropbox}`, `"/dropbox/**", policy: {name: open}`)},
			opened: []string{"collector /dropbox/1.txt", "worker(alice, de) /dropbox/1.txt",
				"worker(bob, de) /dropbox/1.txt"}, users: []string{"alice", "bob"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			text, candidate := pipelinetest.Bare, pipelinetest.Bare
			for _, change := range test.before {
				text = change(t, text)
			}
			for _, change := range test.after {
				candidate = change(t, candidate)
			}
			applyBare(t, m, text)
			analyzeBare(t, m)
			supervisor := superviseBare(t, m).Supervisor()
			supervisor.Since()
			was, state := answers(t, m), m.state()
			view, err := os.ReadDir(m.view.Path())
			if err != nil {
				t.Fatal(err)
			}
			got, err := compareText(m, candidate)
			if err != nil {
				t.Fatal(err)
			}
			again, err := os.ReadDir(m.view.Path())
			if err != nil || m.state() != state || len(again) != len(view) {
				t.Errorf("comparing has changed something: %v", err)
			}
			if told := supervisor.Since(); len(told) > 0 {
				t.Errorf("comparing has changed capability sets: %q", told)
			}
			applyBare(t, m, candidate)
			is := answers(t, m)
			if got.From != state.BundleHash() || got.To != m.state().BundleHash() {
				t.Errorf("from %s to %s", got.From, got.To)
			}
			checkDifference(t, "closed", got.Closed, got.ClosedTotal, test.closed, was, is)
			checkDifference(t, "opened", got.Opened, got.OpenedTotal, test.opened, is, was)
			if got.WouldCloseTotal != test.wouldClose || !slices.Equal(got.Users, append([]string{}, test.users...)) ||
				int(got.UsersTotal) != len(test.users) {
				t.Errorf("%d would close, users %v (%d)", got.WouldCloseTotal, got.Users, got.UsersTotal)
			}
			if got.FlowsBefore+got.OpenedTotal != got.FlowsAfter+got.ClosedTotal {
				t.Errorf("%d flows before, %d opened, %d closed, %d after", got.FlowsBefore, got.OpenedTotal,
					got.ClosedTotal, got.FlowsAfter)
			}
		})
	}
}

// checkDifference compares rows with what explain allows in one state and not in the
// other.
func checkDifference(t *testing.T, what string, rows []api.FlowChange, total uint64, want []string, with,
	without map[string]bool) {
	t.Helper()
	var differ []string
	for key := range with {
		if !without[key] {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	if !slices.Equal(differ, want) {
		t.Errorf("%s by explain's answers: %v, want %v", what, differ, want)
	}
	flows := uint64(0)
	for _, row := range rows {
		flows += row.Flows
	}
	if total != uint64(len(want)) || flows != total {
		t.Errorf("%s: %d flows, want %d: %+v", what, total, len(want), rows)
	}
}

// A comparison that is given up, or whose candidate is wrong, says so and changes
// nothing.
func TestComparisonsThatFail(t *testing.T) {
	m, _ := bareMonitor(t)
	state := m.state()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := api.CompareRequest{Prune: true, Sources: []manifest.Source{{Name: "bare.yaml", Text: pipelinetest.Bare}}}
	if _, err := m.Compare(ctx, request, func(api.Progress) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var mistakes manifest.Errors
	if _, err := compareText(m, strings.Replace(pipelinetest.Bare, "name: dropbox", "name: dropbx", 1)); !errors.As(err,
		&mistakes) {
		t.Errorf("a missing policy: %v", err)
	}
	if m.state() != state {
		t.Error("the state has changed")
	}
}

// A pipeline that is added or removed opens or closes all of its flows.
func TestComparePipelinesThatComeAndGo(t *testing.T) {
	m, _ := bareMonitor(t)
	twin := pipelinetest.Bare + "---\napiVersion: shai.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: twin}\nspec: {tasks: [collector], conduits: [" +
		`{name: documents, kind: file, ingress: true, paths: [{path: "/twin/**", policy: {name: open}}]}]}` + "\n"
	comes, err := compareText(m, twin)
	if err != nil || comes.OpenedTotal != 0 || comes.ClosedTotal != 0 {
		t.Errorf("a pipeline without documents comes: %+v, %v", comes, err)
	}
	head, _, _ := strings.Cut(pipelinetest.Bare, "---\napiVersion: shai.dev/v1alpha1\nkind: Pipeline")
	goes, err := compareText(m, head)
	if err != nil || goes.FlowsBefore == 0 || goes.ClosedTotal != goes.FlowsBefore || goes.FlowsAfter != 0 {
		t.Errorf("the pipeline goes: %+v, %v", goes, err)
	}
}

// A choice that is new, or that is laxer than before, is shown with the flows that it would open; none is that is
// as before, stricter, or that opens what another choice could. Whoever makes it has these flows opened.
func TestCompareShowsWhatChoicesWouldOpen(t *testing.T) {
	const path = `{path: "/diary/{owner}/**", policy: {name: diary, arguments: {owner: "{owner}"}}}`
	choosing := func(by string, policies ...string) string {
		list := ""
		for _, name := range policies {
			list += `{by: "` + by + `", policy: ` + name + `}, `
		}
		return strings.Replace(pipelinetest.Bare, path, strings.TrimSuffix(path, "}")+`, choices: [`+list+`]}`, 1)
	}
	const same, open, dropbox = `{name: diary, arguments: {owner: "{owner}"}}`, `{name: open}`, `{name: dropbox}`
	laxer := strings.Replace(choosing("{owner}", dropbox), `read :- sKeyIs(\"admin\").`, `read :- true.`, 1)
	for _, test := range []struct {
		name, before, candidate string
		want                    uint64 // flows by the choice
		policy                  string
		opened                  uint64 // without it
	}{
		{"no choice", pipelinetest.Bare, pipelinetest.Bare, 0, "", 0},
		{"a new one", pipelinetest.Bare, choosing("{owner}", same, open), 1, "open", 0},
		{"as before", choosing("{owner}", open), choosing("{owner}", open), 0, "", 0},
		{"of another principal", choosing("{owner}", open), choosing("moderator", open), 0, "", 0},
		{"the same one, laxer", choosing("{owner}", dropbox), laxer, 1, "dropbox", 3},
		{"less than before", choosing("{owner}", open), choosing("{owner}", dropbox), 0, "", 0},
		{"nothing but the path's own", pipelinetest.Bare, choosing("{owner}", same), 0, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			applyBare(t, m, test.before)
			got, err := compareText(m, test.candidate)
			if err != nil {
				t.Fatal(err)
			}
			if got.WouldOpenTotal != test.want || got.OpenedTotal != test.opened || got.ClosedTotal != 0 ||
				test.want > 0 && (len(got.WouldOpen) != 1 || got.WouldOpen[0].Policy != test.policy) {
				t.Errorf("%+v, want %d flows by %s", got, test.want, test.policy)
			}
		})
	}
}

// A choice for one document can open another one, if a policy asks for that of the other. What is compared is one
// choice for all, so nothing is shown that opens, and it is said that this is not known.
func TestCompareSaysWhatIsNotKnownOfChoices(t *testing.T) {
	const path = `{path: "/diary/{owner}/**", policy: {name: diary, arguments: {owner: "{owner}"}}}`
	const joint = `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: joint}
spec: {text: "policy joint { read :- sKeyIs(\"bob\"), \"partner\" says of(I), hasPol(I, P), isAsRestrictive(P.read, read). }"}
`
	asks := []api.NotKnown{{Pipeline: "bare", Policies: []string{"joint"}}}
	choosing := func(by, policies string) string {
		return strings.Replace(pipelinetest.Bare+joint, path, strings.TrimSuffix(path, "}")+
			`, choices: [{by: "`+by+`", policy: {name: `+policies+`}}]}`, 1)
	}
	for _, test := range []struct {
		name, before, candidate string
		want                    []api.NotKnown
	}{
		{"a choice that asks", pipelinetest.Bare, choosing("{owner}", "joint"), asks},
		{"as before", choosing("{owner}", "joint"), choosing("{owner}", "joint"), []api.NotKnown{}},
		{"no policy that asks", pipelinetest.Bare, choosing("{owner}", "open"), []api.NotKnown{}},
		{"no choice", pipelinetest.Bare, strings.Replace(pipelinetest.Bare+joint, path,
			`{path: "/diary/{owner}/**", policy: {name: joint}}`, 1), []api.NotKnown{}},
		{"a path that asks beside a choice", pipelinetest.Bare, strings.Replace(choosing("{owner}", "open"),
			`policy: {name: open}}`, `policy: {name: joint}}`, 1), asks},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			applyBare(t, m, test.before)
			got, err := compareText(m, test.candidate)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.WouldOpenNotKnown); diff != "" {
				t.Error(diff)
			}
		})
	}
}
