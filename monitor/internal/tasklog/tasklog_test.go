// SPDX-License-Identifier: BSD-2-Clause

package tasklog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A log and the one before it stay within their limit, and keep what was written last.
func TestTaskLogIsLimited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "task.log")
	for range 2 { // the second is a restart: it goes on where the first one stopped
		log, err := Open(path, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if _, err := fmt.Fprintf(log, "line %3d\n", i); err != nil {
				t.Fatal(err)
			}
		}
		log.Close()
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	if len(now) > 100 || len(before) > 100 || len(before) < 90 {
		t.Errorf("%d and %d bytes", len(now), len(before))
	}
	if all := string(before) + string(now); all[len(all)-9:] != "line  29\n" || len(all) < 100 {
		t.Errorf("%q", all)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 3 || entries[0].Name() != lastName {
		t.Errorf("%v, %v", entries, err)
	}
}

// The log that was opened before is kept, whatever the times of the files say.
func TestTheLastLogOfAnotherLabelIsKept(t *testing.T) {
	directory := t.TempDir()
	early := time.Unix(1_000_000_000, 0)
	write := func(name string, at time.Time) {
		path := filepath.Join(directory, name)
		log, err := Open(path, 4)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for range 2 { // the second rotates the log
			if _, err := log.Write([]byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ opens, left string }{
		{"a.log", "a.log a.log.1 last"},
		{"b.log", "a.log a.log.1 b.log b.log.1 last"},
		{"c.log", "b.log b.log.1 c.log c.log.1 last"},
		{"c.log", "b.log b.log.1 c.log c.log.1 last"},
		{"b.log", "b.log b.log.1 c.log c.log.1 last"},
		{"a.log", "a.log a.log.1 b.log b.log.1 last"},
		{"b.log", "a.log a.log.1 b.log b.log.1 last"},
	} {
		write(step.opens, early)
		early = early.Add(-time.Hour)
		entries, err := os.ReadDir(directory)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, entry := range entries {
			left = append(left, entry.Name())
		}
		if got := strings.Join(left, " "); got != step.left {
			t.Errorf("%s was opened: %s are left, want %s", step.opens, got, step.left)
		}
	}
}

func TestALineLongerThanTheLimitIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.log")
	log, err := Open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Write(make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	if about, err := os.Stat(path); err != nil || about.Size() != 50 {
		t.Errorf("%v, %v", about, err)
	}
}

// A log that could not be written for a while goes on.
func TestTaskLogGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.log")
	log, err := Open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	writes := func() error {
		_, err := log.Write([]byte("a line\n"))
		return err
	}
	inTheWay := filepath.Join(path+rotated, "directory")
	if err := errors.Join(writes(), os.MkdirAll(inTheWay, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := writes(); err == nil {
		t.Error("rotated onto a directory")
	}
	if err := os.RemoveAll(path + rotated); err != nil {
		t.Fatal(err)
	}
	if err := writes(); err != nil {
		t.Error(err)
	}
}
