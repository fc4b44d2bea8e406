// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/policy"
)

// On a full disk a fact is either in force and reported so, or not in force and an error.
func TestFactsOnAFullDisk(t *testing.T) {
	options := bareOptions(t)
	root := filepath.Dir(options.State)
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	if err := os.MkdirAll(options.Data, 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() }) // says that records are lost
	applyBare(t, m, pipelinetest.Bare)
	analyzeBare(t, m)
	awaitSnapshot(t, options.State) // one that fails for want of room makes some
	filler := filepath.Join(root, "filler")
	if err := os.WriteFile(filler, make([]byte, 32<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	carol := []api.Fact{bareFact("friends/alice", "friend", "carol")}
	change := func(change api.FactChange, want bool) (warnings []string, err error) {
		t.Helper()
		before := m.state().Has(carolIsAFriend)
		done, err := m.ChangeFacts(t.Context(), change)
		stands := m.state().Has(carolIsAFriend)
		if err == nil && stands != want || err != nil && (stands != before || done.Added+done.Removed > 0) {
			t.Fatalf("the fact is in force: %v, before: %v, but the answer is %+v, %v", stands, before, done, err)
		}
		return done.Warnings, err
	}
	if _, err := change(api.FactChange{Add: carol}, true); !strings.Contains(fmt.Sprint(err), "disk is full") {
		t.Fatalf("on the full disk: %v", err)
	}
	// The catalog uses its pages again; the audit log takes the rest of the room.
	info, err := os.Stat(filler)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filler, info.Size()-128<<10); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := change(api.FactChange{Add: carol}, true); err != nil {
			t.Fatalf("the catalog was full before anything else: %v", err)
		}
		if _, err := change(api.FactChange{Remove: carol}, false); err != nil {
			t.Fatalf("the catalog was full before anything else: %v", err)
		}
	}
	// The analysis follows, although it cannot be stored: the stored one is of an earlier state.
	if err := os.WriteFile(filler, make([]byte, 32<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	m.storeAll()
	if !m.analyses["bare"].result.Current(m.state()) {
		t.Error("the analysis has not followed")
	}
	if _, overtaken, _ := storedAnalysis(m.analysisPath("bare"), m.pipelines["bare"].Plan(), m.state()); !overtaken {
		t.Error("the stored analysis is taken for that of the state")
	}
}

var carolIsAFriend = policy.Pattern{Conduit: "friends/alice", Relation: "friend",
	Arguments: []policy.Value{policy.String("carol")}}
