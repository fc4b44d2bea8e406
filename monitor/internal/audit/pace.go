// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"time"
)

// workAtOnce is how long work goes on before it rests.
const workAtOnce = 5 * time.Millisecond

// pace makes work rest: of so many parts of the time, it takes one.
type pace struct {
	share int
	begun time.Time // when it rested last
	now   func() time.Time
	sleep func(context.Context, time.Duration)
}

func newPace(share int) *pace {
	return &pace{share: share, begun: time.Now(), now: time.Now, sleep: sleep}
}

// after is called after each step of the work. It rests if the work has gone on for long enough,
// and returns the error of a context that has ended.
func (p *pace) after(ctx context.Context) error {
	if p == nil {
		return ctx.Err()
	}
	if worked := p.now().Sub(p.begun); worked >= workAtOnce {
		p.sleep(ctx, worked*time.Duration(p.share-1))
		p.begun = p.now()
	}
	return ctx.Err()
}

// hurry makes work rest half as much: what it works on went before it came to it.
func (p *pace) hurry() {
	if p != nil {
		p.share = max(1, p.share/2)
	}
}

func sleep(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
