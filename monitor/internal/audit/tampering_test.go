// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A tamperer may write the log's directory, and cannot read the key beside it.

// copyLog copies a log, with what is beside it, into a new directory.
func copyLog(t testing.TB, from string) string {
	t.Helper()
	parent, err := os.MkdirTemp(t.TempDir(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(parent, "audit")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []func(string) string{KeyFile, witnessFile} {
		if content, err := os.ReadFile(path(from)); err == nil {
			writeFile(t, path(to), content)
		}
	}
	return to
}

// written makes a log of several files and returns its directory.
func written(t testing.TB, records int) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "audit")
	l := openLog(t, Options{Directory: directory, MaxFileSize: 3000})
	for i := range records {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return directory
}

// content returns all lines of a log.
func content(t testing.TB, directory string) []string {
	t.Helper()
	files, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")...)
		all[len(all)-1] += "\n"
	}
	return all
}

// replace makes lines the whole log, in one file. The heads stay.
func replace(t testing.TB, directory string, lines []string) {
	t.Helper()
	files, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, fileName(directory, 1), []byte(strings.Join(lines, "")))
}

// Whatever is done to the lines of a log, Verify finds it; the unchanged twin, in other
// files, has no fault. Opening the log hides nothing.
func TestEveryChangeOfLinesIsFound(t *testing.T) {
	source := written(t, 30)
	all := content(t, source)
	rapid.Check(t, func(rt *rapid.T) {
		directory := copyLog(t, source)
		changed := append([]string{}, all...)
		i := rapid.IntRange(0, len(changed)-1).Draw(rt, "line")
		j := rapid.IntRange(0, len(changed)-1).Filter(func(j int) bool { return j != i }).Draw(rt, "other line")
		what := rapid.SampledFrom([]string{"nothing", "byte", "removed", "swapped", "repeated", "tail", "beginning",
			"truncated", "replaced"}).Draw(rt, "change")
		switch what {
		case "byte":
			text := []byte(changed[i])
			at := rapid.IntRange(0, len(text)-1).Draw(rt, "position")
			text[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
			changed[i] = string(text)
		case "removed":
			changed = append(changed[:i], changed[i+1:]...)
		case "swapped":
			changed[i], changed[j] = changed[j], changed[i]
		case "repeated":
			changed = append(changed[:i+1], append([]string{changed[j]}, changed[i+1:]...)...)
		case "tail":
			changed = changed[:i]
		case "beginning":
			changed = changed[i+1:]
		case "truncated":
			changed = append(changed[:i], changed[i][:rapid.IntRange(0, len(changed[i])-1).Draw(rt, "bytes")])
		case "replaced":
			changed[i] = changed[j]
		}
		replace(t, directory, changed)
		for _, when := range []string{"at once", "after the next start"} {
			if v := verified(t, directory); (v.Fault == "") != (what == "nothing") {
				rt.Fatalf("%s, line %d: %s: %+v", what, i+1, when, v)
			}
			l := openLog(t, Options{Directory: directory})
			record(t, l, decision("/corpus/after"))
			if err := l.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// forge makes a chain with hashes only, which needs no key.
func forge(t testing.TB, events ...Event) (lines []string, head string) {
	t.Helper()
	previous := origin
	for i, event := range events {
		body, err := json.Marshal(unsealed{Sequence: uint64(i + 1), Time: newClock().now, Previous: previous,
			Event: event})
		if err != nil {
			t.Fatal(err)
		}
		previous = fmt.Sprintf("%x", sha256.Sum256(body))
		lines = append(lines, sealedWithHash(body))
	}
	return lines, fmt.Sprintf(unkeyedFormat, len(events), previous)
}

// sealedWithHash returns the line of a record, whatever it says.
func sealedWithHash(body []byte) string {
	return fmt.Sprintf("%s%s%x%s\n", body[:len(body)-1], hashPrefix, sha256.Sum256(body), lineEnd)
}

// appendUnkeyed puts a record that needs no key after the first few of a log.
func appendUnkeyed(t *testing.T, directory string, keep int) {
	t.Helper()
	kept := content(t, directory)[:keep]
	last, err := mustKey(t, directory).open([]byte(strings.TrimSuffix(kept[keep-1], "\n")))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(unsealed{Sequence: uint64(keep + 1), Time: newClock().now, Previous: last.MAC,
		Event: decision("/corpus/forged")})
	if err != nil {
		t.Fatal(err)
	}
	replace(t, directory, append(kept, sealedWithHash(body)))
}

func TestReplacedLogIsFound(t *testing.T) {
	source := written(t, 10)
	other := written(t, 10)
	for _, test := range []struct {
		name    string
		witness bool // it takes the head beside the log to find this
		tamper  func(t *testing.T, directory string)
	}{
		{"by a chain without a key", false, func(t *testing.T, directory string) {
			lines, head := forge(t, decision("/corpus/forged"), decision("/corpus/forged"))
			replace(t, directory, lines)
			writeFile(t, filepath.Join(directory, headName), []byte(head))
		}},
		{"by an empty log", false, func(t *testing.T, directory string) {
			replace(t, directory, nil)
			writeFile(t, filepath.Join(directory, headName), nil)
		}},
		{"by nothing", false, func(t *testing.T, directory string) {
			if err := os.RemoveAll(directory); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"by another monitor's", false, func(t *testing.T, directory string) {
			replace(t, directory, content(t, other))
			head, _ := os.ReadFile(filepath.Join(other, headName))
			writeFile(t, filepath.Join(directory, headName), head)
		}},
		{"its end by a record without a key", false, func(t *testing.T, directory string) {
			appendUnkeyed(t, directory, 5)
			writeFile(t, filepath.Join(directory, headName), nil)
		}},
		{"by itself and a record without a key", false, func(t *testing.T, directory string) {
			appendUnkeyed(t, directory, 10)
		}},
		{"by an earlier copy", true, func(t *testing.T, directory string) {
			earlier := copyLog(t, directory)
			l := openLog(t, Options{Directory: directory})
			record(t, l, decision("/corpus/to be hidden"))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(directory); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(directory, os.DirFS(earlier)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory := copyLog(t, source)
			if v := verified(t, directory); v.Fault != "" {
				t.Fatalf("before: %s", v.Fault)
			}
			test.tamper(t, directory)
			if v := verified(t, directory); v.Fault == "" {
				t.Errorf("not found: %+v", v)
			}
			copied := copyLog(t, directory)
			if err := os.Remove(witnessFile(copied)); err != nil {
				t.Fatal(err)
			}
			if v := verified(t, copied); (v.Fault == "") != test.witness {
				t.Errorf("without the head beside the log: %+v", v)
			}
			l := openLog(t, Options{Directory: directory})
			record(t, l, decision("/corpus/after"))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if v := verified(t, directory); v.Fault == "" {
				t.Error("opening the log hid that it was replaced")
			}
		})
	}
}

func mustKey(t testing.TB, directory string) *Key {
	t.Helper()
	key, err := ReadKey(KeyFile(directory))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// An unkeyed line must not pass for a keyed one because its text names a mac.
func TestSealIsReadFromTheEndOfALine(t *testing.T) {
	body := `{"sequence":1,"time":"2026-03-01T12:00:00Z","previous":"` + origin + `","kind":"denial","mac":"` + origin + `"}`
	line := fmt.Sprintf(`%s%s%x%s`, body[:len(body)-1], hashPrefix, sha256.Sum256([]byte(body)), lineEnd)
	found, err := mustKey(t, written(t, 1)).open([]byte(line))
	if err != nil || found.MAC != "" || found.Hash == "" {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestVerifyingElsewhere(t *testing.T) {
	source := written(t, 10)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(context.Background(), elsewhere, KeyFile(source))
	if err != nil || v.Fault != "" || v.Records != 10 {
		t.Errorf("with the key: %+v, %v", v, err)
	}
	_, err = Verify(context.Background(), elsewhere, "")
	if err == nil || !strings.Contains(err.Error(), "--audit-key") {
		t.Errorf("without the key: %v", err)
	}
	v, err = Verify(context.Background(), elsewhere, KeyFile(written(t, 1)))
	if err != nil || !strings.Contains(v.Fault, "altered, or was written with another key") {
		t.Errorf("with another key: %+v, %v", v, err)
	}
}

func TestKeyIsMadeOnceAndKeptFromOthers(t *testing.T) {
	directory := written(t, 1)
	key, err := os.ReadFile(KeyFile(directory))
	if err != nil {
		t.Fatal(err)
	}
	if about, err := os.Stat(KeyFile(directory)); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", about.Mode(), err)
	}
	l := openLog(t, Options{Directory: directory})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(KeyFile(directory)); string(again) != string(key) {
		t.Error("the key is another one after the second start")
	}
	if err := os.Chmod(KeyFile(directory), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Directory: directory}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.Remove(KeyFile(directory)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Directory: directory}); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a lost key: %v", err)
	}
	writeFile(t, KeyFile(directory), nil)
	if _, err := Open(Options{Directory: directory}); err == nil || !strings.Contains(err.Error(), "is not a key") {
		t.Errorf("an empty key: %v", err)
	}
	if err := os.Truncate(KeyFile(directory), endless); err != nil {
		t.Fatal(err)
	}
	inLittleMemory(t, "the start", func() {
		_, err := Open(Options{Directory: directory})
		if err == nil || !strings.Contains(err.Error(), "from a backup") {
			t.Errorf("an endless key: %v", err)
		}
	})
	writeFile(t, KeyFile(directory), key)
	l = openLog(t, Options{Directory: directory})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// testdata/unkeyed was written by a monitor that had no key.
func TestUnkeyedLogIsVerifiedAndContinued(t *testing.T) {
	old := copyLog(t, "testdata/unkeyed")
	if v := verified(t, old); v.Fault != "" || v.Records != 8 || v.Unkeyed != 8 {
		t.Fatalf("before it has a key: %+v", v)
	}
	directory := copyLog(t, old)
	l := openLog(t, Options{Directory: directory})
	if v, err := l.Verify(context.Background()); err != nil || v.Fault != "" || v.Records != 9 || v.Unkeyed != 8 {
		t.Errorf("after the first start with a key: %+v, %v", v, err)
	}
	record(t, l, decision("/corpus/keyed"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := search(t, directory, Query{})
	if len(got) != 10 || got[8].Kind != Recovery || got[9].MAC == "" || got[7].Hash == "" {
		t.Errorf("records: %+v", got)
	}
	all := content(t, directory)
	for i := range all {
		changed := copyLog(t, directory)
		replace(t, changed, append(append([]string{}, all[:i]...), all[i+1:]...))
		if v := verified(t, changed); v.Fault == "" {
			t.Errorf("record %d of %d is removed and nothing was found", i+1, len(all))
		}
	}
	// The old records, made anew: the first one with a seal does not follow them.
	forged, _ := forge(t, make([]Event, 8)...)
	replace(t, directory, append(forged, all[8:]...))
	if v := verified(t, directory); v.Fault == "" {
		t.Error("the records without a key were replaced and nothing was found")
	}
}
