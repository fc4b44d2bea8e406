// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// given reads files of testdata.
func given(t *testing.T, names ...string) sources.All {
	t.Helper()
	var all sources.All
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Add(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var everything = []string{"results.json", "result.json", "session.json", "samples.csv", "objects.json", "denials.json",
	"verify.json"}

// The figures of a whole report.
func TestFigures(t *testing.T) {
	report := Compose(Input{Title: "Report", Given: given(t, everything...), Version: "test",
		Made: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	var found bytes.Buffer
	encoder := json.NewEncoder(&found)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(report); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.golden.json")
	if *rewrite {
		if err := os.WriteFile(golden, found.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if found.String() != string(want) {
		t.Errorf("the figures differ from %s; run go test with -rewrite and read the difference", golden)
	}
}

// section returns a section, or nil.
func section(report figure.Report, id string) *figure.Section {
	for i := range report.Sections {
		if report.Sections[i].ID == id {
			return &report.Sections[i]
		}
	}
	return nil
}

// What was not given is named with what to do, and is no empty chart.
func TestAbsent(t *testing.T) {
	report := Compose(Input{Given: given(t, "verify.json")})
	text := ""
	for _, absent := range report.Absent {
		text += absent.What + ": " + absent.Remedy + "\n"
	}
	for _, want := range []string{"What each mode costs", "session.json", "--prometheus", "kubectl get analysisruns",
		"pipelines,tasks"} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %q in\n%s", want, text)
		}
	}
	for _, id := range []string{"costs", "session", "range", "analysis", "flow"} {
		if section(report, id) != nil {
			t.Errorf("section %s is there, without anything to show", id)
		}
	}
	for _, figure := range section(report, "papers").Figures {
		if figure.ID == "papers-fault-injection" {
			continue
		}
		if len(figure.Notes) == 0 || !strings.HasPrefix(figure.Notes[0], "Not measured in this report") {
			t.Errorf("%s does not say that it was not measured", figure.ID)
		}
	}
}

// What a part of a section lacks is named, too.
func TestPartsThatAreAbsent(t *testing.T) {
	all := given(t, "results.json", "verify.json")
	all.Results[0].Slices = []sources.Slice{{Mode: "shai", SessionLength: 1, Sessions: 2,
		ProcessSeconds: map[string]float64{"worker": 1}}}
	report := Compose(Input{Given: all})
	text := ""
	for _, absent := range report.Absent {
		text += absent.What + ": " + absent.Remedy + "\n"
	}
	for _, want := range []string{"by phase: give out/bench/session.json", "The latest refusals, each with who, what and why"} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %q in\n%s", want, text)
		}
	}
}

// After one round there are no intervals, and the report says what that means.
func TestOneRound(t *testing.T) {
	all := given(t, "results.json")
	results := &all.Results[0]
	results.Size.Rounds = 1
	for _, entry := range results.Throughput {
		for name, mode := range entry.Modes {
			for _, e := range []*sources.Estimate{mode.Overhead, mode.CPUOverhead, mode.AddedCPUMicrosPerItem} {
				if e != nil {
					e.Low, e.High = nil, nil
				}
			}
			entry.Modes[name] = mode
		}
	}
	report := Compose(Input{Given: all})
	if notes := section(report, "costs").Figures[0].Notes; !strings.Contains(notes[len(notes)-1], "do not rely") {
		t.Errorf("no warning in %q", notes)
	}
	if remark := report.Highlights[1].Remark; !strings.Contains(remark, "do not rely") {
		t.Errorf("no warning in %q", remark)
	}
}
