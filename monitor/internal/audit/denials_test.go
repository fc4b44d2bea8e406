// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRepeatWindow(t *testing.T) {
	clock := newClock()
	d := newDenials(time.Second)
	same := denial("/corpus/1")
	for step, want := range []bool{false, true, true} {
		if got := d.absorb(same, clock.read()); got != want {
			t.Fatalf("denial %d: absorbed %t", step, got)
		}
	}
	if due := d.due(clock.read(), false, false); len(due) != 0 {
		t.Fatalf("due within the window: %+v", due)
	}
	clock.advance(time.Second)
	if due := d.due(clock.read(), false, false); len(due) != 1 || due[0].Repeated != 2 {
		t.Fatalf("due at its end: %+v", due)
	}
	if !d.absorb(same, clock.read()) {
		t.Fatal("a denial that goes on is recorded afresh")
	}
	clock.advance(time.Second)
	d.due(clock.read(), false, false)
	clock.advance(time.Second)
	if due := d.due(clock.read(), false, false); len(due) != 0 || len(d.open) != 0 {
		t.Fatalf("a window without denials stays: %+v", due)
	}
	clock.advance(time.Hour)
	if d.due(clock.read(), false, false); len(d.tasks) != 0 {
		t.Error("a task without denials stays")
	}
}

// attacks are ways in which a task can be denied something else each time.
var attacks = map[string]func(i int) Event{
	"names": func(i int) Event { return denial(fmt.Sprint("/corpus/private/", i)) },
	"long names that JSON escapes": func(i int) Event {
		return denial(fmt.Sprint("/", i, strings.Repeat("<\x01", maxText/2)))
	},
	"operations": func(i int) Event {
		e := denial("/corpus/1")
		e.Operation = fmt.Sprint("call ", i)
		return e
	},
	"users": func(i int) Event {
		e := denial("/corpus/1")
		e.Principal, e.Instance = fmt.Sprint("user", i), fmt.Sprintf("worker(user%d, us)", i)
		return e
	},
	"each name twice": func(i int) Event { return denial(fmt.Sprint("/corpus/private/", i/2)) },
	"many names in turn": func(i int) Event {
		return denial(fmt.Sprint("/corpus/private/", i%500, strings.Repeat("x", 1000)))
	},
}

// maxSummary is the size of a summary, in bytes: JSON makes up to six of each of its example.
const maxSummary = recordFrame + 6*maxLast + 100

// A task that is denied 100,000 accesses in four minutes writes no more than its allowance
// and a short summary a second. No denial is forgotten: the records stand for all of them.
// The records of another task, of sessions and of changes are all there.
func TestDeniedTaskWritesLittle(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			directory, clock := t.TempDir(), newClock()
			// Short, so that each second has a summary.
			l := openLog(t, Options{Directory: directory, clock: clock.read, SyncInterval: time.Millisecond})
			const seconds, each = 240, 400
			for second := range seconds {
				for i := range each {
					if err := l.Append(attack(second*each + i)); err != nil {
						t.Fatal(err)
					}
				}
				other := denial(fmt.Sprint("/corpus/other/", second))
				other.Task = "indexer"
				record(t, l, other, Event{Kind: Fact, Allowed: true, Conduit: fmt.Sprint("facts/", second)},
					Event{Kind: Binding, Task: "worker", Principal: fmt.Sprint("user", second)})
				clock.advance(time.Second)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var denied, bytes uint64
			others := map[Kind]int{}
			for _, r := range search(t, directory, Query{}) {
				if r.Kind != Denial || r.Task == "indexer" {
					others[r.Kind]++
					continue
				}
				denied += max(1, r.Repeated, r.Omitted)
				line, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				bytes += uint64(len(line))
			}
			// Of the last seconds, a record may exceed the allowance, and there is a summary.
			if limit := uint64(denialBurst + seconds*(denialRate+maxSummary) + 40<<10); bytes > limit {
				t.Errorf("%d bytes in %d s; at most %d are allowed", bytes, seconds, limit)
			}
			if denied != seconds*each {
				t.Errorf("the records stand for %d of %d denials", denied, seconds*each)
			}
			if others[Denial] != seconds || others[Fact] != seconds || others[Binding] != seconds {
				t.Errorf("records of others: %v, want %d of each", others, seconds)
			}
			if v := verified(t, directory); v.Fault != "" {
				t.Error(v.Fault)
			}
		})
	}
}

// A task with a few denials has each in the log, also after it was denied many.
func TestFewDenialsAreAllRecorded(t *testing.T) {
	directory, clock := t.TempDir(), newClock()
	l := openLog(t, Options{Directory: directory, clock: clock.read})
	for i := range 10_000 {
		record0(t, l, denial(fmt.Sprint("/corpus/flood/", i)))
	}
	omitted := l.Omitted()
	clock.advance(fullAfter)
	for i := range 400 {
		record0(t, l, denial(fmt.Sprint("/corpus/few/", i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(search(t, directory, Query{Conduit: "/corpus/few/"})); got != 400 {
		t.Errorf("%d of 400 denials are recorded", got)
	}
	if omitted == 0 || l.Omitted() != omitted {
		t.Errorf("%d, then %d denials are in summaries only", omitted, l.Omitted())
	}
}

// record0 appends an event without waiting for the disk.
func record0(t testing.TB, l *Log, e Event) {
	t.Helper()
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
}

// Refused logins from one address, each with another name, fill no more of the log than its
// allowance, and leave those from other addresses in it.
func TestFloodOfLogins(t *testing.T) {
	login := func(peer string, i int) Event {
		name := fmt.Sprint("user", i)
		return Event{Kind: Binding, Pipeline: "syse", Task: "worker", Principal: name, Operation: "authenticate",
			Conduit: peer, Reason: fmt.Sprintf("principal %q is not known", name)}
	}
	for name, flood := range map[string]func(i int) string{
		"an address":        func(int) string { return "192.0.2.1" },
		"a network of IPv6": func(i int) string { return fmt.Sprintf("2001:db8::%x", i%60_000+1) },
	} {
		t.Run(name, func(t *testing.T) {
			directory, clock := t.TempDir(), newClock()
			l := openLog(t, Options{Directory: directory, clock: clock.read})
			const logins = 20_000
			for i := range logins {
				record0(t, l, login(flood(i), i))
			}
			for i := range 100 {
				record0(t, l, login("192.0.2.2", i))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var refused, others uint64
			bytes, summary := 0, ""
			for _, r := range search(t, directory, Query{}) {
				if r.Conduit == "192.0.2.2" {
					others++
					continue
				}
				refused += max(1, r.Repeated, r.Omitted)
				line, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				if bytes += len(line); r.Omitted > 0 {
					summary = r.Reason
				}
			}
			if refused != logins || others != 100 || bytes > denialBurst+maxSummary {
				t.Errorf("the records stand for %d of %d refused logins in %d bytes; %d of 100 others", refused, logins,
					bytes, others)
			}
			if !strings.Contains(summary, "refused logins from ") {
				t.Errorf("the summary says %q", summary)
			}
		})
	}
}

// Accesses that are allowed although a policy forbids them are all recorded: their record
// is what allows them.
func TestAllowedDenialsAreNotOmitted(t *testing.T) {
	directory := t.TempDir()
	l := openLog(t, Options{Directory: directory})
	for i := range 3000 {
		e := denial(fmt.Sprint("/corpus/", i))
		e.Allowed = true
		record0(t, l, e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(search(t, directory, Query{})); got != 3000 || l.Omitted() != 0 {
		t.Errorf("%d of 3000 recorded", got)
	}
}
