// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// counting is a pace whose clock counts a millisecond for each record, and that tells of rests.
func counting(rests func(time.Duration)) *pace {
	now, resting := time.Time{}, false
	return &pace{share: 50, begun: now, now: func() time.Time {
		if !resting {
			now = now.Add(time.Millisecond)
		}
		resting = false
		return now
	}, sleep: func(_ context.Context, long time.Duration) {
		now, resting = now.Add(long), true
		rests(long)
	}}
}

// A slow verification takes a fiftieth of the time: each 5 ms of work are followed by 245 of rest.
func TestSlowVerificationRests(t *testing.T) {
	const records = 40
	l := openLog(t, Options{Directory: t.TempDir(), MaxFileSize: 2 << 10})
	defer l.Close()
	for i := range records {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	var rests []time.Duration
	rest := counting(func(long time.Duration) { rests = append(rests, long) })
	found, err := verify(t.Context(), l.options.Directory, l.key, rest)
	if err != nil || found.Fault != "" {
		t.Fatal(found, err)
	}
	if want := slices.Repeat([]time.Duration{245 * time.Millisecond}, records/5); !slices.Equal(rests, want) {
		t.Errorf("it rests for %v, want %v", rests, want)
	}
}

// It ends when nobody wants its result any more, also while it rests.
func TestSlowVerificationEnds(t *testing.T) {
	l := openLog(t, Options{Directory: t.TempDir()})
	defer l.Close()
	for i := range 3 {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	rest := newPace(50)
	rest.begun = time.Time{} // it has worked for centuries
	rest.sleep = func(ctx context.Context, long time.Duration) {
		cancel()
		sleep(ctx, long)
	}
	if _, err := verify(ctx, l.options.Directory, l.key, rest); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A log whose oldest files are removed faster than they are verified is verified in the end: a
// verification that has to begin anew takes more of the time.
func TestVerificationIsNotOutrun(t *testing.T) {
	l := openLog(t, small(t.TempDir()))
	defer l.Close()
	number := 0
	grow := func() {
		for range 20 {
			number++
			record(t, l, decision(fmt.Sprint("/corpus/", number)))
		}
	}
	for range 5 {
		grow()
	}
	rest := counting(func(long time.Duration) {
		if long > 0 {
			grow()
		}
	})
	if found, err := verify(t.Context(), l.options.Directory, l.key, rest); err != nil || found.Fault != "" {
		t.Error(found, err)
	}
}
