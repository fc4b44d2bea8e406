// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// requestsAtATime bounds how many requests of one task are worked on. Those
	// that wait for a connection do not count.
	requestsAtATime = 64
	// decisionTime is how long a decision may take; then it is a denial.
	decisionTime = 30 * time.Second
)

// arbiter answers for one task whether it may: by what the backend itself permits, and
// else by asking the monitor.
type arbiter struct {
	task    *task
	decider Decider // nil denies
	permits permits
	user    *User           // nil: whom the monitor runs as
	context context.Context // ends with the task
}

// refusal ends a request with an error that the monitor hears of. It is the reason, ""
// where the call's name says it.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

const errRefused = refusal("")

// recovered logs a panic. It was somebody's bug, the call at hand is denied, and
// the other tasks of this monitor go on.
func recovered(failure any) {
	if failure != nil {
		slog.Error("bug: panic while a task's request was decided; it is denied", "panic", failure, "stack",
			string(debug.Stack()))
	}
}

// decide asks the monitor. It runs apart, so that a decision that never comes
// holds up neither the caller beyond decisionTime nor the task's end.
func (a *arbiter) decide(ask func(ctx context.Context, decider Decider) Verdict) error {
	if a.decider == nil {
		return syscall.EACCES
	}
	ctx, cancel := context.WithTimeout(a.context, decisionTime)
	defer cancel()
	answers := make(chan Verdict, 1)
	go func() {
		verdict := Verdict{Errno: syscall.EACCES, Reason: "the decision failed"}
		defer func() {
			recovered(recover()) // leaves the denial in place
			answers <- verdict
		}()
		verdict = ask(ctx, a.decider)
	}()
	select {
	case verdict := <-answers:
		if ctx.Err() != nil {
			return syscall.EACCES
		}
		if verdict.Errno != 0 {
			return verdict.Errno
		}
		return nil
	case <-ctx.Done():
		return syscall.EACCES
	}
}

// report tells the monitor of a call that was refused without asking.
func (a *arbiter) report(process int, call string, errno syscall.Errno, why refusal) {
	if a.decider == nil {
		return
	}
	defer func() { recovered(recover()) }()
	a.decider.Refused(RefusedCall{Task: a.task, PID: process, Call: call, Errno: errno, Reason: string(why)})
}

// permit decides on a pinned file; looking at it has flags O_PATH. What pins a
// file that the perimeter makes readable anyway needs no further decision.
func (a *arbiter) permit(file *pinned, flags int, pin bool, process int) error {
	if !strings.HasPrefix(file.path, "/") {
		return errRefused // a pipe, a socket or the like: no path, nothing to decide on
	}
	by := caller{process, process == a.task.pid}
	if pin && a.permits.mayRead(file.path, by) {
		return nil
	}
	question := OpenRequest{Task: a.task, PID: process, Path: file.path, Flags: flags, New: file.missing != ""}
	switch a.permits.of(file.path, flags, by) {
	case permitted:
		if beneathAny(file.path, a.permits.runtime) && !a.reaches(file) {
			return syscall.EACCES
		}
		if question.Shared = file.shared(flags); question.Shared == nil {
			return nil
		}
	case forbidden:
		return errRefused
	}
	return a.decide(func(ctx context.Context, decider Decider) Verdict { return decider.Open(ctx, question) })
}

// shared describes a file that is opened and has more names than the one that led to it,
// nil for all others.
func (p *pinned) shared(flags int) *SharedFile {
	if flags&openPath != 0 || p.missing != "" || p.stat.Mode&unix.S_IFMT != unix.S_IFREG || p.stat.Nlink < 2 {
		return nil
	}
	return &SharedFile{Device: p.stat.Dev, Inode: p.stat.Ino, Changed: time.Unix(p.stat.Ctim.Unix())}
}

// openable refuses what an open of the pinned file would refuse or block on.
func openable(file *pinned, flags int, exclusive bool) error {
	if file.missing != "" {
		return nil
	}
	kind := file.stat.Mode & unix.S_IFMT
	switch {
	case exclusive:
		return unix.EEXIST
	case flags&unix.O_DIRECTORY != 0 && kind != unix.S_IFDIR:
		return unix.ENOTDIR
	case kind == unix.S_IFLNK:
		return unix.ELOOP
	case kind == unix.S_IFDIR && flags&(accessMode|unix.O_CREAT) != 0:
		return unix.EISDIR
	case kind == unix.S_IFREG || kind == unix.S_IFDIR || harmless[file.path]:
		return nil
	}
	return errRefused // devices, named pipes, sockets: opening acts on something else than a file
}
