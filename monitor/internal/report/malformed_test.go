// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"shai.dev/monitor/internal/report/page"
	"shai.dev/monitor/internal/report/sources"
)

// A figure that is none is an error that names its file and its field, and no figure of the report.
func TestFiguresAreWellFormed(t *testing.T) {
	for _, test := range []struct{ file, field, to, want string }{
		{"results.json", "addedPerSession.shai", `{"estimate": 5, "low": -1}`, "both low and high, or neither"},
		{"results.json", "addedPerSession.shai", `{"estimate": 5, "low": 7, "high": 6}`, "low (7) is above high (6)"},
		{"results.json", "addedPerSession.shai", "null", "it has no value"},
		{"results.json", "throughput[0].shai.overhead", `{"estimate": 5, "high": 7}`, "both low and high, or neither"},
		{"results.json", "throughput[1].shai.latencyMilliseconds.p50", "null", "it has no value"},
		{"results.json", "throughput[0].baseline.latencyMilliseconds.p99", "{}", "it has no value"},
		{"session.json", "added_cpu_us_per_session", `{"value": "5"}`, "an object of numbers"},
		{"session.json", "sessions_per_second.forked", `{"value": 1e999}`, "an object of numbers"},
		{"session.json", "sessions_per_second.shai", `7`, "an object of numbers"},
	} {
		var all sources.All
		err := all.Add("x.json", replaced(t, test.file, test.field, test.to))
		want := "read x.json: " + test.file + ": " + test.field + ": "
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s = %s: error %v, want %s…%s", test.field, test.to, err, want, test.want)
		}
	}
}

// An error says what is wrong and where, and does not repeat a text of megabytes.
func TestErrorsAreBrief(t *testing.T) {
	long := strings.Repeat("ä", 1_500_000)
	quoted := strconv.Quote(long)
	for name, text := range map[string]string{
		"audit record": `{"sequence": 1, "previous": "", "time": ` + quoted + `}`,
		"leak attempt": `{"leak": {"audit": {"time": ` + quoted + `}}}`,
		"AnalysisRun":  `{"kind": "AnalysisRun", "status": {"startTime": ` + quoted + `}}`,
		"latency":      `{"format": 4, "throughput": [{"sessionLength": 1}], "latency": [{"mode": ` + quoted + `, "bounds": [1]}]}`,
		"results.json": `{"format": 4, "throughput": [{"sessionLength": 1, ` + quoted + `: 7}]}`,
		"samples.csv":  "round,order,mode,session_length,sessions,process_cpu_seconds\n1,1,m," + long + ",1,\"{}\"\n",
		"JSON":         `{"sequence": 1, ` + quoted,
		"YAML":         "a: *" + long,
	} {
		var all sources.All
		err := all.Add("x.json", []byte(text))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		said := err.Error()
		if len(said) > 1200 || !utf8.ValidString(said) || !strings.HasPrefix(said, "read x.json: ") ||
			!strings.Contains(said, name) {
			t.Errorf("%s: %d bytes: %.300q", name, len(said), said)
		}
		if name == "JSON" && !strings.HasSuffix(said, "or leave it out") {
			t.Errorf("the advice is missing: %q", said)
		}
		if name == "YAML" && !errors.Is(err, sources.ErrUnknown) {
			t.Errorf("it is not told from others: %q", said)
		}
	}
}

// replaced returns a file of testdata with another value of a field.
func replaced(t *testing.T, file, field, to string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(field), ".")
	within := value
	for _, name := range names[:len(names)-1] {
		if list, is := within.([]any); is {
			at, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			within = list[at]
		} else {
			within = within.(map[string]any)[name]
		}
	}
	within.(map[string]any)[names[len(names)-1]] = json.RawMessage(to)
	changed, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// A small file can name more modes and session lengths than there is memory for their tables: an error
// names the file, also if each of several files is small enough.
func TestTablesHaveAnEnd(t *testing.T) {
	many := func(form string) string {
		var list []string
		for i := range 500 {
			list = append(list, strings.ReplaceAll(form, "#", strconv.Itoa(i)))
		}
		return strings.Join(list, ",")
	}
	lines := "round,order,mode,session_length,sessions,process_cpu_seconds\n"
	for i := range 500 {
		lines += fmt.Sprintf("1,1,m%d,1,1,\"{\"\"p%d\"\": 1}\"\n", i, i)
	}
	lengths := `{"sessionLength": 1}`
	for name, texts := range map[string][]string{
		"throughput": {`{"format": 4, "throughput": [{"sessionLength": 1, ` + many(`"m#": {}`) + `}, ` +
			many(`{"sessionLength": #}`) + `]}`},
		"latency": {`{"format": 4, "throughput": [` + lengths + `], "latency": [` +
			many(`{"mode": "m#", "sessionLength": 1, "boundsMilliseconds": [#], "counts": [1, 0]}`) + `]}`},
		"samples": {`{"format": 4, "throughput": [` + lengths + `], "samples": [` +
			many(`{"mode": "m#", "session_length": 1, "sessions": 1, "process_cpu_seconds": {"p#": 1}}`) + `]}`},
		"samples.csv": {lines},
		"of 450 by 300": {
			`{"format": 4, "throughput": [{` + strings.Join(strings.Split(many(`"m#": {}`), ",")[:450], ",") + `}, ` +
				strings.Join(strings.Split(many(`{"sessionLength": #}`), ",")[:299], ",") + `]}`},
	} {
		var all sources.All
		var err error
		for _, text := range slices.Repeat(texts, 2) {
			err = cmp.Or(err, all.Add("x", []byte(text)))
		}
		if err == nil || !strings.HasPrefix(err.Error(), "read x: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A distribution has at most twelve curves, those of the most queries, and says of how many.
func TestCurvesOfADistribution(t *testing.T) {
	var list []string
	for i := range 14 {
		list = append(list, fmt.Sprintf(`{"mode": "m%02d", "sessionLength": 1, "boundsMilliseconds": [1], "counts": [%d, 0]}`,
			i, 100-i%13))
	}
	var all sources.All
	if err := all.Add("x", []byte(`{"format": 4, "throughput": [{"sessionLength": 1}], "latency": [`+
		strings.Join(list, ",")+`]}`)); err != nil {
		t.Fatal(err)
	}
	figures := distributions("x", all.Results[0].Latency)
	var names []string
	for _, column := range figures[0].Columns {
		names = append(names, column.Title)
	}
	want := []string{"m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m13"}
	if !slices.Equal(names, want) || !slices.Contains(figures[0].Notes, "The 12 largest of 14 curves.") {
		t.Errorf("curves %v, notes %v", names, figures[0].Notes)
	}
}

// Whatever a file says, it becomes a report or an error that names it. The seeds are the files
// of testdata, and these with one value after the other changed.
func FuzzRead(f *testing.F) {
	for _, file := range everything {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		var value any
		if json.Unmarshal(text, &value) != nil {
			continue // samples.csv
		}
		for _, changed := range variants(value) {
			f.Add(changed)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all sources.All
		if err := all.Add("x", []byte(text)); err != nil {
			if !strings.HasPrefix(err.Error(), "read x: ") {
				t.Errorf("error %v", err)
			}
			return
		}
		if _, err := page.Render(Compose(Input{Given: all})); err != nil && len(text) < page.Largest/100 {
			t.Errorf("a report of %d bytes: %v", len(text), err)
		}
	})
}

// others take the place of values.
var others = []string{"null", "-1", "1e308", `""`, "[]", "{}", "[null]", "9223372036854775807", "true",
	`"\u001b[2J\n</script>\u202e"`, `{"estimate": 5, "low": -1}`, `{"value": 5, "high": -1}`}

// variants returns a text for each place within a value, with something else there. Of lists
// the first items are changed.
func variants(root any) []string {
	var found []string
	change := func(set func(any), was any) {
		set(json.RawMessage(others[len(found)%len(others)]))
		text, err := json.Marshal(root)
		if err != nil {
			panic(err)
		}
		set(was)
		found = append(found, string(text))
	}
	var visit func(any)
	visit = func(value any) {
		switch within := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(within)) {
				change(func(to any) { within[name] = to }, within[name])
				visit(within[name])
			}
		case []any:
			for i := range min(len(within), 2) {
				change(func(to any) { within[i] = to }, within[i])
				visit(within[i])
			}
		}
	}
	visit(root)
	return found
}
