// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
)

// conduitPair holds both ends of one slot of a pipe or descriptor channel. The monitor
// keeps both open while the pipeline exists, so that a restarted task, and every new
// worker, gets the same conduit again.
type conduitPair struct {
	reader, writer *os.File
}

func (c conduitPair) close() {
	c.reader.Close()
	c.writer.Close()
}

// newPipe makes a data pipe. Writes up to PIPE_BUF (4096 bytes) are atomic, pipe(7).
func newPipe(name string) (conduitPair, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return conduitPair{}, fmt.Errorf("make pipe %s: %w", name, err)
	}
	return oneWay(name, ends)
}

// newChannel makes a descriptor channel: records keep their boundaries, and each
// end can be used in one direction only.
func newChannel(name string) (conduitPair, error) {
	ends, err := sandbox.MessagePair()
	if err != nil {
		return conduitPair{}, fmt.Errorf("make channel %s: %w", name, err)
	}
	if err := unix.Shutdown(ends[0], unix.SHUT_WR); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return conduitPair{}, fmt.Errorf("make channel %s: shut the reading end for writing: %w", name, err)
	}
	return oneWay(name, ends)
}

// oneWay takes over the two ends, the reading end first.
func oneWay(name string, ends [2]int) (conduitPair, error) {
	pair := conduitPair{reader: os.NewFile(uintptr(ends[0]), name), writer: os.NewFile(uintptr(ends[1]), name)}
	if err := sandbox.OneWay(pair.reader, pair.writer); err != nil {
		pair.close()
		return conduitPair{}, fmt.Errorf("make %s one-way: %w", name, err)
	}
	return pair, nil
}

// smallestRecord is less than a record of a channel takes of the kernel's socket buffer, in
// bytes, however short it is.
const smallestRecord = 16

// drain discards what an ended session left unread, so that the next session on
// the same slot starts with an empty channel. It ends although a task may write on.
func (c conduitPair) drain() {
	room, err := unix.GetsockoptInt(int(c.reader.Fd()), unix.SOL_SOCKET, unix.SO_SNDBUF) // the writer's is as large
	if err != nil {
		return // it is no socket: nothing can be in it
	}
	var record [512]byte
	for range room / smallestRecord {
		_, _, err := unix.Recvfrom(int(c.reader.Fd()), record[:], unix.MSG_DONTWAIT)
		if err != nil && err != unix.EINTR {
			return // EAGAIN: empty
		}
	}
}
