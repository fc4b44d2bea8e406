// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// figureIn returns a figure of a report's section.
func figureIn(report figure.Report, section, id string) (found figure.Figure, there bool) {
	for _, one := range report.Sections {
		at := slices.IndexFunc(one.Figures, func(f figure.Figure) bool { return f.ID == id })
		if one.ID == section && at >= 0 {
			return one.Figures[at], true
		}
	}
	return found, false
}

// rowsOf returns the rows as they are read: a name and its texts.
func rowsOf(f figure.Figure) (rows []string) {
	for _, row := range f.Rows {
		line := row.Name
		for _, cell := range row.Cells {
			line += ": " + cell.Text
		}
		rows = append(rows, line)
	}
	return rows
}

// What another version does is shown with the installation that has its name, and in words of its own.
func TestAnotherVersionIsBeside(t *testing.T) {
	var all sources.All
	text := replaced(t, "session.json", "beside", `{"commit": "f3258cc",
		"sessions_per_second_ratio": {"value": 1.184, "low": 1.142, "high": 1.203},
		"saved_cpu_us_per_session": {"value": 61.3, "low": null, "high": null}}`)
	text = bytes.ReplaceAll(text, []byte(`"forked"`), []byte(`"beside"`))
	if err := all.Add("session.json", text); err != nil {
		t.Fatal(err)
	}
	report := Compose(Input{Given: all})
	f, found := figureIn(report, "session", "session-beside")
	want := []string{"sessions per second, as a multiple of the other's: 1.18 [1.14, 1.20]",
		"CPU time that a session takes less, µs: 61.3"}
	if !found || !slices.Equal(rowsOf(f), want) || !strings.Contains(f.Caption, "mode shai of f3258cc,") {
		t.Errorf("beside: %t, %q\n%s", found, rowsOf(f), f.Caption)
	}
	rate, _ := figureIn(report, "session", "session-rate")
	if at := slices.IndexFunc(rate.Rows, func(r figure.Row) bool { return r.Name == "beside" }); at < 0 ||
		rate.Rows[at-1].Name != "shai" || rate.Rows[at].Colour != "modes-beside" {
		t.Errorf("its sessions per second: %+v", rate.Rows)
	}
	if _, found := figureIn(Compose(Input{Given: given(t, "session.json")}), "session", "session-beside"); found {
		t.Error("no other version was measured")
	}
	wrong := replaced(t, "session.json", "beside", `{"commit": "x", "saved_cpu_us_per_session": {"value": 1, "low": 1}}`)
	err := new(sources.All).Add("x", wrong)
	if err == nil || !strings.Contains(err.Error(), "beside.saved_cpu_us_per_session: an interval has both low and high") {
		t.Errorf("an interval with one end: %v", err)
	}
}

// What was done beside searches is a table of the run.
func TestWhatIsDoneBesideSearches(t *testing.T) {
	for field, want := range map[string][]string{
		`{"support": {"accesses": 200, "read": 200, "logged": 201, "refused": 0, "milliseconds": {"p50": 12.5, "p99": 40}},
		  "interests": {"users": 24, "advertisements": 48}}`: {
			"documents of users that the support read: 200", "new entries of the log of accesses: 201",
			"accesses of the support that were refused: 0", "an access of the support with its login, ms (p50): 12.5",
			"an access of the support with its login, ms (p99): 40", "users who had topics made of their histories: 24",
			"advertisements that they saw: 48"},
		`{"interests": {"users": 24, "advertisements": 48}}`: {"users who had topics made of their histories: 24",
			"advertisements that they saw: 48"},
		`{}`: nil, `null`: nil,
	} {
		var all sources.All
		text := bytes.Replace(replaced(t, "results.json", "format", "4"), []byte("{"), []byte(`{"beside": `+field+`,`), 1)
		if err := all.Add("results.json", text); err != nil {
			t.Fatal(err)
		}
		f, found := figureIn(Compose(Input{Given: all}), "costs", "costs-beside")
		if found != (want != nil) || !slices.Equal(rowsOf(f), want) {
			t.Errorf("%s: %q", field, rowsOf(f))
		}
	}
}
