// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// reaches fails unless the task's user may search every directory from a runtime
// hierarchy down to the file. The monitor, which has resolved the path, can pass
// directories that are closed to the task. The administrator decided how the hierarchy
// itself is reached.
func (a *arbiter) reaches(file *pinned) error {
	if a.user == nil {
		return nil
	}
	for _, root := range a.permits.Runtime {
		if !plan.Beneath(file.path, root) {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(file.path, root), "/")
		if rest == "" {
			return nil
		}
		if err := a.reachesFrom(root, rest, file); err == nil || exhausted(err) {
			return err
		}
	}
	return unix.EACCES
}

func (a *arbiter) reachesFrom(root, rest string, file *pinned) error {
	start, err := unix.Openat2(unix.AT_FDCWD, root,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(start)
	var stat unix.Stat_t
	err = asUser(a.user, func() error {
		found, err := unix.Openat2(start, rest,
			&unix.OpenHow{Flags: pinFlags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return err
		}
		defer unix.Close(found)
		return unix.Fstat(found, &stat)
	})
	if err == nil && (stat.Dev != file.stat.Dev || stat.Ino != file.stat.Ino) {
		return unix.EACCES
	}
	return err
}
