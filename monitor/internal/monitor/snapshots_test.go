// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// awaitSnapshot waits for the snapshot after an apply, which a process of its own examines.
func awaitSnapshot(t *testing.T, state string) {
	t.Helper()
	waiting.Until(t, "a snapshot is taken", func() bool {
		taken, err := filepath.Glob(filepath.Join(state, catalogFolder, "snapshots/*.db"))
		return err == nil && len(taken) > 0
	})
}

// A monitor refuses a damaged catalog and names the way back, which leads to the state
// after the last apply. A change since then is lost, and a stored analysis of it too.
func TestDamagedCatalog(t *testing.T) {
	options := bareOptions(t)
	m, err := Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	applyBare(t, m, pipelinetest.Bare)
	var snapshots []catalog.Snapshot
	waiting.Until(t, "a snapshot is taken", func() bool {
		snapshots, err = Snapshots(t.Context(), options.State)
		return len(snapshots) == 1
	})
	analyzeBare(t, m)
	bob := api.FactChange{Remove: []api.Fact{bareFact("friends/alice", "friend", "bob")}}
	if _, err := m.ChangeFacts(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), options.State, snapshots[0].Name); err == nil {
		t.Error("restored while a monitor runs")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(context.Background(), options); err != nil || again.Close() != nil {
		t.Fatalf("a whole catalog: %v", err)
	}

	file := filepath.Join(options.State, catalogFolder, "catalog.db")
	for _, size := range []int64{5000, 0} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		_, err = Open(context.Background(), options)
		if !errors.Is(err, catalog.ErrDamaged) || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), "shai restore --state "+options.State) {
			t.Fatalf("a catalog of %d bytes: %v", size, err)
		}
	}
	kept, err := Restore(t.Context(), options.State, snapshots[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the damaged file: %v", err)
	}
	m, err = Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if !m.state().Has(bobIsAFriend) || m.analyses["bare"] != nil {
		t.Error("the state is not that of the snapshot")
	}
	recorded := false
	err = m.audit.Query(t.Context(), audit.Query{Kinds: []audit.Kind{audit.Recovery}}, func(record audit.Record) error {
		recorded = recorded || strings.Contains(record.Reason, snapshots[0].Name)
		return nil
	})
	if err != nil || !recorded {
		t.Errorf("no record of the restoration, %v", err)
	}
}
