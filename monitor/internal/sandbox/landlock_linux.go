// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// landlockABI returns the kernel's Landlock version, 0 if Landlock is missing or
// disabled.
func landlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// rulesetAttributes is struct landlock_ruleset_attr up to ABI 7. The kernel accepts a
// structure that is shorter than its own, and a longer one if the additional fields are
// zero.
type rulesetAttributes struct{ files, network, scope uint64 }

// createRuleset builds a ruleset in the kernel. The caller closes the descriptor.
func createRuleset(domain *plan.Perimeter) (int, error) {
	attributes := rulesetAttributes{domain.Files, domain.Network, domain.Scope}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return -1, fmt.Errorf("create Landlock ruleset: %w", errno)
	}
	for _, grant := range domain.Grants {
		if err := addRule(int(ruleset), grant); err != nil {
			unix.Close(int(ruleset))
			return -1, err
		}
	}
	return int(ruleset), nil
}

func addRule(ruleset int, grant plan.Grant) error {
	// The path that was checked has no symbolic links. A link that has been put into it
	// since would lead somewhere else.
	parent, err := unix.Openat2(unix.AT_FDCWD, grant.Path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return fmt.Errorf("grant %s: %w", grant.Path, err)
	}
	defer unix.Close(parent)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: grant.Access, Parent_fd: int32(parent)}
	add := func() unix.Errno {
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
			uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		return errno
	}
	errno := add()
	if errno == unix.EINVAL {
		// A rule on a file may not name rights of directories.
		rule.Allowed_access &= plan.AccessOnFiles
		errno = add()
	}
	if errno != 0 {
		return fmt.Errorf("grant %s rights %#x: %w", grant.Path, grant.Access, errno)
	}
	return nil
}

// restrictSelf confines the calling thread, which must already have no_new_privs, and
// everything that it starts.
func restrictSelf(ruleset int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict with Landlock ruleset: %w", errno)
	}
	return nil
}
