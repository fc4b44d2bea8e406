// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

const (
	// requestsAtATime limits the number of a task's requests that are handled at the same
	// time.
	requestsAtATime = 64
	// decisionTime is the time limit of a decision. After it, the request is denied.
	decisionTime = 30 * time.Second
)

// arbiter decides on the requests of one task: from what the backend itself permits, or
// else by asking the monitor.
type arbiter struct {
	task    *task
	decider Decider // nil denies
	permits plan.Permits
	user    *plan.User      // nil: the monitor's user
	context context.Context // ends with the task
	foreign func(path string) (bool, error)
}

// refusal ends a request with an error that is reported to the monitor. The text is the
// reason, or "" if the call's name says enough.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

const errRefused = refusal("")

// recovered logs a panic. The panic is a bug; the call is denied, and the other tasks of
// this monitor continue.
func recovered(failure any) {
	if failure != nil {
		slog.Error("bug: panic while a task's request was decided; it is denied", "panic", failure, "stack",
			string(debug.Stack()))
	}
}

// exhausted reports whether a call failed because the monitor, or the machine, has run out of
// descriptors or memory.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// decide asks the monitor, in a goroutine of its own: if the decision never comes, the
// caller waits no longer than decisionTime, and the task can end.
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

// report tells the monitor about a call that was refused without asking it.
func (a *arbiter) report(call RefusedCall) {
	if a.decider == nil {
		return
	}
	defer func() { recovered(recover()) }()
	call.Task = a.task
	a.decider.Refused(call)
}

// permit decides on a pinned file. Flags of O_PATH ask for its metadata only. With pin, a
// file that the perimeter makes readable anyway needs no further decision.
func (a *arbiter) permit(file *pinned, flags int, pin bool, from Caller) error {
	if !strings.HasPrefix(file.path, "/") {
		return errRefused // a pipe, a socket or the like has no path to decide on
	}
	by := plan.Process{Number: from.PID, Program: from.PID == a.task.pid}
	if pin && a.permits.MayRead(file.path, by) {
		return nil
	}
	// A directory is no conduit. Where the kernel cannot grant its names alone, they are given here.
	isDirectory := file.missing == "" && file.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if isDirectory && useOf(flags) == plan.Reading && a.permits.MayList(file.path, by) {
		return nil
	}
	question := OpenRequest{Task: a.task, Caller: from, Path: file.path, Flags: flags, New: file.missing != "",
		Device: file.stat.Dev, Inode: file.stat.Ino}
	switch a.permits.Of(file.path, useOf(flags), by) {
	case plan.Permitted:
		if a.permits.InRuntime(file.path) {
			if err := a.isOwn(file.path); err != nil {
				return err
			}
			if err := a.reaches(file); err != nil {
				return err
			}
		}
		if question.Shared = file.shared(flags); question.Shared == nil {
			return nil
		}
	case plan.Forbidden:
		return errRefused
	}
	return a.decide(func(ctx context.Context, decider Decider) Verdict { return decider.Open(ctx, question) })
}

// isOwn refuses what belongs to somebody else. In the runtime, it was made after the task had been
// started.
func (a *arbiter) isOwn(path string) error {
	if a.foreign == nil {
		return nil
	}
	foreign, err := a.foreign(path)
	switch {
	case err != nil:
		return refusal(err.Error())
	case foreign:
		return refusal("it belongs to another monitor, or to a member of a pool")
	}
	return nil
}

// useOf returns what an open with flags does with the file.
func useOf(flags int) plan.Use {
	switch {
	case flags&openPath != 0:
		return plan.Looking
	case flags&(accessMode|changing) == unix.O_RDONLY:
		return plan.Reading
	}
	return plan.Changing
}

// permitsOf collects the permits of a specification under its names' real paths.
func permitsOf(spec Spec) plan.Permits {
	return plan.PermitsOf(spec.Spec, realPath)
}

func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// shared describes the pinned file if it is to be opened and has several names. Otherwise
// it returns nil.
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
	case kind == unix.S_IFREG || kind == unix.S_IFDIR || plan.IsHarmless(file.path):
		return nil
	}
	return errRefused // devices, named pipes, sockets: opening one acts on more than a file
}
