// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/shellword"
)

// catalogFolder is the folder of the catalog in the state directory.
const catalogFolder = "catalog"

// The monitor takes a snapshot of its catalog after each apply, and at this interval if
// the catalog has changed.
const (
	snapshotInterval = 15 * time.Minute
	snapshotsKept    = 8
)

// checkCatalog refuses a damaged catalog, and says how to get back to one that is whole.
func checkCatalog(ctx context.Context, state string) error {
	err := catalog.Check(ctx, filepath.Join(state, catalogFolder))
	if !errors.Is(err, catalog.ErrDamaged) {
		return err
	}
	list := "shai restore --state " + shellword.Quote(state)
	return fmt.Errorf("%w; %s lists its snapshots, and restores one; if there is none, move %s away and apply the "+
		"manifests again", err, list, filepath.Join(state, catalogFolder))
}

// requestSnapshot makes watchSnapshots take one soon. It never blocks.
func (m *Monitor) requestSnapshot() {
	select {
	case m.snapshotting <- struct{}{}:
	default: // the last request is still pending
	}
}

// watchSnapshots takes snapshots until ctx ends.
func (m *Monitor) watchSnapshots(ctx context.Context) {
	interval := time.NewTicker(snapshotInterval)
	defer interval.Stop()
	var last *catalog.State
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.snapshotting:
		case <-interval.C:
		}
		now := m.state()
		if now == last || now.Bundle().Version == 0 {
			continue
		}
		switch err := m.catalog.Snapshot(ctx, snapshotsKept); {
		case err == nil:
			last = now
		case errors.Is(err, catalog.ErrDamaged):
			m.logger.Error("the catalog is damaged on disk; stop the monitor and restore a snapshot with shai restore",
				"error", err)
		case ctx.Err() == nil:
			m.logger.Error("there is no new snapshot of the catalog", "error", err)
		}
	}
}

// Snapshots lists the snapshots of the catalog in a monitor's state directory, oldest
// first.
func Snapshots(ctx context.Context, state string) ([]catalog.Snapshot, error) {
	return catalog.Snapshots(ctx, filepath.Join(state, catalogFolder))
}

// Restore puts a snapshot in the place of the catalog in a state directory, and records
// it. It returns the path at which it keeps the earlier file, "" if there was none. It
// fails while a monitor uses the directory.
func Restore(ctx context.Context, state, snapshot string) (kept string, err error) {
	if _, err := os.Stat(filepath.Join(state, catalogFolder)); err != nil {
		return "", fmt.Errorf("restore: %w; name the state directory of a monitor", err)
	}
	log, err := audit.Open(audit.Options{Directory: filepath.Join(state, auditFolder), MaxSize: math.MaxInt64})
	if err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	// They are of states that the restored catalog will not reach: it would count other
	// changes with the same numbers.
	if err := removeAnalyses(state); err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	kept, err = catalog.Restore(ctx, filepath.Join(state, catalogFolder), snapshot)
	if err != nil {
		return kept, err
	}
	return kept, log.Append(audit.Event{Kind: audit.Recovery, Operation: "restore", Allowed: true,
		Reason: "the catalog is that of snapshot " + snapshot})
}

func removeAnalyses(state string) error {
	entries, err := os.ReadDir(state)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), analysisPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(state, entry.Name())))
		}
	}
	return err
}
