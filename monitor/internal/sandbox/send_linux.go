// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// send asks the monitor about one write to a checked connection or channel, and lets the
// kernel execute it. This is safe: the decision is about the descriptor's number, which
// is a value and not memory. The number cannot come to mean something unchecked: nothing
// can be duplicated onto a reserved number or away from it, closing it has no effect, and
// only the monitor places files there. The decision does not depend on the bytes that are
// written.
func (r *request) send() error {
	number := r.descriptor(0)
	if number == wire.FDMonitor {
		return r.message()
	}
	from, err := r.caller()
	if err != nil {
		return err
	}
	err = r.requests.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.requests.task, from, number)
	})
	if err != nil {
		return unix.EPERM
	}
	return r.proceed()
}
