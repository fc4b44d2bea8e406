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

// A slow verification takes a fiftieth of the time: each 5 ms of work are followed by 245 of rest.
func TestSlowVerificationRests(t *testing.T) {
	const records = 40
	l := openLog(t, Options{Directory: t.TempDir(), MaxFileSize: 2 << 10})
	defer l.Close()
	for i := range records {
		record(t, l, decision(fmt.Sprint("/corpus/", i)))
	}
	var rests []time.Duration
	now, resting := time.Time{}, false
	rest := &pace{share: 50, begun: now}
	rest.now = func() time.Time {
		if !resting { // each record takes a millisecond
			now = now.Add(time.Millisecond)
		}
		resting = false
		return now
	}
	rest.sleep = func(_ context.Context, long time.Duration) {
		rests, now, resting = append(rests, long), now.Add(long), true
	}
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
