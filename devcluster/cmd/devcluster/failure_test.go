// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overwrite damages the files of a pattern.
func overwrite(t *testing.T, offset int64, pattern ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q: %q, %v", pattern, files, err)
	}
	for _, name := range files {
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte(strings.Repeat("damaged ", 2048)), offset); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedData(t *testing.T) {
	d := newDevcluster(t)
	// Each damage comes on top of those before; the later one is met first.
	tests := []struct {
		name    string
		offset  int64
		pattern []string
		says    string
	}{
		{"of the log of changes", 300, []string{"member", "wal", "*.wal"}, "crc mismatch"},
		{"of the database", 0, []string{"member", "snap", "db"}, "failed to open database"},
	}
	d.up(t)
	d.must(t, "down")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			overwrite(t, test.offset, append([]string{d.directory.Data()}, test.pattern...)...)
			got := d.run("up")
			if got.code != 1 {
				t.Error(got)
			}
			contains(t, got.stderr, test.says, "move "+d.directory.Data()+" away")
			if status, _ := d.status(t); status.Running {
				t.Errorf("it runs: %+v", status)
			}
		})
	}
	t.Run("the remedy helps", func(t *testing.T) {
		if err := os.Rename(d.directory.Data(), d.directory.Data()+".away"); err != nil {
			t.Fatal(err)
		}
		d.up(t)
	})
}

func TestADirectoryThatCannotBeUsed(t *testing.T) {
	d := newDevcluster(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.Mkdir(filepath.Join(foreign, "photographs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		filepath.Join(file, "below"): "not a directory",
		"/proc/devcluster":           "/proc/devcluster", // where nobody may make anything
		foreign:                      "files that are not a devcluster's",
	} {
		got := d.run("up", "--directory", path)
		if got.code != 1 {
			t.Error(got)
		}
		contains(t, got.stderr, path, says, "name ", "--directory")
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
		t.Errorf("a foreign folder was changed: %v (%v)", entries, err)
	}
}

func TestUnknownOutput(t *testing.T) {
	d := newDevcluster(t)
	for _, command := range []string{"up", "status"} {
		got := d.run(command, "--output", "yaml")
		if got.code != 1 {
			t.Error(got)
		}
		contains(t, got.stderr, `"yaml"`, "--output", "text or json")
	}
	if status, _ := d.status(t); status.Running {
		t.Error("up with an unknown output has started one")
	}
}

func TestServeIsNotForPeople(t *testing.T) {
	d := newDevcluster(t)
	got := d.run("serve")
	if got.code != 1 {
		t.Error(got)
	}
	contains(t, got.stderr, "devcluster up")
}
