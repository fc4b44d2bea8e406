// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// decides asks about reading a document in a session of alice's.
func (f *fixture) decides(name string, mode wire.Mode) bool {
	f.t.Helper()
	holds, err := f.capabilities(f.tasks["worker"], sessionOf("alice", "de"))
	f.must(err)
	conduit, found := f.services.conduitNamed(name)
	if !found {
		f.t.Fatalf("no conduit %s", name)
	}
	return f.decide(nil, actor{Subject: holds.subject, mode: mode}, policy.Read, conduit).Allowed
}

// An access that would be allowed but cannot be recorded is refused; a denial stays one. So
// is a login. The log is on a file system that becomes full.
func TestAuditLogIsFull(t *testing.T) {
	f := probe(t, SessionLimits{PerUser: 3})
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(directory, unix.MNT_DETACH) })
	log, err := audit.Open(audit.Options{Directory: directory, RefuseUnrecorded: true})
	f.must(err)
	f.must(f.services.Audit.Close())
	f.services.Audit = log
	own, foreign := "/corpus/private/alice/1.txt", "/corpus/private/bob/1.txt"
	if !f.decides(own, wire.ModeShai) || !f.decides(foreign, wire.ModeAudit) || f.decides(foreign, wire.ModeShai) {
		t.Fatal("decisions are wrong while there is space")
	}
	if bound := f.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Fatalf("alice is refused while there is space: %s", bound.Reason)
	}

	filler := filepath.Join(directory, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waiting.Until(t, "the log fails", func() bool {
		f.decides(own, wire.ModeShai)
		return log.Failing() != nil
	})
	if f.decides(own, wire.ModeShai) || f.decides(foreign, wire.ModeAudit) || f.decides(foreign, wire.ModeShai) {
		t.Error("something is allowed although it cannot be recorded")
	}
	b := f.wireSession(t)
	if bound := b.authenticate("alice"); bound.Status == 0 || !strings.Contains(bound.Reason, "cannot be recorded") {
		t.Errorf("a session is bound although that cannot be recorded: %+v", bound)
	}
	if b.bound() != nil {
		t.Error("the session has its capabilities all the same")
	}
	f.verifies(directory)

	f.must(os.Remove(filler))
	waiting.Until(t, "accesses are recorded again", func() bool { return log.Failing() == nil })
	if !f.decides(own, wire.ModeShai) {
		t.Error("refused although there is space again")
	}
	if bound := f.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Errorf("alice is refused although there is space again: %s", bound.Reason)
	}
	waiting.Until(t, "the refused accesses are counted in the log", func() bool {
		var omitted uint64
		f.must(log.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
			omitted += r.Omitted
			return nil
		}))
		return omitted >= 3 && omitted == log.Omitted()
	})
	f.verifies(directory)
}

// verifies checks the chain of an audit log.
func (f *fixture) verifies(directory string) {
	f.t.Helper()
	if checked, err := audit.Verify(f.t.Context(), directory, ""); err != nil || checked.Fault != "" {
		f.t.Errorf("the chain: %s, %v", checked.Fault, err)
	}
}
