// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"
	"strings"
	"testing"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// ran is a run of a scenario in one phase.
func ran(complete bool, whole string) string {
	return fmt.Sprintf(`{"scenario": "unfriending", "host": "http://127.0.0.1:80", "complete": %t, "parts": [
		{"phase": "steady", "queries": 4, "p99": 0.012, "checked": 3, "violations": 1}, {"phase": "", %s}],
		"errors": {"GET /search: b": 2, "GET /search: a": 2, "POST /session: c": 7},
		"thresholds": [{"threshold": "violations>0", "exceeded": true, "message": "violations>0: 1"}]}`, complete, whole)
}

// rows are the names and the cells of a table.
func rows(f figure.Figure) string {
	text := ""
	for _, row := range f.Rows {
		text += row.Name
		for _, cell := range row.Cells {
			text += " " + cell.Text
		}
		text += "; "
	}
	return text
}

// What a scenario has measured is in the report: by phase, with the judgements and the errors.
func TestScenarioOfLoad(t *testing.T) {
	whole := `"queries_per_second": 250, "p99": 0.016, "checked": 3, "violations": 1`
	made, figures := written(t, read(t, ran(true, whole)))
	for id, want := range map[string]string{
		"latency":    "steady – – 12; whole run – – 16; ",
		"counts":     "steady – 4 – – – – – 3 1; whole run – – 250 – – – – 3 1; ",
		"thresholds": "violations>0 exceeded 1; ",
		"errors":     "POST /session: c 7; GET /search: a 2; GET /search: b 2; ",
	} {
		if found := rows(figures["scenario-unfriending-"+id]); found != want {
			t.Errorf("%s: %s, want %s", id, found, want)
		}
	}
	head := made.Highlights[0]
	if head.Value != "250" || head.Remark != "99 % of them answered within 16 ms" {
		t.Errorf("head %v", head)
	}
	if len(made.Downloads) != 1 || made.Downloads[0].Name != "scenario-1.json" {
		t.Errorf("downloads %v", made.Downloads)
	}
}

// A run that was cut off says so, and has no judgement.
func TestScenarioThatWasCutOff(t *testing.T) {
	made, figures := written(t, read(t, ran(false, `"queries_per_second": null`)))
	if notes := figures["scenario-unfriending-latency"].Notes; len(notes) != 1 || !strings.Contains(notes[0], "cut off") {
		t.Errorf("notes %q", notes)
	}
	if _, found := figures["scenario-unfriending-thresholds"]; found {
		t.Error("it was judged")
	}
	if len(made.Highlights) != 0 {
		t.Errorf("head %v", made.Highlights)
	}
}

// What is no whole run is an error that says so.
func TestScenarioWithoutWhole(t *testing.T) {
	for _, parts := range []string{`[]`, `[{"phase": "steady"}]`, `[null, {"phase": 7}]`} {
		var all sources.All
		err := all.Add("x.json", []byte(`{"scenario": "steady", "parts": `+parts+`}`))
		if err == nil || !strings.HasPrefix(err.Error(), "read x.json: result.json: ") {
			t.Errorf("%s: error %v", parts, err)
		}
	}
}
