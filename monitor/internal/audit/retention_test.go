// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a log that keeps about eight files of three records.
func small(directory string) Options {
	return Options{Directory: directory, MaxSize: 16 << 10, MaxFileSize: 2 << 10}
}

// size returns the bytes of a log's records.
func size(t testing.TB, directory string) (total int64) {
	t.Helper()
	files, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		about, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += about.Size()
	}
	return total
}

// retained makes a log whose oldest files have been removed.
func retained(t testing.TB) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "audit")
	for i := range 4 { // several starts
		l := openLog(t, small(directory))
		for j := range 40 {
			record(t, l, decision(fmt.Sprint("/corpus/", 40*i+j)))
			// A file is full when a record exceeds its size.
			if got := size(t, directory); got > small(directory).MaxSize+512 {
				t.Fatalf("the log has %d bytes", got)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, directory); v.Fault != "" {
			t.Fatalf("after start %d: %s", i+1, v.Fault)
		}
	}
	return directory
}

func TestOldestFilesAreRemovedAndTheChainStaysComplete(t *testing.T) {
	directory := retained(t)
	v := verified(t, directory)
	if v.First < 100 || v.First+v.Records-1 < 160 {
		t.Errorf("nothing, or too much, was removed: %+v", v)
	}
	removals := search(t, directory, Query{Kinds: []Kind{Retention}})
	if last := removals[len(removals)-1].Removed; last.Through != v.First-1 || last.Seal == "" || last.Bytes == 0 {
		t.Errorf("the last removal is %+v, the first record is %d", last, v.First)
	}
	if got := search(t, directory, Query{Kinds: []Kind{Decision}}); got[len(got)-1].Conduit != "/corpus/159" {
		t.Errorf("the last record is %+v", got[len(got)-1])
	}
}

// A file that the monitor has not removed is missed, whichever it is.
func TestRemovingMoreThanRetentionIsFound(t *testing.T) {
	source := retained(t)
	files, err := list(source)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		directory := copyLog(t, source)
		for _, file := range files[:i+1] {
			if err := os.Remove(filepath.Join(directory, filepath.Base(file))); err != nil {
				t.Fatal(err)
			}
		}
		if v := verified(t, directory); v.Fault == "" {
			t.Errorf("the first %d of %d files are removed: %+v", i+1, len(files), v)
		}
		one := copyLog(t, source)
		if err := os.Remove(filepath.Join(one, filepath.Base(files[i]))); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, one); v.Fault == "" {
			t.Errorf("file %d of %d is removed: %+v", i+1, len(files), v)
		}
	}
}

// A record of the kind Retention that has no seal removes nothing.
func TestForgedRetentionIsFound(t *testing.T) {
	source := retained(t)
	all := content(t, source)
	forged, _ := forge(t, Event{Kind: Retention, Removed: &Removal{Through: 1 << 40}})
	for _, lines := range [][]string{append(all[20:], forged...), append(forged, all[20:]...)} {
		directory := copyLog(t, source)
		replace(t, directory, lines)
		if v := verified(t, directory); v.Fault == "" {
			t.Errorf("not found: %+v", v)
		}
	}
}

// A monitor that was killed between the record and the removal leaves files that it may
// remove: with each of them the chain is complete.
func TestInterruptedRetentionIsContinued(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "audit")
	l := openLog(t, Options{Directory: directory, MaxFileSize: 2 << 10})
	for i := range 100 {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before := copyLog(t, directory)
	l = openLog(t, small(directory)) // removes files
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	first := verified(t, directory).First
	if first == 1 {
		t.Fatal("nothing was removed")
	}
	files, _ := list(before)
	for i := len(files) - 1; i >= 0; i-- { // the removed files come back, the latest first
		path := filepath.Join(directory, filepath.Base(files[i]))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		text, _ := os.ReadFile(files[i])
		writeFile(t, path, text)
		if v := verified(t, directory); v.Fault != "" || v.First >= first {
			t.Fatalf("with %s: %+v", filepath.Base(path), v)
		}
	}
	l = openLog(t, small(directory))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if v := verified(t, directory); v.Fault != "" || v.First < first {
		t.Errorf("after another start: %+v", v)
	}
}

// Retention also works on a log that begins with records without a key.
func TestRetentionOfAnUnkeyedLog(t *testing.T) {
	directory := copyLog(t, "testdata/unkeyed")
	l := openLog(t, Options{Directory: directory, MaxSize: 4000, MaxFileSize: 1500})
	var after []uint64
	for i := range 20 {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
		v, err := l.Verify(context.Background())
		if err != nil || v.Fault != "" {
			t.Fatalf("after %d records: %+v, %v", i+1, v, err)
		}
		after = append(after, v.First)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(after), " 5 ") {
		t.Errorf("the log never began with its second file, whose records have no key: %v", after)
	}
}

// Readers and verifications that are on their way when files are removed see no error.
func TestReadingWhileFilesAreRemoved(t *testing.T) {
	l := openLog(t, small(t.TempDir()))
	done := make(chan error)
	go func() {
		for i := range 400 {
			if err := l.Append(decision(fmt.Sprint("/corpus/", i))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for reading := true; reading; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			reading = false
		default:
		}
		if v, err := l.Verify(context.Background()); err != nil || v.Fault != "" {
			t.Fatalf("verify: %+v, %v", v, err)
		}
		for _, query := range []Query{{}, {Limit: 10}} {
			if err := l.Query(context.Background(), query, func(Record) error { return nil }); err != nil {
				t.Fatalf("query: %v", err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
