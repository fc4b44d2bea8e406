// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/waiting"
)

func TestQuery(t *testing.T) {
	directory, clock := t.TempDir(), newClock()
	l := openLog(t, Options{Directory: directory, clock: clock.read, MaxFileSize: 700})
	for i := range 6 {
		record(t, l, decision(fmt.Sprintf("/corpus/public/%d", i)), denial(fmt.Sprintf("/corpus/private/alice/%d", i)))
		clock.advance(time.Minute)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	yes := true
	for _, test := range []struct {
		name  string
		query Query
		want  []uint64
	}{
		{"all", Query{}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"kind", Query{Kinds: []Kind{Denial}}, []uint64{2, 4, 6, 8, 10, 12}},
		{"principal", Query{Principal: "alice", Limit: 2}, []uint64{9, 11}},
		{"conduit", Query{Conduit: "/corpus/public/3"}, []uint64{7}},
		{"prefix", Query{Conduit: "/corpus/private/", Limit: 3}, []uint64{8, 10, 12}},
		{"a prefix ends in a slash", Query{Conduit: "/corpus/private"}, nil},
		{"since", Query{Since: newClock().now.Add(4 * time.Minute)}, []uint64{9, 10, 11, 12}},
		{"allowed", Query{Allowed: &yes, Limit: 1}, []uint64{11}},
		{"before", Query{Before: 5, Limit: 3}, []uint64{2, 3, 4}},
		{"limit over the whole log", Query{Limit: 100}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"task", Query{Task: "search"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []uint64
			for _, r := range search(t, directory, test.query) {
				got = append(got, r.Sequence)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQueryHasWhatWasAppendedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		l := openLog(t, Options{Directory: t.TempDir(), openFile: d.open})
		defer l.Close()
		release := d.hold()
		if err := l.Append(denial("/corpus/1")); err != nil {
			t.Fatal(err)
		}
		found := make(chan int)
		go func() {
			count := 0
			if err := l.Query(t.Context(), Query{}, func(Record) error { count++; return nil }); err != nil {
				t.Error(err)
			}
			found <- count
		}()
		synctest.Wait()
		release()
		if got := <-found; got != 1 {
			t.Errorf("found %d records; one was appended before, and the disk was slow", got)
		}
	})
}

// More bytes wait than the writer takes at a time. (Denials would exceed their allowance.)
func TestQueryHasAllThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, Options{Directory: t.TempDir(), openFile: (&disk{pause: time.Minute}).open})
		defer l.Close()
		const documents = 1000
		name := "/corpus/" + strings.Repeat("x", maxText/2)
		for i := range documents {
			if err := l.Append(decision(fmt.Sprint(name, i))); err != nil {
				t.Fatal(err)
			}
		}
		found := 0
		err := l.Query(t.Context(), Query{}, func(Record) error { found++; return nil })
		if err != nil || found != documents {
			t.Errorf("found %d records of %d: %v", found, documents, err)
		}
	})
}

// Records that were stored can be read while the disk takes no others: the twin of the
// test above.
func TestQueryWorksWhileNothingCanBeWritten(t *testing.T) {
	d := new(disk)
	l := openLog(t, Options{Directory: t.TempDir(), openFile: d.open})
	record(t, l, denial("/corpus/1"))
	d.set(true, false)
	if err := l.Append(denial("/corpus/2")); err != nil {
		t.Fatal(err)
	}
	var conduits []string
	err := l.Query(t.Context(), Query{}, func(r Record) error { conduits = append(conduits, r.Conduit); return nil })
	if err != nil || fmt.Sprint(conduits) != "[/corpus/1]" {
		t.Errorf("found %v: %v", conduits, err)
	}
	d.set(false, false)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestFollowMissesNothing(t *testing.T) {
	l := openLog(t, Options{Directory: t.TempDir(), MaxFileSize: 3000})
	defer l.Close()
	record(t, l, decision("/corpus/before"))
	ctx, cancel := context.WithTimeout(context.Background(), waiting.Limit)
	defer cancel()
	const count = 300
	go func() {
		for i := range count {
			l.Append(decision(fmt.Sprint("/corpus/", i)))
		}
	}()
	var next uint64
	err := l.Query(ctx, Query{Follow: true}, func(r Record) error {
		if next++; r.Sequence != next {
			return fmt.Errorf("record %d came, want %d", r.Sequence, next)
		}
		if next == count+1 {
			cancel()
		}
		return nil
	})
	if err != nil || next != count+1 {
		t.Errorf("followed %d records: %v", next, err)
	}
}

func TestQueryStopsOnError(t *testing.T) {
	l := openLog(t, Options{Directory: t.TempDir()})
	defer l.Close()
	record(t, l, decision("/corpus/1"), decision("/corpus/2"))
	gone := errors.New("the reader is gone")
	calls := 0
	err := l.Query(context.Background(), Query{Follow: true}, func(Record) error { calls++; return gone })
	if !errors.Is(err, gone) || calls != 1 {
		t.Errorf("%d calls: %v", calls, err)
	}
}
