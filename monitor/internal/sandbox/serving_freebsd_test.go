// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// servingAttempts are what the victim does as a worker.
func servingAttempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"serve":             serveSessions,
		"serve-overlapping": func([]string) error { return serveOverlapping() },
		"serve-leaving":     func([]string) error { return serveAndLeave() },
		"serve-sharing":     serveSharing,
		"rfork":             forkWithTable,
	}
}

// serveOverlapping asks for a second session before the first is over, and gives the
// monitor time to make the mistake.
func serveOverlapping() error {
	first, err := sendRequest(wire.RequestSession{}, -1)
	if err != nil {
		return err
	}
	if _, _, err := receiveAnswer(first); err != nil {
		return err
	}
	second, err := sendRequest(wire.RequestSession{}, -1)
	if err != nil {
		return err
	}
	for range 20 {
		if _, err := answerTo(wire.RequestPath{Path: "allowed.txt", Flags: openPath}, -1); err != nil {
			return err
		}
	}
	unix.Close(first)
	_, _, err = receiveAnswer(second)
	return err
}

// serveAndLeave serves one session, in which a process is forked that forks another one,
// and ends.
func serveAndLeave() error {
	reply, err := sendRequest(wire.RequestSession{}, -1)
	if err != nil {
		return err
	}
	if _, _, err := receiveAnswer(reply); err != nil {
		return err
	}
	var handle int32
	child, _, errno := unix.RawSyscall(unix.SYS_PDFORK, uintptr(unsafe.Pointer(&handle)), 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		// As a session half, which does not hold what its stub does.
		unix.RawSyscall(unix.SYS_CLOSE, uintptr(reply), 0, 0)
		if grandchild, _, _ := unix.RawSyscall(unix.SYS_FORK, 0, 0, 0); grandchild == 0 {
			for {
				unix.RawSyscall(unix.SYS_SIGSUSPEND, uintptr(unsafe.Pointer(&[4]uint32{})), 0, 0)
			}
		}
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	ended := []unix.PollFd{{Fd: handle, Events: unix.POLLIN}}
	for ended[0].Revents&unix.POLLHUP == 0 {
		if _, err := unix.Poll(ended, -1); err != nil && err != unix.EINTR {
			return err
		}
	}
	unix.Close(reply)
	return stay()
}

// serveSessions has one session after the other, as a stub has: it shows its descriptors,
// and continues when it reads a byte from its pipe.
func serveSessions(arguments []string) error {
	for range number(arguments[0]) {
		reply, err := sendRequest(wire.RequestSession{}, -1)
		if err != nil {
			return err
		}
		message, descriptors, err := receiveAnswer(reply)
		if err != nil {
			return err
		}
		placed := message.(wire.Placed)
		if placed.Status != 0 {
			return unix.Errno(placed.Status)
		}
		for i, number := range placed.Numbers {
			if number == placed.Connection {
				fmt.Fprintf(os.NewFile(uintptr(descriptors[i]), "connection"), "hello from %d", os.Getpid())
			}
		}
		closeAll(descriptors)
		if _, err := unix.Read(wire.FDPipe, make([]byte, 1)); err != nil {
			return err
		}
		unix.Close(reply)
	}
	return nil
}
