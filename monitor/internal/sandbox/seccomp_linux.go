// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/bug"
)

// notification is struct seccomp_notif.
type notification struct {
	ID        uint64
	PID       uint32 // of the calling thread
	Flags     uint32
	Number    uint32
	Arch      uint32
	Pointer   uint64
	Arguments [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	ID    uint64
	Value int64
	Error int32 // negative errno
	Flags uint32
}

// injection is struct seccomp_notif_addfd.
type injection struct {
	ID       uint64
	Flags    uint32
	Source   uint32
	New      uint32
	NewFlags uint32
}

// structureRoom is the size of the buffers that receive and respond pass to the kernel.
// Its structures may grow, and it copies as many bytes as its own have.
const structureRoom = 256

// listener is a seccomp notification descriptor.
type listener int

// receive returns the next request. ENOENT means that its caller died in the meantime.
func (l listener) receive() (notification, unix.Errno) {
	var room [structureRoom / 8]uint64 // aligned, and zeroed, as the kernel requires
	errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&room))
	return *(*notification)(unsafe.Pointer(&room)), errno
}

// respond answers a request. ENOENT means that its caller died in the meantime.
func (l listener) respond(r response) unix.Errno {
	var room [structureRoom / 8]uint64
	*(*response)(unsafe.Pointer(&room)) = r
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&room))
}

// valid reports whether the request's caller still waits for the answer.
func (l listener) valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// inject places a descriptor in the caller's process.
//
// The thread takes no signals in the meantime, such as those with which Go preempts
// goroutines. A signal can interrupt the kernel's wait for the caller. With the flag SEND,
// the request then counts as answered although the descriptor is not placed: the caller's
// call returns 0, and the caller takes its standard input for the file. What cannot be
// blocked, SIGSTOP and the cgroup freezer, still does this.
func (l listener) inject(i injection) (errno unix.Errno) {
	withoutSignals(func() { errno = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&i)) })
	return errno
}

// withoutSignals calls do on a thread that takes no signals.
func withoutSignals(do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		bug.Found("block signals: %v", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	do()
}

// wakeSynchronously asks the scheduler to switch to the other side directly (Linux 6.6).
// On older kernels, requests are only slower.
func (l listener) wakeSynchronously() {
	unix.Syscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

func (l listener) ioctl(request uintptr, structure unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l), request, uintptr(structure))
		if errno != unix.EINTR {
			return errno
		}
	}
}
