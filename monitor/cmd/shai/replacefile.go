// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a new file and renames it over the old one, if there is one, so that
// a full disk cannot leave an incomplete file. What is no file, such as /dev/null, is
// written to.
func replaceFile(path string, content []byte) (err error) {
	mode := fs.FileMode(0o644)
	if about, err := os.Stat(path); err == nil && !about.Mode().IsRegular() {
		return os.WriteFile(path, content, mode)
	} else if err == nil {
		mode = about.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", path, err)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(draft.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	_, err = draft.Write(content)
	if err == nil {
		err = draft.Chmod(mode)
	}
	if err == nil {
		err = draft.Sync()
	}
	if closing := draft.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	return err
}
