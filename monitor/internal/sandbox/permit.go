// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// permission is the backend's own decision about a path.
type permission uint8

const (
	askMonitor permission = iota
	permitted
	forbidden
)

// permits are the paths for which the backend answers without asking the monitor. All
// checks of the mediated calls are here. The paths are real paths of pinned files.
type permits struct {
	runtime []string    // hierarchies: reading
	leading hierarchies // everything the specification names, and the ancestors: looking
	written []string    // what the task may write: looking
	read    hierarchies // what the perimeter lets the program itself read
}

// hierarchies is a set of directories. It may be large, since a view has as many classes
// as there are policies, and every mediated call consults it.
type hierarchies map[string]bool

func hierarchiesOf(paths []string) hierarchies {
	set := make(hierarchies, len(paths))
	for _, path := range paths {
		set[path] = true
	}
	return set
}

// leadingTo returns the paths and all their ancestors.
func leadingTo(paths []string) hierarchies {
	set := hierarchies{}
	for _, path := range paths {
		for !set[path] {
			set[path] = true
			path = filepath.Dir(path)
		}
	}
	return set
}

// hold reports whether path is one of the directories or lies beneath one.
func (h hierarchies) hold(path string) bool {
	for !h[path] {
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
	return true
}

// permitsOf collects the permits of a specification. A hierarchy is entered under the
// name in the specification and under its real path.
func permitsOf(spec Spec) permits {
	var written, read []string
	for _, directory := range spec.Perimeter {
		if directory.Rights&Write != 0 {
			written = append(written, directory.Path)
		}
		if directory.Rights&Read != 0 {
			read = append(read, directory.Path)
		}
	}
	return permits{runtime: spec.Runtime, leading: leadingTo(realPaths(spec.paths())),
		written: realPaths(written), read: hierarchiesOf(realPaths(read))}
}

func realPaths(paths []string) []string {
	var result []string
	for _, path := range paths {
		result = append(result, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			result = append(result, real)
		}
	}
	return result
}

// harmless are the devices that neither store nor carry data.
var harmless = map[string]bool{
	"/dev/null": true, "/dev/zero": true, "/dev/full": true, "/dev/random": true, "/dev/urandom": true,
}

// ownProcess matches the files beneath /proc/<pid> that a process may read about itself.
// HotSpot and libc read limits, control groups and their own mappings.
var ownProcess = regexp.MustCompile(`^(task/[0-9]+/)?(auxv|cgroup|cmdline|comm|limits|maps|mountinfo|mounts|oom_score|schedstat|smaps|smaps_rollup|stat|statm|status)$|^(task/[0-9]+|task|fd|fdinfo)?$`)

// caller is the process that makes a request.
type caller struct {
	process int
	program bool // the task's program itself, not something it forked
}

// of returns the permission for an open of a path with flags.
func (p permits) of(path string, flags int, by caller) permission {
	reading := flags&accessMode == syscall.O_RDONLY && flags&changing == 0
	looking := flags&openPath != 0
	if owner, rest, isProcess := processOf(path); isProcess {
		switch {
		case owner != by.process:
			// This holds even if /proc is part of the runtime: the monitor opens on the
			// task's behalf, and can look into processes that the task must not see.
			return forbidden
		case (reading || looking) && ownProcess.MatchString(rest):
			return permitted
		}
		return askMonitor
	}
	switch {
	case harmless[path]:
		return permitted
	case (reading || looking) && beneathAny(path, p.runtime):
		return permitted
	case looking && p.mayLook(path, by):
		return permitted
	}
	return askMonitor
}

// mayLook reports whether the caller may see metadata. The program may see those of
// everything that it can open natively. Its forks may have restricted themselves to a
// session since, which cannot be seen from here, so the monitor decides for them.
func (p permits) mayLook(path string, by caller) bool {
	return p.leading[path] || beneathAny(path, p.written) || p.mayRead(path, by)
}

// mayRead reports whether the caller could have opened path natively.
func (p permits) mayRead(path string, by caller) bool {
	return by.program && p.read.hold(path)
}

// processOf splits "/proc/12/maps" into 12 and "maps".
func processOf(path string) (process int, rest string, ok bool) {
	inProc, found := strings.CutPrefix(path, "/proc/")
	if !found {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(inProc, "/")
	process, err := strconv.Atoi(number)
	return process, rest, err == nil
}

func beneathAny(path string, roots []string) bool {
	for _, root := range roots {
		if beneath(path, root) {
			return true
		}
	}
	return false
}

// beneath reports whether path is root or lies beneath it.
func beneath(path, root string) bool {
	if root == "/" {
		return true
	}
	rest, found := strings.CutPrefix(path, root)
	return found && (rest == "" || rest[0] == '/')
}
