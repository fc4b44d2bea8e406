// SPDX-License-Identifier: BSD-2-Clause

package plainfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Without O_NONBLOCK, this test does not end.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	directory := t.TempDir()
	file, pipe := filepath.Join(directory, "file"), filepath.Join(directory, "pipe")
	link := filepath.Join(directory, "link")
	if err := os.WriteFile(file, []byte("read :- true.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if text, err := Read(file); string(text) != "read :- true.\n" || err != nil {
		t.Errorf("a file is read as %q, %v", text, err)
	}
	for path, want := range map[string]error{pipe: ErrIrregular, link: ErrIrregular, directory: ErrIrregular,
		os.DevNull: ErrIrregular, file + ".gone": fs.ErrNotExist} {
		if _, err := Read(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := OpenIn(root, "pipe"); !errors.Is(err, ErrIrregular) {
		t.Errorf("a pipe beneath a directory: %v", err)
	}
}
