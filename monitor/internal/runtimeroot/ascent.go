// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ascent is the way up from a file: itself, the directory that holds it, and so on to
// the root of the file system.
type ascent struct {
	path        string // without symbolic links
	exists      bool
	directories []identified // from the file itself, if it exists, up to "/"
}

// identified is a file as the kernel knows it, whatever it is called.
type identified struct {
	path string
	info os.FileInfo
}

// ascend follows the symbolic links of a path. What is missing is left out: the ascent
// then begins at the nearest directory that is there.
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

// above says whether the file at which this ascent begins, which exists, is one that the
// other one passes.
func (a ascent) above(other ascent) bool {
	for _, one := range other.directories {
		if os.SameFile(a.directories[0].info, one.info) {
			return true
		}
	}
	return false
}
