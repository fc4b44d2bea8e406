// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

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
