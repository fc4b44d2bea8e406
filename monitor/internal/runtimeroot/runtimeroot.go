// SPDX-License-Identifier: BSD-2-Clause

// Package runtimeroot checks the runtime of tasks: the files and directories from which
// they execute programs and load libraries. No policy decides on opens beneath them, so a
// runtime must not contain, or be in, a place with data, secrets or the kernel's own
// files.
package runtimeroot

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
)

// Place is a file or a directory that no task may reach through its runtime. It need not
// exist yet.
type Place struct {
	Path string // absolute
	What string // its description in errors: "the data directory"
}

// mark is the file with which the role linux_member marks the directory of a pool's
// member.
const mark = ".shai-member"

// Check follows the symbolic links in the paths of roots. It refuses every root that
// contains a place, is one, or lies in one. It compares the identity of all directories
// above each, and the origins of mounted directories. It also refuses the kernel's own
// files. It returns the roots' real paths. Their user must not follow symbolic links
// again.
func Check(roots []string, places []Place) ([]string, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var guarded []place
	for _, one := range places {
		where, err := ascend(one.Path)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", one.What, err)
		}
		guarded = append(guarded, place{one, where, originsOf(mounts, where)})
	}
	var real []string
	for _, root := range roots {
		where, err := ascend(root)
		if err != nil {
			return nil, fmt.Errorf("find runtime %s: %w", root, err)
		}
		if !where.exists {
			return nil, fmt.Errorf("runtime %s: there is no such file or directory; install it, or leave it out",
				root)
		}
		if err := checkRoot(root, where, originsOf(mounts, where), guarded); err != nil {
			return nil, err
		}
		if err := checkKernelFiles(mounts, root, where); err != nil {
			return nil, err
		}
		real = append(real, where.path)
	}
	return real, nil
}

// place is a place with its location.
type place struct {
	Place
	where   ascent
	origins []origin
}

func checkRoot(root string, where ascent, origins []origin, guarded []place) error {
	for _, one := range guarded {
		contains := where.above(one.where)
		lies := one.where.exists && one.where.above(where)
		mounted := meet(origins, one.origins)
		switch {
		case contains && lies:
			return fmt.Errorf("runtime %s is %s; %s", root, one.What, remedy)
		case contains:
			return fmt.Errorf("runtime %s contains %s (%s); %s", root, one.What, one.Path, remedy)
		case lies:
			return fmt.Errorf("runtime %s lies in %s (%s); %s", root, one.What, one.Path, remedy)
		case mounted:
			return fmt.Errorf("runtime %s reaches %s (%s) through a mount; %s", root, one.What, one.Path, remedy)
		}
	}
	return checkMarks(root, where)
}

const remedy = "a task may read all of its runtime without a decision: name only the directories that hold its program and libraries"

// checkMarks refuses the directory of another member of a pool, whose monitor this one
// does not know.
func checkMarks(root string, where ascent) error {
	for _, directory := range where.directories {
		if _, err := os.Lstat(filepath.Join(directory.path, mark)); err == nil {
			return fmt.Errorf("runtime %s lies in the directory of a pool's member (%s); %s", root, directory.path,
				remedy)
		}
	}
	if inside, err := filepath.Glob(filepath.Join(escape(where.path), "*", mark)); err != nil || len(inside) > 0 {
		return fmt.Errorf("runtime %s contains the directory of a pool's member; %s", root, remedy)
	}
	return nil
}

// escape escapes a path for use in a pattern of filepath.Glob.
func escape(path string) string {
	var escaped []byte
	for i := range len(path) {
		if path[i] == '*' || path[i] == '?' || path[i] == '[' || path[i] == '\\' {
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, path[i])
	}
	return string(escaped)
}
