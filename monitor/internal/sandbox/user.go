// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
)

// User is who a task runs as. It has no other groups.
type User struct{ ID, Group uint32 }

// Permits says whether a file's mode lets the user do all of what the bits say: 4 read,
// 2 write, 1 search or execute. Access control lists are not looked at.
func (u User) Permits(owner, group, mode, bits uint32) bool {
	switch {
	case owner == u.ID:
		mode >>= 6
	case group == u.Group:
		mode >>= 3
	}
	return mode&bits == bits
}

// users is what tasks run as.
func users() Feature {
	id := os.Geteuid()
	feature := Feature{Name: "users of their own", Found: "the superuser", Needed: "the superuser's rights",
		Present: id == 0,
		Effect:  "each pipeline's tasks run as a user and group of their own"}
	if id != 0 {
		feature.Found = fmt.Sprintf("user %d, whom all tasks run as", id)
	}
	return feature
}
