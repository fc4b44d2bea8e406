// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// IsOthers reports whether a real path beneath the roots belongs to another monitor or to a
// member of a pool by now: [Check] cannot know what is made later. directories are real paths of
// other monitors' data. It keeps nothing, as a mark may come at any time; the kernel knows that
// there is none.
func IsOthers(path string, roots, directories []string) (bool, error) {
	within := func(directory string) bool { return beneath(path, directory) }
	if slices.ContainsFunc(directories, within) {
		return true, nil
	}
	for at := path; ; at = filepath.Dir(at) {
		if !slices.ContainsFunc(roots, func(root string) bool { return beneath(at, root) }) {
			return false, nil
		}
		var stat unix.Stat_t
		err := unix.Lstat(filepath.Join(at, mark), &stat)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
			return false, fmt.Errorf("look for %s in %s: %w", mark, at, err)
		case at == "/":
			return false, nil
		}
	}
}
