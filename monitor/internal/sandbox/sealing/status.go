// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"bytes"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Status is what /proc/PID/status says about a worker.
type Status struct {
	Threads  int
	Filters  int    // seccomp filters in force
	Handled  uint64 // signals with a handler; signal 1 is bit 0
	Blocked  uint64
	Pending  uint64
	Features string // of the thread, such as a shadow stack; "" where the kernel knows none
}

// ParseStatus parses the text of /proc/PID/status.
func ParseStatus(text []byte) (Status, error) {
	fields := map[string]string{}
	for line := range bytes.Lines(text) {
		name, value, found := strings.Cut(string(line), ":")
		if found {
			fields[name] = strings.TrimSpace(value)
		}
	}
	var result Status
	for name, number := range map[string]*int{"Threads": &result.Threads, "Seccomp_filters": &result.Filters} {
		value, err := strconv.Atoi(fields[name])
		if err != nil {
			return Status{}, fmt.Errorf("field %s of a process's status is %q", name, fields[name])
		}
		*number = value
	}
	var ofThread, ofProcess uint64
	for name, set := range map[string]*uint64{
		"SigCgt": &result.Handled, "SigBlk": &result.Blocked, "SigPnd": &ofThread, "ShdPnd": &ofProcess,
	} {
		value, err := strconv.ParseUint(fields[name], 16, 64)
		if err != nil {
			return Status{}, fmt.Errorf("field %s of a process's status is %q", name, fields[name])
		}
		*set = value
	}
	result.Pending, result.Features = ofThread|ofProcess, fields["x86_Thread_features"]
	return result, nil
}

// check returns why a worker with this status, which has to have so many filters, cannot be
// sealed.
func (s Status) check(filters int) error {
	switch {
	case s.Threads != 1:
		return fmt.Errorf("it has %d threads; a worker has one", s.Threads)
	case s.Filters != filters:
		return fmt.Errorf("it has %d seccomp filters in place of %d: the program must install none", s.Filters, filters)
	case s.Handled != 0:
		return fmt.Errorf("it handles signals (%s): set them to SIG_DFL before the first shai_accept", signals(s.Handled))
	case s.Blocked != 0:
		return fmt.Errorf("it blocks signals (%s): unblock them before the first shai_accept", signals(s.Blocked))
	case s.Pending != 0:
		return fmt.Errorf("signals wait for it (%s): take them before the first shai_accept", signals(s.Pending))
	case s.Features != "":
		return fmt.Errorf("its thread uses %q, which a roll-back does not restore: "+
			"start the program without it (GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK)", s.Features)
	}
	return nil
}

// signals lists the signals of a set by number.
func signals(set uint64) string {
	var numbers []string
	for set != 0 {
		numbers = append(numbers, strconv.Itoa(bits.TrailingZeros64(set)+1))
		set &= set - 1
	}
	return strings.Join(numbers, ", ")
}
