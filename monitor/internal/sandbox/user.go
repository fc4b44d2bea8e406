// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
)

// User is the user and group that a task runs as. It has no supplementary groups.
type User struct{ ID, Group uint32 }

// Permits reports whether a file's mode gives the user all of the bits: 4 read, 2 write,
// 1 search or execute. It ignores access control lists.
func (u User) Permits(owner, group, mode, bits uint32) bool {
	switch {
	case owner == u.ID:
		mode >>= 6
	case group == u.Group:
		mode >>= 3
	}
	return mode&bits == bits
}

// users examines whether tasks can run as users of their own.
func users() Feature {
	id := os.Geteuid()
	feature := Feature{Name: "users of their own", Found: "the superuser", Needed: "the superuser's rights",
		Present: id == 0,
		Effect:  "each pipeline's tasks run as a user and group of their own"}
	if id != 0 {
		feature.Found = fmt.Sprintf("user %d, which all tasks run as", id)
	}
	return feature
}
