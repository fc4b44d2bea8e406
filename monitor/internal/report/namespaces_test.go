// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"shai.dev/monitor/internal/report/page"
)

// An object of a namespace says nothing about one of the same name in another.
func TestNamespacesAreApart(t *testing.T) {
	run := func(namespace string, minute, refused int) string {
		return fmt.Sprintf(`{"kind": "AnalysisRun", "metadata": {"name": "r", "namespace": %q}, "spec": {"pipeline": "syse"},
			"status": {"startTime": "2026-03-01T12:%02d:00Z", "expected": 1000, "refused": %d, "durationMilliseconds": 5}}`,
			namespace, minute, refused)
	}
	const mine = `{"kind": "Pipeline", "metadata": {"name": "syse", "namespace": "mine"}, "spec": {"tasks": ["worker"],
		"conduits": [{"name": "secrets", "kind": "file"}, {"name": "web", "kind": "connection"}]}}
		{"kind": "Task", "metadata": {"name": "worker", "namespace": "mine"}, "spec": {"reads": ["secrets"]}}`
	const others = `{"kind": "Task", "metadata": {"name": "worker", "namespace": "other"},
		"spec": {"writes": ["web"], "parameters": ["forged"]}}`
	made, figures := written(t, read(t, run("mine", 1, 900), run("other", 2, 0), mine, others))
	if head := made.Highlights; len(head) != 1 || head[0].Value != "900" {
		t.Errorf("forbidden: %v", head)
	}
	for id, want := range map[string]string{
		"stopped-ahead": "mine/syse, everything; other/syse, everything; ", "analysis-growth": "mine/r; other/r; ",
	} {
		names := ""
		for _, row := range figures[id].Rows {
			names += row.Name + "; "
		}
		if names != want {
			t.Errorf("%s is of %s want %s", id, names, want)
		}
	}
	flow := figures["flow-mine-syse"].Rows
	if len(flow) != 1 || fmt.Sprint(flow[0].Cells[0].Text, flow[0].Cells[1].Text, flow[0].Cells[2].Text) != "secrets" {
		t.Errorf("flow %v", flow)
	}
	_, figures = written(t, read(t, mine, run("mine", 1, 900)))
	if title := figures["flow-syse"].Title; title != "Pipeline syse" {
		t.Errorf("of one namespace: %s", title)
	}
}

// Benchmarks of the same name in two namespaces are told apart.
func TestResultsOfTwoNamespaces(t *testing.T) {
	text, err := json.Marshal(results("", asBase))
	if err != nil {
		t.Fatal(err)
	}
	var maps []string
	for _, namespace := range []string{"a", "b"} {
		maps = append(maps, fmt.Sprintf(`{"kind": "ConfigMap", "metadata": {"name": "nightly", "namespace": %q},
			"data": {"results.json": %s}}`, namespace, text))
	}
	made, _ := written(t, read(t, maps...))
	if one, other := made.Sections[0].Title, made.Sections[1].Title; !strings.HasSuffix(one, "a/nightly") ||
		!strings.HasSuffix(other, "b/nightly") {
		t.Errorf("sections %s and %s", one, other)
	}
}

// Every identifier of the page is there once, whatever pipelines are called.
func TestIdentifiers(t *testing.T) {
	var texts []string
	for _, name := range []string{"a.b", "a-b", "a-b-2", "a-b-title", "a-b-arrow", "A_B", ".", "..", ""} {
		texts = append(texts, fmt.Sprintf(`{"kind": "Pipeline", "metadata": {"name": %q}, "spec": {"tasks": ["t"],
			"conduits": [{"name": "c", "kind": "file", "from": "t"}]}}`, name))
	}
	made, _ := written(t, read(t, texts...))
	text, err := page.Render(made)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			if attribute.Key == "id" && seen[attribute.Val] {
				t.Errorf("%q is there twice", attribute.Val)
			}
			seen[attribute.Val] = seen[attribute.Val] || attribute.Key == "id"
		}
	}
	if !seen["flow-a-b.title"] || !seen["flow-a-b.arrow"] {
		t.Error("no drawing of a.b")
	}
}

// Objects of a List are added; a List within a List, which kubectl never prints, is left out: each
// level would be read once more for each that it is in.
func TestListsWithinLists(t *testing.T) {
	list := `{"kind": "Pipeline", "metadata": {"name": "p"}}`
	for _, want := range []int{1, 0} {
		list = `{"kind": "List", "items": [` + list + `]}`
		if found := len(read(t, "["+list+"]").Pipelines); found != want {
			t.Errorf("%s: %d pipelines, want %d", list, found, want)
		}
	}
}

// A pipeline of very many tasks is a table of the first, in a time that grows in proportion.
func TestHugePipeline(t *testing.T) {
	const count = 20_000
	var tasks, conduits []string
	for i := range count {
		tasks = append(tasks, fmt.Sprintf(`"t%d"`, i))
		conduits = append(conduits, fmt.Sprintf(`{"name": "c%d", "kind": "pipe", "from": "t%d", "to": "t%d"}`,
			i, i, (i+1)%count))
	}
	_, figures := written(t, read(t, fmt.Sprintf(`{"kind": "Pipeline", "metadata": {"name": "huge"}, "spec": {
		"tasks": [%s], "conduits": [%s]}}`, strings.Join(tasks, ","), strings.Join(conduits, ","))))
	huge := figures["flow-huge"]
	if notes := strings.Join(huge.Notes, " "); len(huge.Rows) != most || huge.Rows[1].Cells[0].Text != "c0" ||
		!strings.Contains(notes, "The first 40 of 20000 rows.") ||
		!strings.Contains(notes, "of 40000 tasks and conduits") {
		t.Errorf("%d rows; notes %q", len(huge.Rows), huge.Notes)
	}
}
