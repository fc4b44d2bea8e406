// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
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
func (s *stack) decides(name string, mode wire.Mode) bool {
	s.t.Helper()
	p := s.pipeline()
	holds, err := p.capabilities(p.tasks["worker"], parametersOf("alice", "de"))
	s.must(err)
	conduit, found := s.monitor.conduitNamed(name)
	if !found {
		s.t.Fatalf("no conduit %s", name)
	}
	return p.decide(holds.subject, policy.Read, conduit, mode).Allowed
}

// An access that would be allowed but cannot be recorded is refused; a denial stays one.
// The monitor's own log is on a file system that becomes full.
func TestAuditLogIsFull(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/private/alice/1.txt")
	s.document("/corpus/private/bob/1.txt")
	s.principal("alice", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.must(os.MkdirAll(s.auditDirectory(), 0o700))
	if err := unix.Mount("tmpfs", s.auditDirectory(), "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.auditDirectory(), unix.MNT_DETACH) })
	m, err := Open(t.Context(), s.options)
	s.must(err)
	t.Cleanup(func() { _ = m.Close() }) // says that records are lost
	s.monitor = m
	s.apply()
	own, foreign := "/corpus/private/alice/1.txt", "/corpus/private/bob/1.txt"
	if !s.decides(own, wire.ModeShai) || !s.decides(foreign, wire.ModeAudit) || s.decides(foreign, wire.ModeShai) {
		t.Fatal("decisions are wrong while there is space")
	}
	if bound := s.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Fatalf("alice is refused while there is space: %s", bound.Reason)
	}

	filler := filepath.Join(s.auditDirectory(), "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waiting.Until(t, "the log fails", func() bool {
		s.decides(own, wire.ModeShai)
		_ = m.audit.Flush(context.Background())
		return m.audit.Failing() != nil
	})
	if s.decides(own, wire.ModeShai) || s.decides(foreign, wire.ModeAudit) || s.decides(foreign, wire.ModeShai) {
		t.Error("something is allowed although it cannot be recorded")
	}
	b := s.wireSession(t)
	if bound := b.authenticate("alice"); bound.Status == 0 || !strings.Contains(bound.Reason, "cannot be recorded") {
		t.Errorf("a session is bound although that cannot be recorded: %+v", bound)
	}
	if b.bound() != nil {
		t.Error("the session has its capabilities all the same")
	}
	if err := m.Ready(t.Context()); err == nil {
		t.Error("the monitor says that it is ready")
	}

	s.must(os.Remove(filler))
	waiting.Until(t, "the log is written again", func() bool { return m.audit.Flush(context.Background()) == nil })
	if !s.decides(own, wire.ModeShai) {
		t.Error("refused although there is space again")
	}
	if checked, err := audit.Verify(t.Context(), s.auditDirectory(), ""); err != nil || checked.Fault != "" {
		t.Errorf("the chain: %s, %v", checked.Fault, err)
	}
}
