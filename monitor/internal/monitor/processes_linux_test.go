// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/wire"
)

// parents are all processes that live, each with its parent; proc(5) says so.
func parents(t *testing.T) map[int]int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		var state string
		var parent int
		// The second field, the program's name in parentheses, may hold anything.
		if _, err := fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), "%s %d", &state, &parent); err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		if state != "Z" {
			list[pid] = parent
		}
	}
	return list
}

// hasLeft reports whether nothing of a session that is over is in its process: the process has
// ended, or the roll-back code waits in it for the next session, which it restores first.
func hasLeft(pid int) bool {
	call, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	accepted := fmt.Sprintf(" 0x%x\n", uint64(wire.RollbackCode+wire.RollbackAccepted))
	return err == nil && strings.HasSuffix(string(call), accepted) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
