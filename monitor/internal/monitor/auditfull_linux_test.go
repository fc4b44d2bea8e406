// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
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
	if err := unix.Mount("tmpfs", s.auditDirectory(), "tmpfs", 0, "size=4m"); err != nil {
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
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waiting.Until(t, "the log fails", func() bool {
		s.decides(own, wire.ModeShai)
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
	status, err := m.Status(t.Context())
	s.must(err)
	if status.Ready || !strings.Contains(status.Reason, "refused, since the disk of") || refusing(t, m) != 1 {
		t.Errorf("status: ready %t, %s; metric %v", status.Ready, status.Reason, refusing(t, m))
	}
	// What has happened is recorded, in the space that was reserved.
	s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("friends/alice", "friend", "carol")}})
	s.must(m.audit.Flush(context.Background()))
	var kinds []audit.Kind
	s.must(m.audit.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
		kinds = append(kinds, r.Kind)
		return nil
	}))
	if !slices.Contains(kinds, audit.Recovery) || !slices.Contains(kinds, audit.Fact) {
		t.Errorf("on the full disk there are records of the kinds %v", kinds)
	}
	s.verifies()

	s.must(os.Remove(filler))
	waiting.Until(t, "accesses are recorded again", func() bool { return m.audit.Failing() == nil })
	if !s.decides(own, wire.ModeShai) {
		t.Error("refused although there is space again")
	}
	if bound := s.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Errorf("alice is refused although there is space again: %s", bound.Reason)
	}
	if m.Ready(t.Context()) != nil || refusing(t, m) != 0 {
		t.Error("the monitor is not ready although there is space again")
	}
	waiting.Until(t, "the refused accesses are counted in the log", func() bool {
		var omitted uint64
		s.must(m.audit.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
			omitted += r.Omitted
			return nil
		}))
		return omitted >= 3 && omitted == m.audit.Omitted()
	})
	s.verifies()
}

// verifies checks the chain of the audit log.
func (s *stack) verifies() {
	s.t.Helper()
	if checked, err := audit.Verify(s.t.Context(), s.auditDirectory(), ""); err != nil || checked.Fault != "" {
		s.t.Errorf("the chain: %s, %v", checked.Fault, err)
	}
}

// refusing returns the value of the metric that says whether accesses are refused.
func refusing(t *testing.T, m *Monitor) float64 {
	t.Helper()
	families, err := m.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "shai_audit_refusing" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no metric shai_audit_refusing")
	return 0
}
