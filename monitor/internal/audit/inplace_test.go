// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Somebody who may write the log's directory puts something else in place of its files.

// endless is the size of a file that would take all memory, and takes no space.
const endless = 256 << 20

// inLittleMemory fails if something takes as much memory as an endless file has.
func inLittleMemory(t *testing.T, what string, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > endless/8 {
		t.Errorf("%s: it took %d MiB of memory", what, taken>>20)
	}
}

// lengthen makes a file endless.
func lengthen(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, endless); err != nil {
		t.Fatal(err)
	}
}

func lastFile(t *testing.T, directory string) string {
	t.Helper()
	files, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	return files[len(files)-1]
}

func TestEndlessFilesTakeNoMemory(t *testing.T) {
	source := written(t, 30)
	for _, test := range []struct {
		name     string
		lengthen func(t *testing.T, directory string)
		fault    string // "": the records are all there
		reason   string // in the log after the next start
	}{
		{"instead of the head", func(t *testing.T, directory string) {
			writeFile(t, filepath.Join(directory, headName), nil)
			lengthen(t, filepath.Join(directory, headName))
		}, "something else is in its place; keep a copy", "something else is in its place"},
		{"after the head", func(t *testing.T, directory string) {
			lengthen(t, filepath.Join(directory, headName))
		}, "something else is in its place", "something else is in its place"},
		{"instead of the last records", func(t *testing.T, directory string) {
			writeFile(t, lastFile(t, directory), nil)
			lengthen(t, lastFile(t, directory))
		}, "cut off", "were not a record"},
		{"after the last record", func(t *testing.T, directory string) {
			lengthen(t, lastFile(t, directory))
		}, "", "were not a record"},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory := copyLog(t, source)
			test.lengthen(t, directory)
			inLittleMemory(t, "verification", func() {
				v := verified(t, directory)
				if (v.Fault == "") != (test.fault == "") || !strings.Contains(v.Fault, test.fault) {
					t.Errorf("%+v", v)
				}
			})
			inLittleMemory(t, "the next start", func() {
				l := openLog(t, Options{Directory: directory})
				record(t, l, decision("/corpus/after"))
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			})
			got := search(t, directory, Query{Kinds: []Kind{Recovery}})
			if len(got) != 1 || !strings.Contains(got[0].Reason, test.reason) {
				t.Errorf("recovery records: %+v", got)
			}
			if v := verified(t, directory); (v.Fault == "") != (test.fault != "cut off") {
				t.Errorf("after the next start: %+v", v)
			}
		})
	}
}

// What follows the last record is kept, and takes as much space as it took.
func TestHolesAreSetAsideAsHoles(t *testing.T) {
	directory := written(t, 1)
	last := lastFile(t, directory)
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(last, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("evidence"), endless); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := openLog(t, Options{Directory: directory}).Close(); err != nil {
		t.Fatal(err)
	}
	aside, err := filepath.Glob(filepath.Join(directory, "torn-*"))
	if err != nil || len(aside) != 1 {
		t.Fatal(aside, err)
	}
	about, err := os.Stat(aside[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(endless + len("evidence") - len(text)); about.Size() != want {
		t.Errorf("it has %d bytes, not %d", about.Size(), want)
	}
	if space := about.Sys().(*syscall.Stat_t).Blocks * 512; space > 1<<20 {
		t.Errorf("it takes %d bytes", space)
	}
	kept, err := os.Open(aside[0])
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	end := make([]byte, len("evidence"))
	if _, err := kept.ReadAt(end, about.Size()-int64(len(end))); err != nil || string(end) != "evidence" {
		t.Errorf("it ends in %q, %v", end, err)
	}
}

// The monitor may write files that whoever writes the log may not.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	untouched := func(t *testing.T) {
		t.Helper()
		if text, err := os.ReadFile(outside); err != nil || len(text) > 0 {
			t.Errorf("a file outside of the log has %q, %v", text, err)
		}
	}
	writeFile(t, outside, nil)
	t.Run("head", func(t *testing.T) {
		directory := written(t, 1)
		head := filepath.Join(directory, headName)
		if err := os.Remove(head); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, head); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Options{Directory: directory})
		if err == nil {
			t.Error("the log was opened", l.Close())
		} else if !strings.Contains(err.Error(), head) || !strings.Contains(err.Error(), "move it away") {
			t.Error(err)
		}
		untouched(t)
	})
	t.Run("next file", func(t *testing.T) {
		directory := filepath.Join(t.TempDir(), "audit")
		l := openLog(t, Options{Directory: directory, MaxFileSize: 1000})
		for next := 2; next < 50; next++ {
			if err := os.Symlink(outside, fileName(directory, uint64(next))); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 {
			record(t, l, decision(fmt.Sprint("/corpus/", i)))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		untouched(t)
	})
}

// A pipe in place of the head, or of the next file, is not waited for.
func TestPipesAreNotWaitedFor(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "audit")
	l := openLog(t, Options{Directory: directory, MaxFileSize: 1000})
	for next := 2; next < 50; next++ {
		if err := syscall.Mkfifo(fileName(directory, uint64(next)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	directory = written(t, 1)
	head := filepath.Join(directory, headName)
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(head, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Directory: directory}); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Error(err)
	}
}

// Text from a hostile log does not look like what the command says of another one.
func TestFaultsAreOneLine(t *testing.T) {
	forged := "0\n12 345 records in 3 files: the chain is complete"
	for name, prepare := range map[string]func(t *testing.T, directory string){
		"previous": func(t *testing.T, directory string) {
			lines, head := forge(t, decision("/corpus/forged"))
			body, _ := json.Marshal(unsealed{Sequence: 1, Time: newClock().now, Previous: forged})
			lines[0] = sealedWithHash(body)
			replace(t, directory, lines)
			writeFile(t, filepath.Join(directory, headName), []byte(head))
		},
		"seal": func(t *testing.T, directory string) {
			lines, head := forge(t, decision("/corpus/forged"))
			lines[0] = lines[0][:len(lines[0])-20] + "\r\x1b[2Jcomplete" + lines[0][len(lines[0])-7:]
			replace(t, directory, lines)
			writeFile(t, filepath.Join(directory, headName), []byte(head))
		},
		"name": func(t *testing.T, directory string) {
			lines, head := forge(t, decision("/corpus/forged"))
			replace(t, directory, append(lines, "{}\n"))
			writeFile(t, filepath.Join(directory, headName), []byte(head))
			named := filepath.Join(directory, "audit-\n9 records: complete.jsonl")
			if err := os.Rename(fileName(directory, 1), named); err != nil {
				t.Fatal(err)
			}
		},
		"head": func(t *testing.T, directory string) {
			head := headFormat + "\x1b[2J\u202e 1 " + origin + " " + origin + "\n"
			writeFile(t, filepath.Join(directory, headName), []byte(head))
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := written(t, 3)
			if err := os.Remove(KeyFile(directory)); err != nil {
				t.Fatal(err)
			}
			prepare(t, directory)
			v, err := Verify(context.Background(), directory, KeyFile(written(t, 1)))
			if err != nil || v.Fault == "" || strings.ContainsAny(v.Fault, "\n\r\x1b\u202e") {
				t.Errorf("%q, %v", v.Fault, err)
			}
		})
	}
}
