// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"shai.dev/monitor/policy"
)

func isFriend(c *Catalog, name string) bool {
	return c.State().Has(policy.Pattern{Conduit: "friends/alice", Relation: "friend",
		Arguments: []policy.Value{policy.String(name)}})
}

func TestRestore(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	for _, name := range []string{"bob", "carol", "dave", "erin"} {
		if _, err := addFacts(c, fact("friends/alice", "friend", name)); err != nil {
			t.Fatal(err)
		}
		if name == "erin" {
			break // in no snapshot
		}
		if err := c.Snapshot(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Snapshots(t.Context(), dir)
	if err != nil || len(list) != 2 || list[0].Summary.Facts != 2 || list[1].Summary.Facts != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := Restore(t.Context(), dir, list[0].Name); !errors.Is(err, ErrInUse) {
		t.Errorf("restored while the catalog is open: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, databaseName)
	if err := os.WriteFile(file, []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept, err := Restore(t.Context(), dir, list[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(kept); err != nil || string(content) != "damage" {
		t.Errorf("the damaged file is not kept: %q, %v", content, err)
	}
	if err := Check(t.Context(), dir); err != nil {
		t.Errorf("after restoring: %v", err)
	}
	c = open(t, dir)
	defer c.Close()
	if !isFriend(c, "bob") || !isFriend(c, "carol") || isFriend(c, "dave") {
		t.Error("the facts are not those of the snapshot")
	}
}

// Neither a damaged snapshot nor a name that is none changes anything.
func TestRefusedRestore(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if err := errors.Join(c.Snapshot(t.Context(), 2), c.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := snapshotNames(filepath.Join(dir, snapshotFolder))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	if err := os.Truncate(filepath.Join(dir, snapshotFolder, names[0]), 5000); err != nil {
		t.Fatal(err)
	}
	list, err := Snapshots(t.Context(), dir)
	if err != nil || len(list) != 1 || list[0].Damage == "" {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := Restore(t.Context(), dir, list[0].Name); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged snapshot: %v", err)
	}
	for _, name := range []string{"", "../catalog", "20260101T000000.000Z"} {
		if _, err := Restore(t.Context(), dir, name); err == nil {
			t.Errorf("restored %q", name)
		}
	}
	if err := Check(t.Context(), dir); err != nil {
		t.Errorf("the catalog has changed: %v", err)
	}
}

// The copies of a catalog that is damaged do not push out those from before.
func TestDamageKeepsSnapshots(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	defer c.Close()
	if err := c.Snapshot(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	before, err := snapshotNames(filepath.Join(dir, snapshotFolder))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, databaseName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(make([]byte, os.Getpagesize()), 2*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, os.Getpagesize()), 3*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := c.Snapshot(t.Context(), 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	after, err := snapshotNames(filepath.Join(dir, snapshotFolder))
	if err != nil || len(after) != 1 || after[0] != before[0] {
		t.Errorf("%v, then %v, %v", before, after, err)
	}
}
