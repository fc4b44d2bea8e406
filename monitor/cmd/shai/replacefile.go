// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replaceFile writes a new file with these permissions and renames it over the old one, if
// there is one, so that a full disk cannot leave an incomplete file. A device, such as
// /dev/null, is written to. A symbolic link is an error: in a directory of others it
// may lead anywhere, and the file that it names would not be replaced. So is a pipe: who has
// made it may be somebody else, and reads it.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	about, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && about.Mode().IsRegular():
		err = renameOver(path, content, mode)
	case err == nil && about.Mode().Type() == fs.ModeSymlink:
		err = errors.New("it is a symbolic link, which is not followed: name the file itself")
	case err == nil && about.Mode().Type() == fs.ModeNamedPipe:
		err = errors.New("it is a pipe, which others may read: write to the standard output, into the pipe")
	case err == nil:
		err = writeInto(path, content)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// renameOver writes a file beside path, which nobody else can open before it has its
// permissions, and renames it.
func renameOver(path string, content []byte, mode fs.FileMode) (err error) {
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(draft.Name())
		}
	}()
	_, err = draft.Write(content)
	if err == nil {
		err = draft.Chmod(mode)
	}
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}

// writeInto writes to what is there already.
func writeInto(path string, content []byte) error {
	place, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = place.Write(content)
	return errors.Join(err, place.Close())
}
