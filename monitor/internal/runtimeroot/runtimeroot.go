// SPDX-License-Identifier: BSD-2-Clause

// Package runtimeroot has the runtimes of tasks: the files and directories from which
// they execute programs and load libraries. No policy decides on opens beneath them. So whoever
// starts the monitor defines them, and tasks name them ([Named]); and whoever defines it, a
// runtime must not contain, or be in, a place with data, secrets or the kernel's own
// files ([Check]).
package runtimeroot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Place is a file or a directory that no task may reach through its runtime. It need not
// exist yet.
type Place struct {
	Path string // absolute
	What string // its description in errors: "the data directory"
}

// ofOthers describes places of which a manifest's author learns nothing but this.
const ofOthers = "what belongs to another monitor, or to a member of a pool"

// OfOthers returns a place of another monitor.
func OfOthers(path string) Place { return Place{Path: path, What: ofOthers} }

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
			return nil, &refusal{one.What + " cannot be found, so that no runtime can be checked; the monitor's log says why",
				err.Error()}
		}
		guarded = append(guarded, place{one, where, originsOf(mounts, where)})
	}
	var real []string
	for _, root := range roots {
		where, err := ascend(root)
		if err != nil {
			return nil, &refusal{fmt.Sprintf("find runtime %s: %v", root, withoutPath(err)), err.Error()}
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
		if contains || lies || meet(origins, one.origins) {
			return &refusal{fmt.Sprintf("runtime %s %s; %s", root, relation(contains, lies)+one.What, remedy), one.Path}
		}
	}
	return checkMarks(root, where)
}

func relation(contains, lies bool) string {
	switch {
	case contains && lies:
		return "is "
	case contains:
		return "contains "
	case lies:
		return "lies in "
	}
	return "reaches, through a mount, "
}

const remedy = "a task may read all of its runtime without a decision: name only the directories that hold its program and libraries"

// checkMarks refuses the directory of another member of a pool, whose monitor this one
// does not know.
func checkMarks(root string, where ascent) error {
	for _, directory := range where.directories {
		if _, err := os.Lstat(filepath.Join(directory.path, mark)); err == nil {
			return &refusal{fmt.Sprintf("runtime %s lies in %s; %s", root, ofOthers, remedy), directory.path}
		}
	}
	if inside, err := filepath.Glob(filepath.Join(escape(where.path), "*", mark)); err != nil || len(inside) > 0 {
		return &refusal{fmt.Sprintf("runtime %s contains %s; %s", root, ofOthers, remedy), strings.Join(inside, ", ")}
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
