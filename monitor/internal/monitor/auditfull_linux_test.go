// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// An access that cannot be recorded is refused, and status says why. What has happened is
// recorded all the same. The monitor's own log is on a file system that becomes full.
func TestAuditLogIsFull(t *testing.T) {
	options := bareOptions(t)
	directory := filepath.Join(options.State, auditFolder)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(directory, 0o700))
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(directory, unix.MNT_DETACH) })
	m := startedBare(t, options)
	t.Cleanup(func() { _ = m.Close() }) // says that records are lost
	applyBare(t, m, pipelinetest.Bare)
	opens := func() bool { return collectorOpens(t, m, "/open/1.txt", unix.O_RDONLY) }
	if !opens() || m.Ready(t.Context()) != nil || refusing(t, m) != 0 {
		t.Fatal("refused, or not ready, while there is space")
	}
	filler := filepath.Join(directory, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waiting.Until(t, "the log fails", func() bool { opens(); return m.audit.Failing() != nil })
	if opens() {
		t.Error("allowed although it cannot be recorded")
	}
	status, err := m.Status(t.Context())
	must(err)
	if status.Ready || !strings.Contains(status.Reason, "refused, since the disk of") || refusing(t, m) != 1 {
		t.Errorf("status: ready %t, %s; metric %v", status.Ready, status.Reason, refusing(t, m))
	}
	// What has happened is recorded, in the space that was reserved.
	_, err = m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{apiFact("friends/alice", "friend", "carol")}})
	must(err)
	must(m.audit.Flush(t.Context()))
	var kinds []audit.Kind
	must(m.audit.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
		kinds = append(kinds, r.Kind)
		return nil
	}))
	if !slices.Contains(kinds, audit.Recovery) || !slices.Contains(kinds, audit.Fact) {
		t.Errorf("on the full disk there are records of the kinds %v", kinds)
	}
	must(os.Remove(filler))
	waiting.Until(t, "accesses are recorded again", func() bool { return m.audit.Failing() == nil })
	if !opens() || m.Ready(t.Context()) != nil || refusing(t, m) != 0 {
		t.Error("refused, or not ready, although there is space again")
	}
	if checked, err := audit.Verify(t.Context(), directory, ""); err != nil || checked.Fault != "" {
		t.Errorf("the chain: %s, %v", checked.Fault, err)
	}
}

// refusing returns the value of the metric that says whether accesses are refused.
func refusing(t *testing.T, m *Monitor) float64 {
	t.Helper()
	families, err := m.metrics.Gather()
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
