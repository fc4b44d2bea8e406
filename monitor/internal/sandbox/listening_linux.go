// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// listening receives the notifications of a task that has no supervisor.
type listening struct {
	*requests
	wake int // eventfd that ends the loop
}

// listen begins to receive and to answer. It takes over the listener of the requests.
func listen(to *requests) (attendance, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		to.end()
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	to.listener.wakeSynchronously()
	l := listening{to, wake}
	go l.serve()
	return l, nil
}

// serve receives requests until the task has ended or stop is called.
func (l listening) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for l.next() {
	}
	l.end()
	unix.Close(l.wake)
}

// stop ends serve. The calls that are waiting for an answer, and all later ones, fail
// with ENOSYS.
func (l listening) stop() {
	unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// next waits for one request and starts to handle it. It polls first, because a mere
// receive would not notice that the task's last process has ended.
func (l listening) next() bool {
	poll := []unix.PollFd{{Fd: int32(l.listener), Events: unix.POLLIN}, {Fd: int32(l.wake), Events: unix.POLLIN}}
	if _, err := unix.Poll(poll, -1); err != nil {
		return err == unix.EINTR
	}
	if poll[1].Revents != 0 {
		return false
	}
	if poll[0].Revents&unix.POLLIN == 0 {
		// Not POLLERR: a signal that interrupts the kernel's look at the listener causes it, too.
		return poll[0].Revents&unix.POLLHUP == 0
	}
	notification, errno := l.listener.receive()
	switch errno {
	case 0:
		l.begin(notification, 0)
		return true
	case unix.ENOENT: // the caller died between poll and here
		return true
	}
	return false
}
