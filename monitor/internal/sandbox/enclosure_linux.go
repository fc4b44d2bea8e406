// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// enclosure is what holds the processes of one task together, so that they can be counted,
// and killed in one step. It has the task's process group; a cgroup if the machine has them;
// otherwise, if no filter keeps them in the process group, a PID namespace, whose first
// process is the keeper.
type enclosure struct {
	Cgroup string `json:",omitempty"` // a directory of version 2; "" if there is none
	// Limited are the directories of version 1 that limit the task, where Cgroup does not.
	Limited   []string `json:",omitempty"`
	Namespace bool     `json:",omitempty"`
	// Leaks is set if processes of the task can leave: it has no filter, which keeps them in
	// the process group, no PID namespace, and no cgroup, or one that its user may leave.
	Leaks bool `json:",omitempty"`
}

// enclose makes the enclosure of a task. It fails only if the task asks for a limit that
// this machine cannot set.
func enclose(spec Spec, todo plan.Plan) (enclosure, error) {
	var e enclosure
	if spec.waived&plan.TaskCgroup == 0 {
		e.Cgroup, _ = makeCgroup() // Probe reports what is missing
	}
	isFiltered := len(todo.Filter) > 0
	e.Namespace = e.Cgroup == "" && !isFiltered && spec.waived&plan.TaskNamespace == 0 && namespacesAvailable()
	e.Leaks = !isFiltered && !e.Namespace && (e.Cgroup == "" || spec.User == nil)
	if spec.waived&plan.TaskLimits != 0 {
		return e, nil
	}
	var err error
	if e.Limited, err = limitTask(spec, e.Cgroup); err != nil {
		e.remove()
	}
	return e, err
}

// attributes returns how the task's parent is started.
func (e enclosure) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{
		Setsid: true, // out of reach of the terminal's Ctrl-C
		// If it is stopped when the monitor ends, it goes on, and ends its task. The kernel also
		// sends the signal when the thread that starts it ends, which does nothing.
		Pdeathsig: unix.SIGCONT,
	}
	if e.Namespace {
		attributes.Cloneflags = unix.CLONE_NEWPID
	}
	return attributes
}

// enter moves this process into the cgroups. It is in the process group and the namespace
// already.
func (e enclosure) enter() error {
	for _, cgroup := range append([]string{e.Cgroup}, e.Limited...) {
		if cgroup == "" {
			continue
		}
		if err := enterCgroup(cgroup); err != nil {
			return err
		}
	}
	if e.Namespace {
		return mountProcesses()
	}
	return nil
}

// monitorsNumber returns the number that a process has for the monitor.
func (e enclosure) monitorsNumber(pid int) (int, error) {
	if e.Namespace {
		return numberOutside(pid)
	}
	return pid, nil
}

// endsWithKeeper reports whether the kernel ends all processes of the task when the keeper
// ends. It becomes a zombie only when they have ended.
func (e enclosure) endsWithKeeper() bool { return e.Namespace }

// kill kills all processes within: those of a cgroup with one write, and those of the
// program's process group with one signal. Both are atomic with respect to fork: a new
// process belongs to them already, or its fork fails. It always does both, since the
// launcher may not have entered the cgroup yet. In a namespace it kills the program, whose
// end is the keeper's. The program must not have been waited for, or its number could be
// another's.
func (e enclosure) kill(program int) {
	if e.Cgroup != "" {
		_ = writeWord(killFile(e.Cgroup), "1") // fails only if the cgroup is gone
	}
	_ = unix.Kill(-program, unix.SIGKILL)
}

// killWithoutKeeper does the same in the monitor, when the keeper was killed.
func (e enclosure) killWithoutKeeper(program int) {
	if !e.endsWithKeeper() {
		e.kill(program)
	}
}

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
	for _, cgroup := range e.Limited {
		_ = unix.Rmdir(cgroup) // empty at the same time
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
