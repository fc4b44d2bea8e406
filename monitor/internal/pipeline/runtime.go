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

	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// runtime returns the paths of the task's runtime as the monitor was given them, and the
// real paths of all that the task may read and execute. They are checked again each time
// the task starts: a path may lead elsewhere than when the bundle was applied.
func (t *Task) runtime() (given, roots []string, err error) {
	services := t.pipeline.services
	guarded, err := services.Guarded()
	if err != nil {
		return nil, nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	given, err = services.Options.Runtimes.Of(t.spec)
	if err != nil {
		return nil, nil, fmt.Errorf("task %s/%s %w", t.pipeline.name, t.name, err)
	}
	if roots, err = runtimeroot.Check(given, guarded); err != nil {
		err = fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
		if detail := runtimeroot.Detail(err); detail != "" {
			services.Logger.Warn("a task does not start because of its runtime", "error", err, "path", detail)
		}
		return nil, nil, err
	}
	roots = append(roots, services.Options.Library)
	if err := errors.Join(t.checkReachable(roots), t.checkProgram(roots)); err != nil {
		return nil, nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	return given, roots, nil
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
		return fmt.Errorf("%w (%s)", err, t.describeRuntime())
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

// describeRuntime says which runtime the task names, for an error about its program.
func (t *Task) describeRuntime() string {
	if t.spec.RuntimeName == "" {
		return "the task names no runtime; name one that has its program in spec.runtimeName"
	}
	return "the task's runtime is " + t.spec.RuntimeName
}

// checkReachable refuses a task of mode baseline, which opens everything itself, if a part of
// its runtime is in a directory that its user may not search. In all other modes the
// monitor opens the runtime for the task, because whoever started the monitor gave it.
func (t *Task) checkReachable(roots []string) error {
	if t.pipeline.Mode() != wire.ModeBaseline {
		return nil
	}
	user := t.user()
	for _, root := range roots {
		blocked, err := closedTo(user, root)
		if err != nil {
			return fmt.Errorf("find runtime %s: %w", root, err)
		}
		if blocked == "" {
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
