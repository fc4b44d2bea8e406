// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestReadsAreHidden: whichever way a task reads, nobody sees it in the time of access of
// the file or directory. With the protection waived the kernel records it, because the
// time is older than the last change.
func TestReadsAreHidden(t *testing.T) {
	if !canHideReads() {
		t.Skip("this machine lets nobody make mounts: the time of access stays visible")
	}
	for try, read := range map[string]string{
		"open $G/allowed.txt":           "allowed.txt", // by the monitor
		"openat-capability allowed.txt": "allowed.txt", // by itself
		"map-and-touch allowed.txt":     "allowed.txt",
		"list-capability":               ".",
	} {
		t.Run(try, func(t *testing.T) {
			for waived, want := range map[plan.Protection]bool{0: false, plan.HiddenReads: true} {
				spec, decider := world(t, try)
				spec.waived = waived
				file := filepath.Join(spec.Perimeter[0].Path, read)
				check(t, os.Chtimes(file, time.Unix(1, 0), time.Time{}))
				if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
					t.Errorf("waived %#x: errno %v, %v %s", waived, errno, got.err, got.output)
				}
				var stat unix.Stat_t
				check(t, unix.Stat(file, &stat))
				if seen := stat.Atim.Sec != 1; seen != want {
					t.Errorf("waived %#x: the read is seen: %v", waived, seen)
				}
			}
		})
	}
}
