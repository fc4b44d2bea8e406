// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// measure returns the processor time of what runs of a task: of the processes that descend from its
// parent, which is their reaper, and of those that have ended, as far as somebody has waited for them.
func (enclosure) measure(parent int) (used CPU) {
	list, err := processesOf("kern.proc.proc", 0)
	if err != nil {
		return CPU{}
	}
	children := map[int][]process{}
	for _, one := range list {
		if one.pid == parent {
			used = CPU{Task: one.ofChildren, Supervisor: one.used}
		}
		if one.pid != one.parent {
			children[one.parent] = append(children[one.parent], one)
		}
	}
	for below := children[parent]; len(below) > 0; {
		one := below[0]
		used.Task += one.used + one.ofChildren
		below = append(below[1:], children[one.pid]...)
	}
	return used
}

// used returns the processor time that the task has used when its parent, which calls this, has
// waited for all its processes.
func (enclosure) used() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
