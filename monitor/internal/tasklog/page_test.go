// SPDX-License-Identifier: BSD-2-Clause

package tasklog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The end of a log is read across its two files, from the beginning of a line on.
func TestReadTaskLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.log")
	if page, err := Read(path, "", 10); len(page.Text) != 0 || page.Before != "" || err != nil {
		t.Errorf("no log: %+v, %v", page, err)
	}
	write(t, path+rotated, "first\nsecond\n")
	write(t, path, "third\nlast\n")
	for _, test := range []struct {
		limit int64
		want  string
		more  bool
	}{
		{100, "first\nsecond\nthird\nlast\n", false},
		{24, "first\nsecond\nthird\nlast\n", false},
		{15, "third\nlast\n", true},
		{8, "last\n", true},
		{3, "st\n", true}, // of a line that is longer
	} {
		page, err := Read(path, "", test.limit)
		if string(page.Text) != test.want || (page.Before != "") != test.more || err != nil {
			t.Errorf("%d bytes: %+v, %v", test.limit, page, err)
		}
	}
}

func write(t interface{ Fatal(...any) }, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The pages of a log, from its end to its beginning, are the whole log, also while it grows.
func TestPagesAreTheWholeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		directory, err := os.MkdirTemp("", "pages")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(directory)
		path := filepath.Join(directory, "task.log")
		older := rapid.StringMatching("([a-c]{0,9}\n){0,20}").Draw(t, "older")
		newer := rapid.StringMatching("([a-c]{0,30}\n){0,20}[a-c]?").Draw(t, "newer")
		limit := rapid.Int64Range(1, 50).Draw(t, "limit")
		write(t, path+rotated, older)
		write(t, path, newer)
		read, place := "", ""
		for {
			page, err := Read(path, place, limit)
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(page.Text)) > limit {
				t.Fatalf("%d bytes", len(page.Text))
			}
			read = string(page.Text) + read
			if place = page.Before; place == "" {
				break
			}
			write(t, path, newer+"more")
		}
		if read != older+newer {
			t.Fatalf("%q instead of %q", read, older+newer)
		}
	})
}

// A place in a log whose older half was removed is no longer there.
func TestPlacesThatAreGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.log")
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	write(t, path, text.String())
	page, err := Read(path, "", 100)
	if err != nil || page.Before == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	write(t, path, text.String()[500:])
	if _, err := Read(path, page.Before, 100); !errors.Is(err, ErrMoved) {
		t.Errorf("after a rotation: %v", err)
	}
	for _, place := range []string{"x", "-1-00", "10-0011223344556677", "9999999-0011223344556677"} {
		if page, err := Read(path, place, 100); err == nil {
			t.Errorf("%s: %+v", place, page)
		}
	}
}

func TestPreviousLog(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"a.log", "b.log"} {
		log, err := Open(filepath.Join(directory, name), 100)
		if err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	for present, want := range map[string]string{"b.log": "a.log", "c.log": "b.log"} {
		got, err := Previous(filepath.Join(directory, present))
		if filepath.Base(got) != want || err != nil {
			t.Errorf("before %s: %s, %v", present, got, err)
		}
	}
	if got, err := Previous(filepath.Join(directory, "absent", "a.log")); got != "" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
