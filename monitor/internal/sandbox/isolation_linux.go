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

// copyFlags are the flags of clone with which a worker shares nothing with the program that
// forks it: the exit signal, and CLONE_PARENT_SETTID, CHILD_CLEARTID and CHILD_SETTID,
// which C libraries use to fork. It excludes CLONE_VM, FS, FILES, SIGHAND, VFORK, THREAD,
// SYSVSEM and IO. With CLONE_PARENT the worker is a child of the task's supervisor.
const copyFlags = 0xff | unix.CLONE_PARENT | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID |
	unix.CLONE_CHILD_SETTID

// fork refuses new processes and threads, and gives the reason. Those of a task that serves
// users come here if its supervisor has not allowed them: only the program may fork, and
// only copies of itself. A thread, or a process that shares memory (as with vfork) or a
// descriptor table, could mix the sessions of two users. In other tasks, only calls that
// make namespaces or leave the task come here.
func (r *request) fork() error {
	if r.requests.raising != nil {
		return errAlone
	}
	if !r.requests.supervised {
		return errRefused
	}
	switch flags := uint32(r.Arguments[0]); {
	case r.call.Name == "vfork" || r.call.Name == "clone" && flags&^copyFlags != 0:
		return errShares
	case int(r.PID) != r.requests.task.pid:
		return errForks
	case r.call.Name == "fork" || flags&unix.CLONE_PARENT == 0:
		return errParent
	case !r.requests.isolates:
		return r.proceed()
	}
	return r.holdsMore()
}

// holdsMore names the descriptor for which the supervisor has not allowed a fork: all
// workers would share a pipe, an offset or a lock.
func (r *request) holdsMore() error {
	entries, err := os.ReadDir(r.proc("fd"))
	if err != nil {
		return gone(err)
	}
	if !r.requests.listener.valid(r.ID) {
		return errGone
	}
	for _, entry := range entries {
		if number, err := strconv.Atoi(entry.Name()); err == nil && number >= wire.FDReservedEnd {
			return refusal(fmt.Sprintf("close descriptor %d before forking: workers would share it", number))
		}
	}
	return errRefused
}

// The reasons for which a task that serves users may not make a thread or process.
const (
	errShares = refusal("a process of a task that serves users may not share memory or descriptors with another")
	errForks  = refusal("only the task's program may fork; a worker's child would outlive the session")
	errParent = refusal("a worker has to be a child of the task's supervisor (CLONE_PARENT), as shai_fork_worker makes it")
)

// errAlone is the reason for which a task that may raise its taint makes no processes: they
// would keep what it has open.
const errAlone = refusal("a task that may raise its taint (raisesTo) may have threads, but no other process")

// errServes is the reason for which a process gets no connection from its supervisor.
const errServes = refusal("a worker serves one user, then it must exit; no other process of a task serves any")

// errSignals is the reason for which a process of a task that serves users may not send a
// signal.
const errSignals = refusal("a process of a task that serves users signals itself only; its workers end with it")

// signal decides on signals where Landlock does not scope them, and in tasks that serve
// users, where a signal would tell one worker of another. The targets are values, so the
// call may proceed.
func (r *request) signal() error {
	target := r.descriptor(0)
	if r.requests.isolates {
		if target != int(r.PID) {
			return errSignals
		}
		return r.proceed()
	}
	if target < -1 {
		target = -target
	}
	if target == 0 || target != -1 && r.belongsToTask(target) {
		return r.proceed()
	}
	return errRefused
}

// belongsToTask reports whether a process is one of the task's, all of which are in its
// process group.
func (r *request) belongsToTask(process int) bool {
	group, err := syscall.Getpgid(process)
	return err == nil && group == r.requests.task.pid
}
