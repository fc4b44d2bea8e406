// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/wire"
)

// Permission is the sandbox's own decision about a path.
type Permission uint8

// The decisions. The monitor decides on whatever is neither permitted nor forbidden.
const (
	AskMonitor Permission = iota
	Permitted
	Forbidden
)

// Use is what an open does with a file.
type Use uint8

// The uses of a file.
const (
	Changing Use = iota // writes it, or changes it in another way, and may read it, too
	Reading             // reads it, and no more
	Looking             // looks at its metadata only
)

// Process is the process that makes a request.
type Process struct {
	Number  int
	Program bool // the task's program itself, not something it forked
}

// Permits are the paths for which the sandbox answers without asking the monitor. All
// checks of the mediated calls are here. The paths are real paths of pinned files.
type Permits struct {
	Runtime []string    // hierarchies: reading
	leading hierarchies // everything the specification names, and the ancestors: looking
	given   hierarchies // everything the specification names, but for the working directory
	written []string    // what the task may write: looking
	read    hierarchies // what the perimeter lets the program itself read
	listed  hierarchies // what it lets the program read, or at least list
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
	for _, one := range paths {
		for !set[one] {
			set[one] = true
			one = path.Dir(one)
		}
	}
	return set
}

// hold reports whether name is one of the directories or lies beneath one.
func (h hierarchies) hold(name string) bool { return h.innermost(name) != "" }

// innermost returns the deepest of the directories that name is or lies beneath; "" if there is none.
func (h hierarchies) innermost(name string) string {
	for !h[name] {
		parent := path.Dir(name)
		if parent == name {
			return ""
		}
		name = parent
	}
	return name
}

// PermitsOf collects the permits of a specification. A hierarchy is entered under the
// name in the specification and under its real path, which realPath returns; it returns the
// name itself where it finds none.
func PermitsOf(spec Spec, realPath func(name string) string) Permits {
	var written, read, listed []string
	for _, directory := range spec.Perimeter {
		if directory.Rights&(Write|Names) != 0 {
			written = append(written, directory.Path)
		}
		if directory.Rights&Read != 0 {
			read = append(read, directory.Path)
		}
		if directory.Rights&(Read|List) != 0 {
			listed = append(listed, directory.Path)
		}
	}
	return Permits{Runtime: spec.Runtime, leading: leadingTo(withReal(spec.paths(), realPath)),
		given:   hierarchiesOf(withReal(slices.Concat(spec.given(), spec.Owned), realPath)),
		written: withReal(written, realPath), read: hierarchiesOf(withReal(read, realPath)),
		listed: hierarchiesOf(withReal(listed, realPath))}
}

func withReal(names []string, realPath func(name string) string) []string {
	var result []string
	for _, name := range names {
		result = append(result, path.Clean(name))
		if place := realPath(name); place != name {
			result = append(result, place)
		}
	}
	return result
}

// harmless are devices that neither store nor carry data.
var harmless = map[string]bool{
	"/dev/null": true, "/dev/zero": true, "/dev/full": true, "/dev/random": true, "/dev/urandom": true,
}

// ownProcess matches the files beneath /proc/<pid> that a process may read about itself.
// HotSpot and libc read limits, control groups and their own mappings. None of the files may
// tell of a page whether others have mapped it, as smaps, smaps_rollup, pagemap and numa_maps
// do: a page of a library is the same for every task of the machine. The counts in statm and
// status are of the process's own mappings.
var ownProcess = regexp.MustCompile(`^(task/[0-9]+/)?(auxv|cgroup|cmdline|comm|limits|maps|mountinfo|mounts|oom_score|schedstat|stat|statm|status)$|^(task/[0-9]+|task|fd|fdinfo)?$`)

// IsHarmless reports whether a path leads to a device that neither stores nor carries
// data.
func IsHarmless(path string) bool { return harmless[path] }

// Of returns the permission for a use of the file at a path.
func (p Permits) Of(path string, use Use, by Process) Permission {
	if owner, rest, isProcess := processOf(path); isProcess {
		switch {
		case owner != by.Number:
			// This holds even if /proc is part of the runtime: the monitor opens on the
			// task's behalf, and can look into processes that the task must not see.
			return Forbidden
		case use != Changing && ownProcess.MatchString(rest):
			return Permitted
		}
		return AskMonitor
	}
	switch {
	case harmless[path]:
		return Permitted
	case use != Changing && p.InRuntime(path):
		return Permitted
	case use == Looking && p.mayLook(path, by):
		return Permitted
	}
	return AskMonitor
}

// InRuntime reports whether a path is part of the task's runtime.
func (p Permits) InRuntime(path string) bool { return Beneath(path, p.Runtime...) }

// IsChecked reports whether the monitor decides on every write to a reserved number.
func IsChecked(number int) bool {
	return number == wire.FDConnectionChecked || number >= wire.FDChannelChecked && number < wire.FDReservedEnd
}

// SetsLock reports whether a command of fcntl on Linux sets or removes a record lock.
func SetsLock(command uint32) bool { return slices.Contains(lockCommands, command) }

// mayLook reports whether the process may see metadata. The program may see those of
// everything that it can open natively. Its forks may have restricted themselves to a
// session since, which cannot be seen from here, so the monitor decides for them.
func (p Permits) mayLook(path string, by Process) bool {
	return p.leading[path] || Beneath(path, p.written...) || p.MayRead(path, by)
}

// MayRead reports whether the process could have opened the path natively.
func (p Permits) MayRead(path string, by Process) bool {
	return by.Program && p.read.hold(path)
}

// MayList reports whether the process may read the names in the directory at a path: one that the
// perimeter lists, or one beneath what it lets the program read.
func (p Permits) MayList(path string, by Process) bool {
	return by.Program && (p.listed[path] || p.read.hold(path))
}

// MayLock reports whether the task may lock the file at a path: it may list its directory,
// and write what is in it.
func (p Permits) MayLock(path string) bool {
	return Beneath(path, p.written...) && p.listed.hold(path)
}

// IsOwnLink reports whether a path is one of the links beneath /proc/<pid> whose targets
// a process may read about itself: its program, its directories, and what it has open.
func IsOwnLink(path string, process int) bool {
	owner, rest, isProcess := processOf(path)
	return isProcess && owner == process &&
		(rest == "exe" || rest == "cwd" || rest == "root" || strings.HasPrefix(rest, "fd/"))
}

// Given returns the innermost hierarchy in which a path lies of those that the specification names;
// "" if there is none. Which names there are in it the task may know, as far as its user's rights go.
func (p Permits) Given(name string) string { return p.given.innermost(name) }

// Leads reports whether the specification names a path, or something beneath it.
func (p Permits) Leads(path string) bool { return p.leading[path] }

// ProcessOf returns the process that a path beneath /proc is about.
func ProcessOf(path string) (process int, ok bool) {
	process, _, ok = processOf(path)
	return process, ok
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

// Beneath reports whether path is one of the roots or lies beneath one. It compares names,
// and follows no links.
func Beneath(path string, roots ...string) bool {
	for _, root := range roots {
		if root == "/" {
			return true
		}
		if rest, found := strings.CutPrefix(path, root); found && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
