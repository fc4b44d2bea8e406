// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Where things are in struct kinfo_proc, on machines of 64 bits (sys/user.h).
const (
	kinfoPID    = 72
	kinfoParent = 76
	kinfoState  = 388
	zombie      = 5 // SZOMB
)

// parents are all processes that live, each with its parent; the kernel's list says
// so.
func parents(t *testing.T) map[int]int {
	t.Helper()
	entries, err := unix.SysctlRaw("kern.proc.proc")
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]int{}
	for len(entries) > kinfoState {
		size := int(binary.NativeEndian.Uint32(entries))
		if entries[kinfoState] != zombie {
			process := int(binary.NativeEndian.Uint32(entries[kinfoPID:]))
			list[process] = int(binary.NativeEndian.Uint32(entries[kinfoParent:]))
		}
		entries = entries[size:]
	}
	return list
}

// hasLeft reports whether the process of a session that is over has ended. With
// light-weight contexts it stays, and only its session is new: there the transcripts
// check the next session instead.
func hasLeft(pid int) bool {
	_, err := unix.SysctlUint32("shai.version")
	return err == nil || errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}
