// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// enclosure is what holds the processes of one task together, so that they can be killed
// in one step. It has the task's process group, and a cgroup if the machine has them.
type enclosure struct {
	Cgroup string `json:",omitempty"` // a directory; "" if there is none
	// Leaks is set if processes of the task can leave: it has no filter, which keeps them in
	// the process group, and no cgroup, or one that its user may leave.
	Leaks bool `json:",omitempty"`
}

// enclose makes the enclosure of a task.
func enclose(spec Spec, todo plan.Plan) enclosure {
	var e enclosure
	if spec.waived&plan.TaskCgroup == 0 {
		e.Cgroup, _ = makeCgroup() // the feature "cgroups" reports what is missing
	}
	e.Leaks = len(todo.Filter) == 0 && (e.Cgroup == "" || spec.User == nil)
	return e
}

// enter moves this process into the cgroup. It is in the process group already.
func (e enclosure) enter() error {
	if e.Cgroup == "" {
		return nil
	}
	return enterCgroup(e.Cgroup)
}

// kill kills all processes within: those of a cgroup with one write, and those of the
// program's process group with one signal. Both are atomic with respect to fork: a new
// process belongs to them already, or its fork fails. It always does both, since the
// launcher may not have entered the cgroup yet. The program must not have been waited for,
// or its number could be another's.
func (e enclosure) kill(program int) {
	if e.Cgroup != "" {
		_ = writeWord(killFile(e.Cgroup), "1") // fails only if the cgroup is gone
	}
	_ = unix.Kill(-program, unix.SIGKILL)
}

// killWithoutKeeper does the same in the monitor, when the keeper was killed.
func (e enclosure) killWithoutKeeper(program int) { e.kill(program) }

// killLeaked kills the processes that moved out of an enclosure that leaks, and returns
// them. They become the keeper's children when their parents die. It searches all
// processes of the machine.
func (e enclosure) killLeaked() map[int]bool {
	if !e.Leaks {
		return nil
	}
	killed := map[int]bool{}
	for _, child := range childrenOf(os.Getpid()) {
		_ = unix.Kill(child, unix.SIGKILL)
		killed[child] = true
	}
	return killed
}

// remove releases the enclosure when its processes have ended.
func (e enclosure) remove() {
	if e.Cgroup != "" {
		removeCgroup(e.Cgroup)
	}
}

// childrenOf returns the children of a process, those too that nobody has waited for.
func childrenOf(parent int) (children []int) {
	directories, _ := filepath.Glob("/proc/[0-9]*")
	for _, directory := range directories {
		pid, err := strconv.Atoi(filepath.Base(directory))
		if err == nil && parentOf(pid) == parent {
			children = append(children, pid)
		}
	}
	return children
}
