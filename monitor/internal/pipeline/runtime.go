// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// runtime returns the real paths of the task's runtime. They are checked again each time
// the task starts: a path may lead elsewhere than when the bundle was applied.
func (t *Task) runtime() ([]string, error) {
	services := t.pipeline.services
	guarded, err := services.Guarded()
	if err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	roots, err := runtimeroot.Check(t.spec.Runtime, guarded)
	if err != nil {
		err = fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
		if detail := runtimeroot.Detail(err); detail != "" {
			services.Logger.Warn("a task does not start because of its runtime", "error", err, "path", detail)
		}
		return nil, err
	}
	roots = append(roots, services.Options.Library)
	if err := errors.Join(t.checkReachable(roots), t.checkProgram(roots)); err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	return roots, nil
}

// checkProgram refuses a program, or an interpreter of it, that is not in the task's
// runtime or is also a document. The kernel reads these files for the task, and nobody
// decides on that.
func (t *Task) checkProgram(roots []string) error {
	if t.pipeline.Mode() == wire.ModeBaseline {
		return nil
	}
	files, err := sandbox.Executed(t.spec.Command[0], roots)
	if err != nil {
		return err
	}
	for _, file := range files {
		var stat unix.Stat_t
		if err := unix.Stat(file.Path, &stat); err != nil {
			return fmt.Errorf("examine %s: %w", file.Path, err)
		}
		if stat.Nlink < 2 {
			continue
		}
		isData, err := t.pipeline.services.shared.hold(sandbox.SharedFile{Device: stat.Dev, Inode: stat.Ino,
			Changed: time.Unix(stat.Ctim.Unix())})
		switch {
		case err != nil:
			return fmt.Errorf("cannot check whether %s is a document by another name: %w", file.Path, err)
		case isData:
			return fmt.Errorf("%s, which it executes, is also a document (a hard link); remove one of the names", file.Path)
		}
	}
	return nil
}

// checkReachable refuses a runtime in a directory that the task's user may not search. It
// allows a runtime that the administrator has named with --define or --library: the
// monitor opens it for the task. In mode baseline the task opens everything itself.
func (t *Task) checkReachable(roots []string) error {
	user, mode := t.pipeline.user, t.pipeline.Mode()
	for _, root := range roots {
		blocked, err := closedTo(user, root)
		if err != nil {
			return fmt.Errorf("find runtime %s: %w", root, err)
		}
		if blocked == "" || mode != wire.ModeBaseline && t.pipeline.services.isNamed(root) {
			continue
		}
		return fmt.Errorf("its user %d cannot reach runtime %s: %s is closed to other users; open it (chmod o+x %s), "+
			"or put the runtime where every user can search", user.ID, root, blocked, blocked)
	}
	return nil
}

// closedTo returns the first directory on the way to a path that a user may not search,
// "" if there is none.
func closedTo(user *plan.User, path string) (string, error) {
	if user == nil {
		return "", nil
	}
	blocked := ""
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return "", err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.IsDir() && !user.Permits(stat.Uid, stat.Gid, uint32(info.Mode().Perm()), maySearch) {
			blocked = path
		}
		if path == "/" {
			return blocked, nil
		}
		path = filepath.Dir(path)
	}
}

// isNamed reports whether the administrator has named a path, or a directory above it.
func (s *Services) isNamed(path string) bool {
	if pattern.IsBeneath(s.Options.Library, path) {
		return true
	}
	for _, value := range s.Options.Define {
		real, err := filepath.EvalSymlinks(value)
		if filepath.IsAbs(value) && err == nil && pattern.IsBeneath(real, path) {
			return true
		}
	}
	return false
}
