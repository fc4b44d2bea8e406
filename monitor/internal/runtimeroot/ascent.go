// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ascent is a file with all directories above it, up to the root of the file system.
type ascent struct {
	path        string // without symbolic links
	exists      bool
	directories []identified // from the file itself, or the nearest existing directory, up to "/"
}

// identified is a file with its identity in the kernel, which does not depend on its
// name.
type identified struct {
	path string
	info os.FileInfo
}

// ascend follows the symbolic links of a path. If the path's end does not exist, the
// ascent begins at the nearest existing directory.
func ascend(path string) (ascent, error) {
	real, missing := path, ""
	for {
		found, err := filepath.EvalSymlinks(real)
		if err == nil {
			real = found
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || real == "/" {
			return ascent{}, err
		}
		real, missing = filepath.Dir(real), filepath.Join(filepath.Base(real), missing)
	}
	result := ascent{path: filepath.Join(real, missing), exists: missing == ""}
	for {
		info, err := os.Lstat(real)
		if err != nil {
			return ascent{}, err
		}
		result.directories = append(result.directories, identified{real, info})
		if real == "/" {
			return result, nil
		}
		real = filepath.Dir(real)
	}
}

// above reports whether the ascent's own file, which exists, is one of the other's files
// and directories.
func (a ascent) above(other ascent) bool {
	for _, one := range other.directories {
		if os.SameFile(a.directories[0].info, one.info) {
			return true
		}
	}
	return false
}
