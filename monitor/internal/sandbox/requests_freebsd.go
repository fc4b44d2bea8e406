// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// requests answers the requests of one task's processes, on the socket that they share
// (wire.FDRequests).
type requests struct {
	arbiter
	spec     Spec
	socket   *os.File
	received syscall.RawConn
	// writable holds files that the task holds without the right to write, by number.
	writable map[int]*os.File
	// What the task was given, by which numbers, and the other way round; of one that raises its
	// taint or serves users.
	given  map[object]int
	places map[int]object
	// What the task got of its program's libraries, and up to how many numbers this takes.
	image     map[object]bool
	imageSize int
	raised    sync.RWMutex // held while the process registers again, and else by each other request
	slots     chan struct{}
	running   sync.WaitGroup
	cancel    context.CancelFunc

	mutex   sync.Mutex
	workers map[int]*worker // by process, the latest of each
	// examined are the workers that share nothing: when each was made.
	examined  map[int]time.Duration
	examining sync.Mutex // held while a worker is examined
}

// newRequests makes the socket. The caller passes the end in theirs to the task, and
// closes it.
func newRequests(spec Spec, decider Decider) (q *requests, theirs *os.File, err error) {
	ends, err := MessagePair()
	if err != nil {
		return nil, nil, fmt.Errorf("make request socket: %w", err)
	}
	theirs = os.NewFile(uintptr(ends[1]), "requests")
	err = unix.SetNonblock(ends[0], true)
	if err == nil {
		// With each record the kernel tells which process sent it.
		err = unix.SetsockoptInt(ends[0], localLevel, localCredentials, 1)
	}
	q = &requests{arbiter: arbiter{decider: decider, permits: permitsOf(spec), user: spec.User,
		foreign: spec.Foreign}, spec: spec,
		socket: os.NewFile(uintptr(ends[0]), "requests"), writable: map[int]*os.File{},
		slots: make(chan struct{}, requestsAtATime), workers: map[int]*worker{},
		examined: map[int]time.Duration{}}
	q.context, q.cancel = context.WithCancel(context.Background())
	if err == nil {
		q.received, err = q.socket.SyscallConn()
	}
	if err == nil {
		err = q.keepWritable()
	}
	if err == nil && (spec.Raising != nil || spec.Serving) {
		err = q.keepGiven(theirs)
	}
	if err != nil {
		theirs.Close()
		q.stop()
		return nil, nil, fmt.Errorf("make request socket: %w", err)
	}
	return q, theirs, nil
}

// keepWritable duplicates the files that are written to only after a decision.
func (q *requests) keepWritable() error {
	for number, file := range q.spec.Descriptors {
		if !plan.IsChecked(number) {
			continue
		}
		duplicate, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		q.writable[number] = os.NewFile(uintptr(duplicate), file.Name())
	}
	return nil
}

// serve answers requests until the task has ended.
func (q *requests) serve() {
	for {
		r, err := q.receive()
		switch {
		case errors.Is(err, errMalformed):
			continue // the sender has gone, or the record is no request
		case err != nil:
			return
		}
		q.running.Add(1)
		go r.handle()
	}
}

// stop ends serve. Requests that are still undecided are denied.
func (q *requests) stop() {
	q.cancel()
	q.socket.Close()
	go func() {
		q.running.Wait()
		for _, file := range q.writable {
			file.Close()
		}
	}()
}

// request is one record that is being answered.
type request struct {
	*requests
	process   int
	sequence  uint64
	message   wire.Message
	reply     int // the socket for the answer
	directory int // sent with the request; -1 if none
}

var errMalformed = errors.New("not a request")

// receive waits for one request. A record that is no request is closed without an answer.
func (q *requests) receive() (*request, error) {
	record, control := make([]byte, wire.RequestPathMax+64), make([]byte, 4096)
	var size, controlSize, flags int
	var failure error
	err := q.received.Read(func(socket uintptr) bool {
		size, controlSize, flags, _, failure = unix.Recvmsg(int(socket), record, control,
			unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		return failure != unix.EAGAIN && failure != unix.EINTR
	})
	if err := errors.Join(err, failure); err != nil {
		return nil, err
	}
	process, descriptors := senderOf(control[:controlSize])
	if size == 0 && len(descriptors) == 0 && process == 0 {
		return nil, os.ErrClosed // no process holds the other end any more
	}
	r := &request{requests: q, process: process, reply: -1, directory: -1}
	r.sequence, r.message, err = wire.DecodeRequest(record[:size])
	whole := flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) == 0
	if err != nil || !whole || process == 0 || len(descriptors) < 1 || len(descriptors) > 2 {
		closeAll(descriptors)
		q.report(RefusedCall{Caller: Caller{PID: process}, Call: "request", Errno: unix.EINVAL})
		return nil, errMalformed
	}
	r.reply = descriptors[0]
	if len(descriptors) == 2 {
		r.directory = descriptors[1]
	}
	return r, nil
}

// Of sys/un.h and sys/socket.h.
const (
	localLevel        = 0 // SOL_LOCAL
	localCredentials  = 3 // LOCAL_CREDS_PERSISTENT
	credentialMessage = 8 // SCM_CREDS2: struct sockcred2, whose second word is the process
)

// senderOf returns the process that sent a record, 0 if the kernel does not tell, and the
// descriptors that were sent with it.
func senderOf(control []byte) (process int, descriptors []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, nil
	}
	for _, message := range messages {
		switch {
		case message.Header.Level != unix.SOL_SOCKET:
		case message.Header.Type == credentialMessage && len(message.Data) >= 8:
			process = int(binary.NativeEndian.Uint32(message.Data[4:]))
		case message.Header.Type == unix.SCM_RIGHTS:
			numbers, err := unix.ParseUnixRights(&message)
			if err == nil {
				descriptors = append(descriptors, numbers...)
			}
		}
	}
	return process, descriptors
}

func closeAll(descriptors []int) {
	for _, descriptor := range descriptors {
		unix.Close(descriptor)
	}
}

// sendAnswer sends a record and its files. A full socket is an error: the monitor never
// waits for a task.
func sendAnswer(socket int, sequence uint64, message wire.Message, files ...*os.File) error {
	record, err := wire.Encode(sequence, message)
	if err != nil {
		return err
	}
	var control []byte
	if len(files) > 0 {
		numbers := make([]int, len(files))
		for i, file := range files {
			numbers[i] = int(file.Fd())
		}
		control = unix.UnixRights(numbers...)
	}
	return unix.Sendmsg(socket, record, control, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}
