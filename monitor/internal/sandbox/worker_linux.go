// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// worker is a process with its pidfd, which never means another process that got the same
// number. When the process has ended, the session has, too.
type worker struct {
	pid    int
	handle *os.File // non-blocking: the runtime polls it
	gone   chan struct{}
	forget func(*worker) // called when the watch ends
}

var _ watchedWorker = (*worker)(nil)

// newWorker watches a process, without occupying a thread, until it has ended or is
// released. Then it calls forget.
func newWorker(pid int, forget func(*worker)) (*worker, error) {
	descriptor, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &worker{pid: pid, handle: os.NewFile(uintptr(descriptor), "worker"), gone: make(chan struct{}), forget: forget}
	connection, err := w.handle.SyscallConn()
	if err != nil {
		w.handle.Close()
		return nil, err
	}
	go func() {
		ended := false
		_ = connection.Read(func(handle uintptr) bool {
			ended = hasEnded(handle)
			return ended
		})
		if ended {
			close(w.gone)
			w.release()
		}
	}()
	return w, nil
}

func (w *worker) PID() int              { return w.pid }
func (w *worker) Gone() <-chan struct{} { return w.gone }

// Ended implements [Worker].
func (w *worker) Ended() bool {
	ended := true // a closed handle means that the process has ended or was released
	if connection, err := w.handle.SyscallConn(); err == nil {
		_ = connection.Control(func(handle uintptr) { ended = hasEnded(handle) })
	}
	return ended
}

// hasEnded reports whether a pidfd's process has ended.
func hasEnded(handle uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		count, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return count > 0 && err == nil
		}
	}
}

// Kill implements [Worker].
func (w *worker) Kill() {
	connection, err := w.handle.SyscallConn()
	if err != nil {
		return // released: the process has ended
	}
	// ESRCH: the process has ended.
	_ = connection.Control(func(handle uintptr) { _ = unix.PidfdSendSignal(int(handle), unix.SIGKILL, nil, 0) })
}

// release stops watching; gone stays open unless the process has ended.
func (w *worker) release() {
	w.handle.Close()
	w.forget(w)
}
