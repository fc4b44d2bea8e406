// SPDX-License-Identifier: BSD-2-Clause

package directory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResolve(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, given string
		environment map[string]string
		want        string
	}{
		{"the flag wins", "/flag", map[string]string{Variable: "/variable", "XDG_STATE_HOME": "/state"}, "/flag"},
		{"then the variable", "", map[string]string{Variable: "/variable", "XDG_STATE_HOME": "/state"}, "/variable"},
		{"then the user's state", "", map[string]string{"XDG_STATE_HOME": "/state"}, "/state/shai/devcluster"},
		{"then its default", "", nil, filepath.Join(home, ".local/state/shai/devcluster")},
		{"made absolute and clean", "/a/../b/", nil, "/b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Resolve(test.given, func(name string) string { return test.environment[name] })
			if err != nil || string(got) != test.want {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	foreign := filepath.Join(base, "foreign")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(foreign, "photographs"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		path  string
		wrong string // part of the error, empty when it works
	}{
		{"a new one", filepath.Join(base, "new", "deep"), ""},
		{"the same again", filepath.Join(base, "new", "deep"), ""},
		{"an empty one", t.TempDir(), ""},
		{"somebody's folder", foreign, "holds files that are not a devcluster's"},
		{"a file", file, "not a directory"},
		{"below a file", filepath.Join(file, "below"), "not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := Directory(test.path).Create()
			if test.wrong == "" && err != nil {
				t.Error(err)
			}
			if test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) ||
				!strings.Contains(err.Error(), "--directory")) {
				t.Errorf("got the error %v, want one with %q and a remedy", err, test.wrong)
			}
		})
	}
	info, err := os.Stat(filepath.Join(base, "new", "deep"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v (%v), want 0700", info.Mode().Perm(), err)
	}
}

func TestStateIsRemembered(t *testing.T) {
	d := Directory(t.TempDir())
	if got, err := d.State(); err != nil || got != (State{}) {
		t.Errorf("an empty directory remembers %v (%v)", got, err)
	}
	want := State{Port: 4711, Started: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC), Ready: true, Process: 12}
	if err := d.Remember(want); err != nil {
		t.Fatal(err)
	}
	if got, err := d.State(); err != nil || got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	if err := os.WriteFile(d.state(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.State(); err == nil || !strings.Contains(err.Error(), "remove that file") {
		t.Errorf("a damaged state gives %v, want an error with a remedy", err)
	}
}

func TestReplaceLeavesNothingElse(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	for _, content := range []string{"first", "second"} {
		if err := Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q (%v), want %q", got, err, content)
		}
	}
	if err := Replace(filepath.Join(path, "below a file"), nil); err == nil {
		t.Error("writing below a file went well")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want one file", entries, err)
	}
}

func TestLastWords(t *testing.T) {
	tests := []struct{ name, log, want string }{
		{"etcd's own, not its panic", `{"level":"panic","msg":"failed to open database","error":"invalid database"}
panic: failed to open database

goroutine 226 [running]:
main.main()`, "failed to open database: invalid database"},
		{"a panic", "I0102 fine\npanic: no luck\n\ngoroutine 1 [running]:\n\tmain.main()", "panic: no luck"},
		{"the API server's fatal line", "F0102 15:04:05.0 1 x.go:1] cannot\ngoroutine 1 [running]:",
			"F0102 15:04:05.0 1 x.go:1] cannot"},
		{"the runtime's", "fatal error: out of memory\n\nruntime stack:", "fatal error: out of memory"},
		{"nothing special", "first\nlast\n", "last"},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := Directory(t.TempDir())
			if err := d.Create(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.Log(), []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := d.LastWords(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
