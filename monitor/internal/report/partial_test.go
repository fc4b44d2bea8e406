// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/page"
	"shai.dev/monitor/internal/report/sources"
)

// read adds texts, as from files of these names.
func read(t *testing.T, texts ...string) sources.All {
	t.Helper()
	var all sources.All
	for i, text := range texts {
		if err := all.Add(fmt.Sprintf("file %d", i), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// written composes and writes a report, and returns its figures by identifier.
func written(t *testing.T, given sources.All) (figure.Report, map[string]figure.Figure) {
	t.Helper()
	made := Compose(Input{Given: given})
	if _, err := page.Render(made); err != nil {
		t.Fatal(err)
	}
	figures := map[string]figure.Figure{}
	for _, section := range made.Sections {
		for _, f := range section.Figures {
			if _, taken := figures[f.ID]; taken {
				t.Errorf("two figures are called %s", f.ID)
			}
			figures[f.ID] = f
		}
	}
	return made, figures
}

// A record of repeated refusals does not count the first, which has one of its own, and a
// summary counts nothing but those that it stands for. Records of several logs are in the
// order of their times.
func TestRefusalsAreCountedOnce(t *testing.T) {
	at := func(second int) time.Time { return end.Add(time.Duration(second) * time.Second) }
	denial := func(second int, policy string, repeated, omitted uint64) audit.Record {
		return audit.Record{Time: at(second), Event: audit.Event{Kind: audit.Denial, Policy: policy, Repeated: repeated,
			Omitted: omitted}}
	}
	given := sources.All{Recorded: true, Denials: []audit.Record{
		denial(1, "private", 0, 0), denial(3, "private", 4, 0), denial(4, "", 0, 7), denial(2, "friends", 0, 0),
	}}
	made, figures := written(t, given)
	text := made.Highlights[0].Value
	for _, row := range figures["stopped-denials"].Rows {
		text += fmt.Sprintf("; %s %s", row.Name, row.Cells[0].Text)
	}
	if want := "13; (no policy) 7; private 5; friends 1"; text != want {
		t.Errorf("refused: %s, want %s", text, want)
	}
	times := ""
	for _, row := range figures["stopped-latest"].Rows {
		times += row.Name[17:19] + "×" + row.Cells[0].Text + " "
	}
	if want := "04×7 03×4 02×1 01×1 "; times != want {
		t.Errorf("in the order %s, want %s", times, want)
	}
}

// The newest analysis of each pipeline that has decided something counts, in the head as in the table.
func TestAnalysesOfSeveralPipelines(t *testing.T) {
	run := func(pipeline string, minute, expected, refused int) string {
		return fmt.Sprintf(`{"kind": "AnalysisRun", "metadata": {"name": "%s-%d"}, "spec": {"pipeline": %q}, "status": {
			"startTime": "2026-03-01T12:%02d:00Z", "expected": %d, "granted": 1, "refused": %d, "undecided": 1}}`,
			pipeline, minute, pipeline, minute, expected, refused)
	}
	given := read(t, run("a", 1, 900, 800), run("a", 2, 10, 8), run("b", 1, 20, 18), run("b", 3, 0, 0))
	made, figures := written(t, given)
	head := made.Highlights[0]
	if head.Value != "26" || !strings.HasPrefix(head.Remark, "2 are") {
		t.Errorf("%s forbidden; %s", head.Value, head.Remark)
	}
	rows := figures["stopped-ahead"].Rows
	if len(rows) != 2 || rows[0].Cells[1].Text != "8" || rows[1].Cells[1].Text != "18" {
		t.Errorf("rows %v", rows)
	}
	if found := section(Compose(Input{Given: read(t, run("b", 3, 0, 0))}), "stopped"); found != nil {
		t.Errorf("an analysis that is running has decided: %v", found)
	}
}

// results are those of one mode at one session length; more are fields of its size.
func results(size, modes string) string {
	return fmt.Sprintf(`{"format": 4, "size": {"rounds": 2%s}, "throughput": [{"sessionLength": 1%s}]}`, size, modes)
}

const (
	asBase = `, "baseline": {"cpuMicrosPerQuery": {"estimate": 700}}`
	asShai = `, "shai": {"queriesPerSecond": {"estimate": 7}, "overhead": {"estimate": 0.1, "low": null, "high": null},
		"cpuOverhead": {"estimate": 0.1},
		"addedCpuMicrosPerQuery": {"estimate": 5}}`
)

// A run without baseline, or without intervals, makes a report of what there is.
func TestPartialResults(t *testing.T) {
	for _, modes := range []string{"", asBase, asShai, asBase + asShai} {
		made, _ := written(t, read(t, results("", modes)))
		text := section(made, "papers").Text
		said := strings.Contains(text, "Here it is 0.700 ms, so")
		if said != strings.HasPrefix(modes, asBase) || strings.Contains(text, "is 0 ms") {
			t.Errorf("of %q: %s", modes, text)
		}
	}
}

// Only the load that the papers had stands beside their figures.
func TestOtherLoadIsNotBesideThePapers(t *testing.T) {
	for size, want := range map[string]string{
		"": "7", `, "phases": [{"name": "spike"}]`: "–", `, "mispredicted": 0.5`: "–", `, "busyCycles": 0`: "–",
	} {
		_, figures := written(t, read(t, results(size, asBase+asShai)))
		table := figures["papers-shai-table-1"]
		for i, column := range table.Columns {
			if cell := table.Rows[0].Cells[i]; column.Title == "here: shai, queries/s" && cell.Text != want {
				t.Errorf("of %q: %s here, want %s", size, cell.Text, want)
			}
		}
	}
	slow := read(t, results("", `, "baseline": {"cpuMicrosPerQuery": {"estimate": 90000}}`))
	text := section(Compose(Input{Given: slow}), "papers").Text
	if !strings.HasSuffix(text, "Here it is 90 ms.") {
		t.Error(text)
	}
}

// What make bench NAME=fast measures stands beside the paper's fast engines, each beside its
// own, and the head of the report is about a search.
func TestFastEngines(t *testing.T) {
	fast := func(cycles string, perSecond int) string {
		return fmt.Sprintf(`{"format": 4, "size": {"rounds": 7, "busyCycles": %s}, "throughput": [{"sessionLength": 0,
			"dynamic": {"queriesPerSecond": {"estimate": %d}}}]}`, cycles, perSecond)
	}
	lucene := results("", asBase+asShai)
	made, figures := written(t, read(t, fast("0", 900), fast("2000000", 800), lucene))
	table, beside := figures["papers-shai-figure-3"], ""
	for _, row := range table.Rows {
		beside += row.Name + ": " + row.Cells[0].Text + ", here " + row.Cells[1].Text + "; "
	}
	if want := "3,000 queries/s: 2390, here 800; 30,000 queries/s: 7760, here 900; "; beside != want {
		t.Errorf("%s, want %s", beside, want)
	}
	if made.Subtitle != subtitle(Input{Given: read(t, lucene)}) {
		t.Errorf("the head is about %s", made.Subtitle)
	}
	if said := figures["method-runs"].Rows[2].Cells[0].Text; !strings.Contains(said, "after 2,000,000 cycles") {
		t.Errorf("the method does not name the engine: %s", said)
	}
}

// What is given twice is there twice, and the slices in two files of one run are there once.
func TestTheSameTwice(t *testing.T) {
	const slices = `, "samples": [{"mode": "shai", "session_length": 1, "sessions": 2,
		"process_cpu_seconds": {"worker": 3}}]}`
	run := strings.TrimSuffix(results("", asBase), "}") + slices
	csv := "round,order,mode,session_length,sessions,process_cpu_seconds\n0,0,shai,1,2,\"{\"\"worker\"\": 3}\"\n"
	_, figures := written(t, read(t, run, csv))
	count := 0
	for id := range figures {
		if strings.HasPrefix(id, "session-slices-") {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d figures of one run's slices", count)
	}
	var all sources.All
	for range 2 {
		if err := all.Add("results.json", []byte(run)); err != nil {
			t.Fatal(err)
		}
	}
	if _, figures := written(t, all); figures["costs-results-json-added-2"].ID == "" {
		t.Error("the second run is not there")
	}
}

// Many pipelines, and one of many tasks, make a report that can be read.
func TestManyPipelines(t *testing.T) {
	var texts []string
	for i := range 500 {
		texts = append(texts, fmt.Sprintf(`{"kind": "Pipeline", "metadata": {"name": "p%d"}, "spec": {"tasks": ["a"],
			"conduits": [{"name": "c", "kind": "file"}]}}`, i), fmt.Sprintf(`{"kind": "AnalysisRun", "metadata":
			{"name": "r%d"}, "spec": {"pipeline": "p%d"}, "status": {"expected": %d, "granted": 1,
			"durationMilliseconds": 5}}`, i, i, i+1))
	}
	made, figures := written(t, read(t, texts...))
	flows := section(made, "flow")
	if len(flows.Figures) != drawn || !strings.HasSuffix(flows.Text, "The first 12 of 500 pipelines.") {
		t.Errorf("%d drawings; %s", len(flows.Figures), flows.Text)
	}
	growth := figures["analysis-growth"]
	first, last := growth.Rows[0].Name, growth.Rows[len(growth.Rows)-1].Name
	if len(growth.Rows) != most || first != "r0" || last != "r499" {
		t.Errorf("%d analyses, from %s to %s", len(growth.Rows), first, last)
	}
	tasks := strings.Repeat(`"t", `, legible)
	_, figures = written(t, read(t, `{"kind": "Pipeline", "metadata": {"name": "large"},
		"spec": {"tasks": [`+tasks+`"u"]}}`))
	large := figures["flow-large"]
	if large.Graph != nil || !strings.Contains(strings.Join(large.Notes, " "), "Not drawn") {
		t.Errorf("101 tasks: notes %q", large.Notes)
	}
}

// A file that was not written to its end is named, with what to do.
func TestHalfAFile(t *testing.T) {
	for text, want := range map[string]string{
		`{"format": 4, "throughput": [{"sessionL`: "was it written to its end?",
		`{"format": 4, "throughput": []}`:         "the measurement was not finished",
		"":                                        "not of a known form", "kind: [Pipeline\nx": "not of a known form",
		"round,order,mode,session_length,sessions,process_cpu_seconds\n0,0,shai,1,2": "samples.csv",
	} {
		var all sources.All
		if err := all.Add("a.json", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "read a.json: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
