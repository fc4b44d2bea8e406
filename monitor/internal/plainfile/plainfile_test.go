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
	if text, err := Read(file, 14); string(text) != "read :- true.\n" || err != nil {
		t.Errorf("a file is read as %q, %v", text, err)
	}
	for path, want := range map[string]error{pipe: ErrIrregular, link: ErrIrregular, directory: ErrIrregular,
		os.DevNull: ErrIrregular, file + ".gone": fs.ErrNotExist} {
		if _, err := Read(path, 14); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := OpenIn(root, "pipe"); !errors.Is(err, ErrIrregular) {
		t.Errorf("a pipe beneath a directory: %v", err)
	}
}

// Without the limit, this test needs the memory that the file has in length.
func TestNoMoreIsReadThanTheLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<30)); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadStart(path, 100); len(text) != 101 || err != nil {
		t.Errorf("%d bytes are read, %v", len(text), err)
	}
	if text, err := Read(path, 100); text != nil || !errors.Is(err, ErrTooLong) {
		t.Errorf("%d bytes are read, %v", len(text), err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path, 100); len(text) != 100 || err != nil {
		t.Errorf("of a file within the limit, %d bytes are read, %v", len(text), err)
	}
}
