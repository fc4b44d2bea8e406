// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
)

// endpoint is the monitor's end of a task's socket (docs/wire.md). One goroutine may
// receive while others send.
type endpoint struct {
	file *os.File
	raw  syscall.RawConn
}

// newEndpoint makes a socket pair. It returns the monitor's end, and the task's end,
// which the caller hands over and closes.
func newEndpoint() (*endpoint, *os.File, error) {
	ends, err := sandbox.MessagePair()
	if err != nil {
		return nil, nil, fmt.Errorf("make task socket: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "task socket")
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		theirs.Close()
		return nil, nil, fmt.Errorf("make task socket: %w", err)
	}
	mine := os.NewFile(uintptr(ends[0]), "monitor socket")
	raw, err := mine.SyscallConn()
	if err != nil {
		mine.Close()
		theirs.Close()
		return nil, nil, fmt.Errorf("make task socket: %w", err)
	}
	return &endpoint{file: mine, raw: raw}, theirs, nil
}

var errTruncated = errors.New("record is longer than the protocol allows")

// receive reads one record into buffer. It returns io.EOF when no process holds the other
// end any more, and os.ErrClosed when the monitor has closed its own. Descriptors that a
// task sends are refused: no message of a task carries any.
func (e *endpoint) receive(buffer []byte) (int, error) {
	var size, flags int
	var failure error
	err := e.raw.Read(func(fd uintptr) bool {
		for {
			size, _, flags, _, failure = unix.Recvmsg(int(fd), buffer, nil, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			if failure != unix.EINTR {
				break
			}
		}
		return failure != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, closed(err)
	case errors.Is(failure, unix.ECONNRESET):
		return 0, io.EOF
	case failure != nil:
		return 0, fmt.Errorf("receive from task: %w", failure)
	case size == 0:
		return 0, io.EOF
	case flags&unix.MSG_TRUNC != 0:
		return 0, errTruncated
	}
	return size, nil
}

// send writes one record with its descriptors. It never blocks the monitor on a
// task that does not read: a full socket buffer is an error. It returns os.ErrClosed when
// the monitor has closed its own end.
func (e *endpoint) send(record []byte, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		numbers := make([]int, len(files))
		for i, file := range files {
			numbers[i] = int(file.Fd())
		}
		rights = unix.UnixRights(numbers...)
	}
	var failure error
	err := e.raw.Write(func(fd uintptr) bool {
		failure = unix.Sendmsg(int(fd), record, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	})
	if err != nil {
		return closed(err)
	}
	if failure != nil {
		return fmt.Errorf("send to task: %w", failure)
	}
	return nil
}

// closed wraps what a RawConn returns for a file that was closed, which is not
// os.ErrClosed. Without deadlines it returns no other error.
func closed(err error) error { return fmt.Errorf("%w: %w", os.ErrClosed, err) }

func (e *endpoint) close() { e.file.Close() }
