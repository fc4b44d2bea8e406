// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// handle answers at most once, whatever happens: a socket that is closed unanswered is
// a denial.
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
	file, err := r.answer()
	if file != nil {
		defer file.Close()
	}
	r.respond(file, err)
}

// answer does what is asked for; the file, if any, goes with the answer.
func (r *request) answer() (*os.File, error) {
	switch message := r.message.(type) {
	case wire.RequestPath:
		return r.path(message)
	case wire.RequestSend:
		return r.write(int(message.Number))
	case wire.RequestTraps:
		return nil, trapRefused(r.process)
	}
	return nil, errRefused
}

// respond sends the answer. That the asking process is gone changes nothing.
func (r *request) respond(file *os.File, err error) {
	var errno unix.Errno
	var why refusal
	switch {
	case errors.As(err, &why):
		errno = unix.EACCES
		r.report(r.process, r.name(), errno, why)
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

// name is what a request is called in the audit log.
func (r *request) name() string {
	switch message := r.message.(type) {
	case wire.RequestSend:
		return "write"
	case wire.RequestPath:
		if message.Flags&openPath != 0 {
			return "stat"
		}
	}
	return "open"
}

// session waits for a user and hands the session over. A stub serves one at a time: the
// next begins when nothing of the one before is left.
func (r *request) session() {
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
		w.Kill() // half of a session must not go on
	}
}

// cleanUp leaves nothing of a session that its worker has ended: a process of a task
// that serves users has a living parent, the program or a stub, or it is a left-over.
func (q *requests) cleanUp() {
	if !q.spec.Serving {
		return
	}
	if err := killOrphans(q.task.pid); err != nil {
		slog.Error("what a session has left behind may run on; its task is ended", "task", q.task.name, "error", err)
		q.task.kill()
	}
}

// forgetWhenGone keeps the table of workers as small as the number of processes.
func (r *request) forgetWhenGone(w *worker) {
	<-w.gone
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.workers[w.pid] == w {
		delete(r.workers, w.pid)
	}
}

// hasSession says whether a process serves a user, or waits for one.
func (q *requests) hasSession(process int) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.workers[process] != nil
}

// write decides on one write to a checked number, and hands out what it is made on. A
// stub has that already.
func (r *request) write(number int) (*os.File, error) {
	if !isChecked(number) {
		return nil, errRefused
	}
	err := r.decide(func(ctx context.Context, decider Decider) Verdict {
		return decider.Send(ctx, r.task, r.process, number)
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
	return limitedFile(duplicate, file.Name(), join(socketRights, rights{capWrite}))
}

// limitedFile takes over a descriptor and leaves it only rights that are allowed.
func limitedFile(descriptor int, name string, allowed rights) (*os.File, error) {
	if err := limitRights(descriptor, allowed); err != nil {
		unix.Close(descriptor)
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), name), nil
}

// openFlags are those that a request may have.
const openFlags = accessMode | unix.O_APPEND | unix.O_CREAT | unix.O_TRUNC | unix.O_EXCL | unix.O_NONBLOCK |
	unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_SYNC | unix.O_CLOEXEC | unix.O_NOCTTY | openPath

// path resolves, decides, and opens what it has decided on.
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
	if err := r.permit(file, flags, false, r.process); err != nil {
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

// throughCapability replaces the prefix by which a task knows a capability by its
// directory.
func (r *request) throughCapability(path string) string {
	for _, capability := range r.spec.Capabilities {
		if beneath(path, capability.Prefix) {
			return capability.Path + strings.TrimPrefix(path, capability.Prefix)
		}
	}
	return path
}

// shown is a descriptor of a pinned file to look at it.
func (r *request) shown(file *pinned) (*os.File, error) {
	duplicate, err := unix.FcntlInt(uintptr(file.descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return limitedFile(duplicate, file.path, lookRights)
}

// opened opens the pinned file itself, or creates what was missing in the pinned
// directory. Nothing is looked up by a name that could have changed meanwhile.
func (r *request) opened(file *pinned, flags int, mode uint32) (*os.File, error) {
	keep := flags&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW) | unix.O_CLOEXEC | unix.O_NOCTTY
	var descriptor int
	var err error
	if file.missing == "" {
		if err := r.user.mayOpen(&file.stat, flags); err != nil {
			return nil, err
		}
		descriptor, err = unix.Openat(file.descriptor, "", keep|emptyPath, 0)
	} else {
		descriptor, err = r.created(file, keep, mode)
	}
	if err != nil {
		return nil, err
	}
	return limitedFile(descriptor, file.path, r.rightsOf(file, flags))
}

// created makes what was missing, which is then the task's user's.
func (r *request) created(file *pinned, keep int, mode uint32) (int, error) {
	if err := r.user.mayOpen(&file.stat, unix.O_WRONLY); err != nil {
		return -1, err
	}
	mask, err := umaskOf(r.process)
	if err != nil {
		return -1, unix.EACCES
	}
	// Exclusively: the decision was on a new file. Whoever loses a race for the
	// name is told so.
	made, err := unix.Openat(file.descriptor, file.missing, keep|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW,
		mode&0o7777&^mask)
	if err != nil || r.user == nil {
		return made, err
	}
	if err := unix.Fchown(made, int(r.user.ID), int(r.user.Group)); err != nil {
		unix.Close(made)
		return -1, err
	}
	return made, nil
}

// rightsOf are those of what was opened. Beneath a directory nothing is opened without
// another decision, unless it is part of the runtime.
func (r *request) rightsOf(file *pinned, flags int) rights {
	result := lookRights
	access := flags & accessMode
	if access != unix.O_WRONLY {
		result = join(result, readRights)
		if beneathAny(file.path, r.permits.runtime) {
			result = join(result, runtimeRights)
		}
	}
	if access != unix.O_RDONLY {
		result = join(result, writeRights)
	}
	return result
}
