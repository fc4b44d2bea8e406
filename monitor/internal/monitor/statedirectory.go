// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// auditFolder is the folder of the audit log in the state directory, which the monitor
// makes first.
const auditFolder = "audit"

// makeState makes the state directory, and closes one that was made before to other users:
// everybody who can search it can search the view. It refuses an open directory that holds
// something else, such as /tmp, and leaves it as it is.
func makeState(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	info, err := os.Stat(directory)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	isState := slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == auditFolder })
	if len(entries) > 0 && !isState {
		return fmt.Errorf("state directory %s is open to other users (mode %04o) and holds other files; "+
			"name a directory of its own, or close this one with chmod 700", directory, info.Mode().Perm())
	}
	if err := os.Chmod(directory, 0o700); err != nil { //nolint:gosec // a directory, which its owner searches
		return fmt.Errorf("close state directory to other users: %w", err)
	}
	return nil
}
