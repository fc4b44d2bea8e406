// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// handle answers a request at most once. A socket that is closed without an answer is a
// denial.
func (r *request) handle() {
	defer r.running.Done()
	defer func() { recovered(recover()) }()
	defer func() {
		if r.directory >= 0 {
			unix.Close(r.directory)
		}
	}()
	if _, isSession := r.message.(wire.RequestSession); isSession {
		r.session()
		return
	}
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	defer unix.Close(r.reply)
	if _, registers := r.message.(wire.RequestRegister); registers {
		r.raised.Lock()
		defer r.raised.Unlock()
	} else {
		r.raised.RLock()
		defer r.raised.RUnlock()
	}
	file, err := r.answer()
	if file != nil {
		defer file.Close()
	}
	r.respond(file, err)
}

// answer carries out the request. The file, if any, is sent with the answer.
func (r *request) answer() (*os.File, error) {
	switch message := r.message.(type) {
	case wire.RequestPath:
		return r.path(message)
	case wire.RequestSend:
		return r.write(int(message.Number))
	case wire.RequestTraps:
		return nil, trapRefused(r.process)
	case wire.RequestRegister:
		return nil, r.register(message.Record[:])
	case wire.RequestWorker:
		return nil, r.examineWorker()
	}
	return nil, errRefused
}

// respond sends the answer. It is no error if the process that asked has ended.
func (r *request) respond(file *os.File, err error) {
	var errno unix.Errno
	var why refusal
	switch {
	case errors.As(err, &why):
		errno = unix.EACCES
		r.report(RefusedCall{Caller: Caller{PID: r.process}, Call: r.name(), Errno: errno, Reason: string(why)})
	case exhausted(err) && errors.As(err, &errno):
		r.report(RefusedCall{Caller: Caller{PID: r.process}, Call: r.name(), Errno: errno, Unavailable: true})
	case err != nil && (!errors.As(err, &errno) || errno == 0):
		errno = unix.EACCES
	}
	answer := wire.Answer{Status: int32(errno)}
	if file != nil {
		_ = sendAnswer(r.reply, r.sequence, answer, file)
		return
	}
	_ = sendAnswer(r.reply, r.sequence, answer)
}

// name returns the request's name in the audit log.
func (r *request) name() string {
	switch message := r.message.(type) {
	case wire.RequestSend:
		return "write"
	case wire.RequestRegister:
		return "register"
	case wire.RequestWorker:
		return "fork"
	case wire.RequestPath:
		if message.Flags&openPath != 0 {
			return "stat"
		}
	}
	return "open"
}

// session waits for a user and hands the session over. A stub serves one session at a
// time: the next one begins when nothing of the last one is left.
func (r *request) session() {
	if !r.mayServe() {
		r.refuseSession()
		return
	}
	w, err := newWorker(r.process, r.reply, r.sequence, r.cleanUp)
	if err != nil {
		return
	}
	r.mutex.Lock()
	previous := r.workers[r.process]
	r.workers[r.process] = w
	r.mutex.Unlock()
	go r.forgetWhenGone(w)
	if previous != nil {
		select {
		case <-previous.gone:
		case <-w.gone:
		}
	}
	if r.decider == nil {
		w.release()
		return
	}
	accepted, err := awaitConnection(r.context, r.decider, r.task, w)
	if err != nil {
		return
	}
	defer accepted.close()
	if w.place(accepted) != nil {
		w.Kill() // an incomplete session must not continue
	}
}

// refuseSession tells a process that it gets no session, and reports it.
func (r *request) refuseSession() {
	defer unix.Close(r.reply)
	r.report(RefusedCall{Caller: Caller{PID: r.process}, Call: "accept", Errno: unix.EACCES, Reason: string(errUnexamined)})
	// Who does not read the answer sees the end of the socket.
	_ = sendAnswer(r.reply, r.sequence, wire.Placed{Status: int32(unix.EACCES)})
}

// cleanUp kills what a session left behind when its worker ended. In a task that serves
// users, every process has a living parent, which is the program or a stub. Any other
// process is left over.
func (q *requests) cleanUp() {
	if !q.spec.Serving {
		return
	}
	if err := killOrphans(q.task.pid); err != nil {
		slog.Error("processes that a session left behind may still run; its task is stopped",
			"task", q.task.name, "error", err)
		q.task.kill()
	}
}

// forgetWhenGone removes the worker from the table when it has ended, so that the table
// stays small.
func (r *request) forgetWhenGone(w *worker) {
	<-w.gone
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.workers[w.pid] == w {
		delete(r.workers, w.pid)
	}
}

// hasSession reports whether a process serves a user, or waits for one.
func (q *requests) hasSession(process int) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.workers[process] != nil
}

// write decides on one write to a checked number, and returns the file to write to. A
// stub already has that file.
func (r *request) write(number int) (*os.File, error) {
	if !plan.IsChecked(number) {
		return nil, errRefused
	}
	err := r.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.task, Caller{PID: r.process}, number)
	})
	if err != nil {
		return nil, unix.EPERM
	}
	if r.hasSession(r.process) {
		return nil, nil
	}
	file := r.writable[number]
	if file == nil {
		return nil, unix.EBADF
	}
	duplicate, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return limitedFile(duplicate, file.Name(), plan.CheckedRights)
}

// limitedFile takes over a descriptor and leaves it only those of the rights that are
// allowed.
func limitedFile(descriptor int, name string, allowed plan.CapRights) (*os.File, error) {
	if err := limitRights(descriptor, allowed); err != nil {
		unix.Close(descriptor)
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), name), nil
}

// openFlags are the open flags that a request may have.
const openFlags = accessMode | unix.O_APPEND | unix.O_CREAT | unix.O_TRUNC | unix.O_EXCL | unix.O_NONBLOCK |
	unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_SYNC | unix.O_CLOEXEC | unix.O_NOCTTY | openPath

// path resolves a path, decides on the result, and opens it.
func (r *request) path(message wire.RequestPath) (*os.File, error) {
	flags := int(message.Flags)
	if flags&^openFlags != 0 || flags&accessMode == accessMode {
		return nil, unix.EINVAL
	}
	looking := flags&openPath != 0
	if looking {
		flags &= openPath | unix.O_NOFOLLOW | unix.O_DIRECTORY
	}
	exclusive := flags&unix.O_CREAT != 0 && flags&unix.O_EXCL != 0
	directory := unix.AT_FDCWD
	if r.directory >= 0 {
		directory = r.directory
	}
	file, err := resolve(place{r.workingDirectory(), r.directory}, r.throughCapability(message.Path), resolution{
		directory: directory, create: flags&unix.O_CREAT != 0, follow: flags&unix.O_NOFOLLOW == 0 && !exclusive,
	})
	if err != nil {
		return nil, err
	}
	defer file.close()
	if !looking {
		if err := openable(file, flags, exclusive); err != nil {
			return nil, err
		}
	}
	if err := r.permit(file, flags, false, Caller{PID: r.process}); err != nil {
		return nil, err
	}
	if looking {
		return r.shown(file)
	}
	return r.opened(file, flags, message.Mode)
}

func (r *request) workingDirectory() string {
	if r.spec.WorkingDirectory == "" {
		return "/"
	}
	return r.spec.WorkingDirectory
}

// throughCapability replaces a capability's prefix, which is the task's name for it, by
// its directory.
func (r *request) throughCapability(path string) string {
	for _, capability := range r.spec.Capabilities {
		if plan.Beneath(path, capability.Prefix) && (r.spec.Raising == nil || r.spec.Raising.Holds(capability.Prefix)) {
			return capability.Path + strings.TrimPrefix(path, capability.Prefix)
		}
	}
	return path
}

// shown returns a descriptor of a pinned file that only gives access to its metadata.
func (r *request) shown(file *pinned) (*os.File, error) {
	duplicate, err := unix.FcntlInt(uintptr(file.descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return limitedFile(duplicate, file.path, plan.LookRights)
}

// opened opens the pinned file itself, or creates the missing file in the pinned
// directory. It looks nothing up by a name that could have changed in the meantime.
func (r *request) opened(file *pinned, flags int, mode uint32) (*os.File, error) {
	keep := flags&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW) | unix.O_CLOEXEC | unix.O_NOCTTY
	var descriptor int
	var err error
	if file.missing == "" {
		if err := mayOpen(r.user, &file.stat, flags); err != nil {
			return nil, err
		}
		descriptor, err = unix.Openat(file.descriptor, "", keep|emptyPath, 0)
	} else {
		descriptor, err = r.created(file, keep, mode)
	}
	if err != nil {
		return nil, err
	}
	access := flags & accessMode
	return limitedFile(descriptor, file.path, plan.OpenedRights(access != unix.O_WRONLY, access != unix.O_RDONLY,
		r.permits.InRuntime(file.path)))
}

// created creates the missing file. The task's user owns it.
func (r *request) created(file *pinned, keep int, mode uint32) (int, error) {
	if err := mayOpen(r.user, &file.stat, unix.O_WRONLY); err != nil {
		return -1, err
	}
	mask, err := umaskOf(r.process)
	if err != nil {
		return -1, unix.EACCES
	}
	// O_EXCL, because the decision was about a new file. If another process creates the
	// name first, the task gets an error.
	made, err := unix.Openat(file.descriptor, file.missing, keep|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW,
		mode&0o7777&^mask)
	if err != nil {
		return -1, err
	}
	// The kernel keeps a name that was looked up, and tells it of a file that is open.
	_ = unix.Fstatat(file.descriptor, file.missing, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW)
	if r.user == nil {
		return made, nil
	}
	if err := unix.Fchown(made, int(r.user.ID), int(r.user.Group)); err != nil {
		unix.Close(made)
		return -1, err
	}
	return made, nil
}
