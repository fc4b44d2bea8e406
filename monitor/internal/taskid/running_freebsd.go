// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// running returns which of the users processes run as, by their real or effective user.
// It sees the processes of its own jail and of the jails within.
func running(users []uint32) (map[uint32]bool, error) {
	found := map[uint32]bool{}
	for _, user := range users {
		for _, variable := range []string{"kern.proc.uid", "kern.proc.ruid"} {
			processes, err := unix.SysctlRaw(variable, int(user))
			if err != nil {
				return nil, fmt.Errorf("list the processes of user %d: %w", user, err)
			}
			if len(processes) > 0 {
				found[user] = true
			}
		}
	}
	return found, nil
}
