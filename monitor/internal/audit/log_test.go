// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// clock shows the same time until a test moves it.
type clock struct {
	mutex sync.Mutex
	now   time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

func openLog(t testing.TB, options Options) *Log {
	t.Helper()
	l, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func record(t testing.TB, l *Log, events ...Event) {
	t.Helper()
	for _, e := range events {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, directory string, query Query) []Record {
	t.Helper()
	var records []Record
	from := source{directory: directory}
	if key, err := ReadKey(KeyFile(directory)); err == nil {
		from.key = key
	}
	_, err := backlog(context.Background(), from, query, func(r Record) error {
		records = append(records, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func verified(t testing.TB, directory string) Verification {
	t.Helper()
	v, err := Verify(context.Background(), directory, "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func denial(conduit string) Event {
	return Event{Kind: Denial, Pipeline: "syse", Task: "worker", Instance: "worker(bob, us)", Principal: "bob",
		Operation: "open", Conduit: conduit, Policy: `private(owner: "alice")`, Reason: "no read clause holds"}
}

func decision(conduit string) Event {
	return Event{Kind: Decision, Task: "worker", Principal: "alice", Operation: "open", Conduit: conduit, Allowed: true,
		Facts: []string{`"friends/bob" says friend("alice")`}, LatencyMicroseconds: 41}
}

// The format must stay readable for readers of old logs: this test changes with it.
func TestLineFormat(t *testing.T) {
	directory := t.TempDir()
	l := openLog(t, Options{Directory: directory, clock: newClock().read})
	record(t, l, denial("/corpus/private/alice/3.txt"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(fileName(directory, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"sequence":1,"time":"2026-03-01T12:00:00Z","previous":"` + strings.Repeat("0", 64) + `",` +
		`"kind":"denial","pipeline":"syse","task":"worker","instance":"worker(bob, us)","principal":"bob",` +
		`"operation":"open","conduit":"/corpus/private/alice/3.txt","policy":"private(owner: \"alice\")",` +
		`"allowed":false,"reason":"no read clause holds",` +
		`"mac":"MAC"}` + "\n"
	mac := search(t, directory, Query{})[0].MAC
	if diff := cmp.Diff(strings.Replace(want, "MAC", mac, 1), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestChainContinuesAcrossFilesAndReopening(t *testing.T) {
	directory := t.TempDir()
	for i := range 3 {
		l := openLog(t, Options{Directory: directory, MaxFileSize: 2000})
		for j := range 10 {
			record(t, l, decision(fmt.Sprintf("/corpus/%d/%d", i, j)))
		}
		if l.Recovery() != "" {
			t.Errorf("recovery of a log that was closed: %s", l.Recovery())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	v := verified(t, directory)
	if v.Fault != "" || v.Records != 30 || v.Files < 3 {
		t.Errorf("verification: %+v", v)
	}
	if got := len(search(t, directory, Query{})); got != 30 {
		t.Errorf("%d records, want 30", got)
	}
}

func TestEveryChangedByteIsFound(t *testing.T) {
	directory := t.TempDir()
	l := openLog(t, Options{Directory: directory, MaxFileSize: 1500})
	for i := range 8 {
		record(t, l, decision(fmt.Sprint("/corpus/", i)), denial(fmt.Sprint("/corpus/", i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := list(directory)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(directory, headName), witnessFile(directory))
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			altered := append([]byte{}, whole...)
			altered[i] ^= 1 << (i % 7)
			writeFile(t, file, altered)
			if v := verified(t, directory); v.Fault == "" {
				t.Fatalf("%s: byte %d changed from %q to %q and nothing was found", filepath.Base(file), i, whole[i],
					altered[i])
			}
		}
		writeFile(t, file, whole)
	}
	if v := verified(t, directory); v.Fault != "" {
		t.Fatalf("the unchanged twin has a fault: %s", v.Fault)
	}
}

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// If anything is removed or moved, Verify reports it, and Open still continues after it.
func TestRemovedRecordsAreFound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		directory, err := os.MkdirTemp(t.TempDir(), "log")
		if err != nil {
			rt.Fatal(err)
		}
		l := openLog(t, Options{Directory: directory, MaxFileSize: int64(rapid.IntRange(300, 5000).Draw(rt, "size"))})
		count := rapid.IntRange(2, 20).Draw(rt, "records")
		for i := range count {
			record(t, l, decision(fmt.Sprint("/corpus/", i)))
		}
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
		files, _ := list(directory)
		file := rapid.SampledFrom(files).Draw(rt, "file")
		text, _ := os.ReadFile(file)
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		cut := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
		rest := append(append([]string{}, lines[:cut]...), lines[cut+1:]...)
		writeFile(t, file, []byte(strings.Join(rest, "")))
		if v := verified(t, directory); v.Fault == "" {
			rt.Fatalf("line %d of %s removed and nothing was found", cut+1, file)
		}
		l = openLog(t, Options{Directory: directory})
		record(t, l, decision("/corpus/after"))
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
		if v := verified(t, directory); v.Fault == "" {
			rt.Fatal("opening the log hid the fault")
		}
	})
}

// A line that was being written when the machine stopped is set aside, wherever it was
// cut, and the chain continues as if it had never been begun.
func TestTornLineIsSetAside(t *testing.T) {
	source := t.TempDir()
	l := openLog(t, Options{Directory: source})
	record(t, l, decision("/corpus/1"))
	head, err := os.ReadFile(filepath.Join(source, headName))
	if err != nil {
		t.Fatal(err)
	}
	one, _ := os.ReadFile(fileName(source, 1))
	key, _ := os.ReadFile(KeyFile(source))
	record(t, l, denial("/corpus/2"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	two, _ := os.ReadFile(fileName(source, 1))
	for cut := len(one) + 1; cut < len(two); cut += 7 {
		directory := t.TempDir()
		writeFile(t, fileName(directory, 1), two[:cut])
		writeFile(t, filepath.Join(directory, headName), head)
		writeFile(t, KeyFile(directory), key)
		l := openLog(t, Options{Directory: directory})
		record(t, l, decision("/corpus/3"))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, directory); v.Fault != "" || v.Records != 3 {
			t.Fatalf("cut at %d: %+v", cut, v)
		}
		if got := search(t, directory, Query{Kinds: []Kind{Recovery}}); len(got) != 1 ||
			!strings.Contains(got[0].Reason, "torn-") {
			t.Fatalf("cut at %d: recovery records %+v", cut, got)
		}
		aside, _ := filepath.Glob(filepath.Join(directory, "torn-*"))
		if len(aside) != 1 {
			t.Fatalf("cut at %d: set aside %v", cut, aside)
		}
		if kept, _ := os.ReadFile(aside[0]); string(kept) != string(two[len(one):cut]) {
			t.Fatalf("cut at %d: the torn line was altered", cut)
		}
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	directory := t.TempDir()
	l := openLog(t, Options{Directory: directory})
	if _, err := Open(Options{Directory: directory}); err == nil || !strings.Contains(err.Error(), "another monitor") {
		t.Errorf("second open: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, Options{Directory: directory})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(denial("/x")); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
}

// A lock that is about to be released, such as that of a monitor that was just killed,
// does not prevent writing.
func TestALockThatIsGivenBackIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes while all wait, and only then
		directory := t.TempDir()
		l := openLog(t, Options{Directory: directory})
		closed := make(chan error, 1)
		time.AfterFunc(lockPatience/10, func() { closed <- l.Close() })
		next, err := Open(Options{Directory: directory})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-closed, next.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestIdenticalDenialsAreCounted(t *testing.T) {
	directory, clock := t.TempDir(), newClock()
	l := openLog(t, Options{Directory: directory, clock: clock.read, RepeatWindow: time.Minute})
	for range 1000 {
		record(t, l, denial("/corpus/1"))
	}
	record(t, l, denial("/corpus/2"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Conduit  string
		Repeated uint64
	}
	var got []line
	for _, r := range search(t, directory, Query{}) {
		got = append(got, line{r.Conduit, r.Repeated})
	}
	want := []line{{"/corpus/1", 0}, {"/corpus/2", 0}, {"/corpus/1", 999}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextsAreBoundedAndValid(t *testing.T) {
	directory := t.TempDir()
	l := openLog(t, Options{Directory: directory})
	facts := make([]string, 100)
	for i := range facts {
		facts[i] = strings.Repeat("<", 10_000)
	}
	record(t, l, Event{Kind: Decision, Conduit: "/a\xff\n\"", Reason: strings.Repeat("<", 100_000), Facts: facts})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := search(t, directory, Query{})[0]
	if got.Conduit != `/a\xff\n\"` || len(got.Facts) != maxFacts+1 || len(got.Reason) > maxText+3 {
		t.Errorf("conduit %q, %d facts, %d bytes of reason", got.Conduit, len(got.Facts), len(got.Reason))
	}
	if facts[0] != strings.Repeat("<", 10_000) {
		t.Error("the caller's facts were altered")
	}
}
