// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/page"
)

// busy is a Prometheus that has 500 results for every query, with a value at each instant
// that is asked for.
func busy(t *testing.T) string {
	t.Helper()
	number := func(r *http.Request, name string) float64 {
		value, err := strconv.ParseFloat(r.FormValue(name), 64)
		if err != nil {
			t.Errorf("%s=%q: %v", name, r.FormValue(name), err)
		}
		return value
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/query") && r.FormValue("query") == "time()" {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1772366400,"1772366400"]}}`)
			return
		}
		kind, values := "vector", `"value":[1772366400,"12345.678"]`
		if strings.HasSuffix(r.URL.Path, "/query_range") {
			kind = "matrix"
			var points []string
			for at := number(r, "start"); at <= number(r, "end"); at += number(r, "step") {
				points = append(points, fmt.Sprintf(`[%f,"12345.678"]`, at))
			}
			if len(points) > 1000 {
				t.Errorf("%d points are asked for", len(points))
			}
			values = `"values":[` + strings.Join(points, ",") + `]`
		}
		var results []string
		for i := range 500 {
			results = append(results, fmt.Sprintf(`{"metric":{"mode":"mode %d","reason":"reason %d","path":"p%d","result":"r%d",`+
				`"pipeline":"pipeline %d","policy":"p","session_length":"%d","le":"%d"},%s}`, i, i, i, i, i, i, i, values))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, strings.Join(results, ","))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The largest range of the busiest Prometheus, with a run beside it, is within the size.
func TestReportOfMuch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	var stderr bytes.Buffer
	p := &program{stdout: &bytes.Buffer{}, stderr: &stderr, environment: os.Getenv}
	if code := p.run(t.Context(), []string{"report", "../../internal/report/testdata", "--prometheus", busy(t),
		"--last", "10y", "--file", file}); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	about, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if about.Size() > page.Largest || about.Size() < page.Largest/3 {
		t.Errorf("%d bytes, at most %d expected", about.Size(), page.Largest)
	}
	if about.Mode() != 0o600 {
		t.Errorf("permissions %s: others can read what the audit records name", about.Mode())
	}
}

// What is measured adds no line to what is said of it.
func TestReportsKeepTheirLines(t *testing.T) {
	const text = "x\nwrote y"
	var shown strings.Builder
	printReport(&shown, figure.Report{
		Highlights: []figure.Highlight{{Label: text, Value: text, Remark: text}},
		Absent:     []figure.Absent{{What: text, Remedy: text}},
	}, text)
	want := strings.ReplaceAll("T: T (T)\nnot in it: T; T\nwrote T\n", "T", `x\nwrote y`)
	if shown.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}
}

// Objects come from the standard input, and figures go to the standard output.
func TestReportFigures(t *testing.T) {
	input, err := os.Open("../../internal/report/testdata/objects.json")
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	var stdout, stderr bytes.Buffer
	p := &program{stdin: input, stdout: &stdout, stderr: &stderr, environment: os.Getenv}
	if code := p.run(t.Context(), []string{"report", "-", "--output", "json"}); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	var figures struct {
		Sections []struct{ ID string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &figures); err != nil {
		t.Fatal(err)
	}
	if found, want := fmt.Sprint(figures.Sections), "[{stopped} {papers} {analysis} {flow} {method}]"; found != want {
		t.Errorf("sections %s, want %s", found, want)
	}
}
