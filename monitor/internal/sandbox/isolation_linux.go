// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// copyFlags are the flags of clone with which a child shares nothing with its parent: the
// exit signal, and CLONE_PARENT_SETTID, CHILD_CLEARTID and CHILD_SETTID, which C
// libraries use to fork. It excludes CLONE_VM, FS, FILES, SIGHAND, VFORK, THREAD, SYSVSEM
// and IO.
const copyFlags = 0xff | 0x00100000 | 0x00200000 | 0x01000000

// fork decides about new processes and threads in tasks that serve users. Only the
// program itself may fork, and only copies of itself: a thread, or a process that shares
// memory (as with vfork) or a descriptor table, could mix the sessions of two users. In
// other tasks, only calls that are refused come here. The flags are a value, so the call
// may proceed. Most notifications come from single-threaded programs, whose thread number
// is the process number.
func (r *request) fork() error {
	if r.requests.supervised {
		return r.refuseFork()
	}
	if r.call.name == "vfork" || r.call.name == "clone" && uint32(r.Arguments[0])&^copyFlags != 0 {
		return errShares
	}
	process := int(r.PID)
	if process != r.requests.task.pid {
		var err error
		if process, err = r.process(); err != nil {
			return err
		}
	}
	if process != r.requests.task.pid {
		return errForks
	}
	if err := r.holdsReservedOnly(); err != nil {
		return err
	}
	return r.proceed()
}

// refuseFork gives the reason for which a task's supervisor has not allowed a fork.
func (r *request) refuseFork() error {
	switch flags := uint32(r.Arguments[0]); {
	case r.call.name == "vfork" || r.call.name == "clone" && flags&^(copyFlags|unix.CLONE_PARENT) != 0:
		return errShares
	case int(r.PID) != r.requests.task.pid:
		return errForks
	case r.call.name == "fork" || flags&unix.CLONE_PARENT == 0:
		return errParent
	}
	if !r.requests.isolates {
		return r.proceed()
	}
	if err := r.holdsReservedOnly(); err != nil {
		return err
	}
	return errRefused
}

// holdsReservedOnly refuses a fork that would inherit more than the reserved descriptors:
// a pipe, an offset or a lock would be shared by all workers. The program has one thread,
// which waits for the answer, so the number of its descriptors does not change. Which
// files are at the reserved numbers is the monitor's doing, since nothing can be closed
// there.
func (r *request) holdsReservedOnly() error {
	if !r.requests.isolates {
		return nil
	}
	var descriptors unix.Stat_t // its size is the number of descriptors (Linux 6.2)
	err := unix.Stat(r.proc("fd"), &descriptors)
	if err != nil || !r.requests.listener.valid(r.ID) {
		return errGone
	}
	if descriptors.Size == wire.FDReservedEnd {
		return nil
	}
	entries, err := os.ReadDir(r.proc("fd"))
	if err != nil {
		return errGone
	}
	for _, entry := range entries {
		if number, err := strconv.Atoi(entry.Name()); err == nil && number >= wire.FDReservedEnd {
			return refusal(fmt.Sprintf("close descriptor %d before forking: workers would share it", number))
		}
	}
	return errRefused
}

// errShares and errForks are the reasons for which a task that serves users may not make
// a thread or process.
const (
	errShares = refusal("a process of a task that serves users may not share memory or descriptors with another")
	errParent = refusal("a worker has to be a child of the task's supervisor (CLONE_PARENT), as shai_fork_worker makes it")
	errForks  = refusal("only the task's program may fork; a worker's child would outlive the session")
)

// errSignals is the reason for which a process of a task that serves users may not send a
// signal.
const errSignals = refusal("a process of a task that serves users signals itself only; the program ends its workers (SIGTERM, SIGKILL)")

// signal decides on signals where Landlock does not scope them, and in tasks that serve
// users, where a signal would tell one worker of another. The targets are values, so the
// call may proceed.
func (r *request) signal() error {
	target := r.descriptor(0)
	if r.requests.isolates {
		return r.signalOwn(target)
	}
	if target < -1 {
		target = -target
	}
	if target == 0 || target != -1 && r.belongsToTask(target) {
		return r.proceed()
	}
	return errRefused
}

// signalOwn lets a process signal itself, and the program end its workers. A worker's
// number stays its own: its parent, which could reap it, waits for the answer.
func (r *request) signalOwn(target int) error {
	process, err := r.process()
	if err != nil {
		return err
	}
	signal := unix.Signal(r.descriptor(1))
	ends := r.call.name == "kill" && (signal == unix.SIGTERM || signal == unix.SIGKILL)
	isProgram := process == r.requests.task.pid && !r.requests.supervised
	if target == process || isProgram && ends && target > 0 && r.belongsToTask(target) {
		return r.proceed()
	}
	return errSignals
}

// belongsToTask reports whether a process is one of the task's, all of which are in its
// process group.
func (r *request) belongsToTask(process int) bool {
	group, err := syscall.Getpgid(process)
	return err == nil && group == r.requests.task.pid
}
