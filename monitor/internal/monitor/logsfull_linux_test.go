// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// On a full disk nothing of an entry is left in the log, and it is no fact. With room again, the log
// goes on where it was.
func TestLogsOnAFullDisk(t *testing.T) {
	options := bareOptions(t)
	root := filepath.Dir(options.State)
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	if err := os.MkdirAll(filepath.Join(options.Data, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(options.Data, document), []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() }) // says that records are lost
	applyBare(t, m, pipelinetest.Typed)
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	text := ""
	add := func() string {
		entry := accessEntry("bob", document, time.Now())
		got := bob.writes(logName, entry, 0)
		if got == "" {
			text += entry
		}
		expectLog(t, m, options, text)
		return got
	}
	if got := add(); got != "" {
		t.Fatal(got)
	}
	filler := filepath.Join(root, "filler")
	if err := os.WriteFile(filler, make([]byte, 24<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	refused := 0
	for range 200 { // until the last pages of the log and of the catalog are used up
		if add() != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing is refused on the full disk")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	// An entry is added as soon as it can be recorded again.
	waiting.Until(t, "an entry is added with room again", func() bool { return add() == "" })
}
