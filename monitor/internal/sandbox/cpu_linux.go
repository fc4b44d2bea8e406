// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measure returns the processor time of what runs of a task: by its cgroup, or, without one, of
// the processes that descend from its parent, as far as they have not been lost by a parent that
// does not wait for its children.
func (e enclosure) measure(parent int) CPU {
	used := CPU{Supervisor: timeOf(parent)}
	if e.Cgroup != "" {
		used.Task = e.used()
		return used
	}
	for _, child := range listedChildren(parent) {
		used.Task += timeOfTree(child)
	}
	used.Task += timeOfEnded(parent)
	return used
}

// used returns the processor time that ends with the enclosure: that of its cgroup.
func (e enclosure) used() time.Duration {
	if e.Cgroup == "" {
		return 0
	}
	return timeOfCgroup(e.Cgroup)
}

// timeOfCgroup returns the processor time of all processes that were ever in a cgroup.
func timeOfCgroup(path string) time.Duration {
	text, err := os.ReadFile(filepath.Join(path, "cpu.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "usage_usec "); found {
			microseconds, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(microseconds) * time.Microsecond
		}
	}
	return 0
}

// timeOf returns the processor time of a process, without its children.
func timeOf(process int) (total time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", process))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		running, _, _ := strings.Cut(string(text), " ")
		nanoseconds, _ := strconv.ParseInt(running, 10, 64)
		total += time.Duration(nanoseconds)
	}
	return total
}

// timeOfTree returns the processor time of a process and its descendants.
func timeOfTree(process int) time.Duration {
	total := timeOf(process) + timeOfEnded(process)
	for _, child := range listedChildren(process) {
		total += timeOfTree(child)
	}
	return total
}

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// timeOfEnded returns the processor time of a process's children that have ended, with theirs, and
// that it has waited for.
func timeOfEnded(process int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	// "pid (name) state …"; the name may contain anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const childrensUser, childrensSystem = 13, 14
	if len(fields) <= childrensSystem {
		return 0
	}
	var ticks int64
	for _, field := range fields[childrensUser : childrensSystem+1] {
		number, _ := strconv.ParseInt(field, 10, 64)
		ticks += number
	}
	return time.Duration(ticks) * tick
}

// listedChildren returns the children of all threads of a process.
func listedChildren(process int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", process))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
