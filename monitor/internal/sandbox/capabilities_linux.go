// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"sync"

	"golang.org/x/sys/unix"
)

// documentAttributes are those of a mount that a session reads documents beneath: nothing
// is written or executed, no symbolic link is followed, and reading leaves no trace that
// another session could see.
const documentAttributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV |
	unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NOATIME

// mountsAvailable reports whether the kernel has detached mounts, and this process the
// privileges to make them.
var mountsAvailable = sync.OnceValue(func() bool {
	mount, err := mountOf("/", documentAttributes)
	if err != nil {
		return false
	}
	unix.Close(mount)
	return true
})
