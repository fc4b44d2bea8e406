// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// place is the context of a request's path. A task in capability mode has no root and no
// working directory of its own any more: paths keep the meaning that they had when the
// task was started.
type place struct {
	workingDirectory string
	sent             int // the directory that was sent with the request; -1 if none
}

var _ surroundings = place{}

// root implements [surroundings].
func (place) root() (int, error) { return openDirectory("/") }

// start implements [surroundings].
func (p place) start(directory int) (int, error) {
	if directory == unix.AT_FDCWD {
		return openDirectory(p.workingDirectory)
	}
	return reopenDirectory(directory)
}

// target implements [surroundings].
func (place) target(link, _ int, _ string) (string, error) { return readLink(link) }

// mayKnow implements [surroundings]. There, names are not hidden (docs/enforcement.md, "Limits").
func (place) mayKnow(int, bool, bool) error { return nil }

func openDirectory(path string) (int, error) {
	return unix.Open(path, openPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// reopenDirectory opens a directory of a task with the monitor's rights: with the task's
// rights, nothing outside of it could be reached by ".." or a link. The directory's path
// must still lead to the same directory.
func reopenDirectory(directory int) (int, error) {
	path, err := pathOf(directory)
	if err != nil {
		return -1, errRefused // no right to be examined, or not a directory
	}
	reopened, err := unix.Open(path, openPath|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var before, after unix.Stat_t
	err = errors.Join(unix.Fstat(directory, &before), unix.Fstat(reopened, &after))
	if err != nil || before.Dev != after.Dev || before.Ino != after.Ino {
		unix.Close(reopened)
		return -1, errRefused
	}
	return reopened, nil
}

// processFiles are file systems whose files describe the process that opens them. Here,
// that would be the monitor.
var processFiles = map[string]bool{"fdescfs": true, "procfs": true, "linprocfs": true}

// realPath returns the path by which current was found. Of a file with several names the
// kernel may return any, so a file's path is that of its directory and the name in it.
func (w *walk) realPath() (string, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(w.current, &system); err != nil {
		return "", err
	}
	if processFiles[unix.ByteSliceToString(system.Fstypename[:])] {
		return "", errRefused
	}
	if w.parent < 0 {
		return pathOf(w.current)
	}
	directory, err := pathOf(w.parent)
	return strings.TrimSuffix(directory, "/") + "/" + w.name, err
}
