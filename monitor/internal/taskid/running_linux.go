// SPDX-License-Identifier: BSD-2-Clause

package taskid

// running returns which of the users processes run as, by their real, effective, saved or
// file system user. It sees the processes of its own PID namespace and of those within.
func running(users []uint32) (map[uint32]bool, error) {
	wanted, found := map[uint32]bool{}, map[uint32]bool{}
	for _, user := range users {
		wanted[user] = true
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	for _, pid := range all {
		status, err := statusOf(pid)
		if hasGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, user := range status.users {
			if wanted[user] {
				found[user] = true
			}
		}
	}
	return found, nil
}
