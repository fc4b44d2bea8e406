// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Timing is what the kernel does to a process after a while. It would go on over all sessions of
// a worker.
type Timing struct {
	IsLimited bool // on CPU time
	HasTimers bool // of timer_create
}

// ParseTiming parses the texts of /proc/PID/limits and /proc/PID/timers.
func ParseTiming(limits, timers []byte) (Timing, error) {
	const name = "Max cpu time"
	for line := range bytes.Lines(limits) {
		values, found := strings.CutPrefix(string(line), name)
		if fields := strings.Fields(values); found && len(fields) == 3 { // soft, hard, unit
			return Timing{IsLimited: fields[0] != "unlimited", HasTimers: len(timers) > 0}, nil
		}
	}
	return Timing{}, fmt.Errorf("a process's limits have no %q", name)
}

// check returns why a worker with this timing cannot be sealed.
func (t Timing) check() error {
	switch {
	case t.IsLimited:
		return errors.New("it has a limit on CPU time, which would hold for all of its sessions together: " +
			"start the monitor without (ulimit -t), and set none before the first shai_accept")
	case t.HasTimers:
		return errors.New("it has timers: delete them (timer_delete) before the first shai_accept")
	}
	return nil
}
