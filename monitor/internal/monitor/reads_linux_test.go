// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
)

// Nobody sees in a document's time of access that a session has read it, whether the
// worker opens it natively or the monitor opens it for the worker.
func TestReadDocumentsKeepTheirTimeOfAccess(t *testing.T) {
	if !slices.ContainsFunc(sandbox.New(sandbox.Options{}).Probe().Features, func(f sandbox.Feature) bool {
		return f.Name == "hidden reads" && f.Present
	}) {
		t.Skip("this machine lets nobody make mounts: the time of access stays visible")
	}
	for _, mode := range []string{"shai", "dynamic"} {
		t.Run(mode, func(t *testing.T) {
			s := beginPair(t)
			_, err := s.monitor.SetMode(t.Context(), "probe", mode)
			s.must(err)
			path := filepath.Join(s.options.Data, "left/1.txt")
			s.must(os.Chtimes(path, time.Unix(1, 0), time.Time{}))
			s.login("alice", "127.0.1.1").must("read " + (&player{stack: s}).numbered("/left/1.txt"))
			var stat unix.Stat_t
			s.must(unix.Stat(path, &stat))
			if stat.Atim.Sec != 1 {
				t.Error("the read is seen")
			}
		})
	}
}
