// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A task that may write a directory can make one whose path is longer than any system call
// takes, by renaming what is there beneath another one. Documents are found nevertheless.
func TestDirectoriesTooDeepToNameHideNoDocument(t *testing.T) {
	root := t.TempDir()
	prepareDocuments(t, root, 0)
	public := filepath.Join(root, "data/corpus/public")
	top, chain := filepath.Join(public, "a"), filepath.Join(public, "b")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		bottom := filepath.Join(chain, strings.Repeat(strings.Repeat("x", 200)+"/", 10))
		if err := os.MkdirAll(bottom, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(top, filepath.Join(bottom, "a")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(chain, top); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(public, "document"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, _, err := open(t, filepath.Join(root, "state")).RegisterFiles(t.Context(), filepath.Join(root, "data"), nil)
	if err != nil || found != 1 {
		t.Errorf("%d documents, want 1: %v", found, err)
	}
}
