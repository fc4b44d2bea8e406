// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// worker is a stub that serves one session. It is identified by the socket on which it
// asked for the session. The socket is closed when nothing of the session is left, and
// when the stub dies.
type worker struct {
	pid     int
	socket  *os.File // non-blocking: the runtime polls it
	request uint64   // number of the request for a session
	clean   func()   // called when the session has ended
	gone    chan struct{}
	once    sync.Once
}

var _ watchedWorker = (*worker)(nil)

// newWorker takes over a socket, and watches it until its other end is closed or the
// worker is released.
func newWorker(pid int, socket int, request uint64, clean func()) (*worker, error) {
	w := &worker{pid: pid, request: request, clean: clean, gone: make(chan struct{})}
	if err := unix.SetNonblock(socket, true); err != nil {
		unix.Close(socket)
		return nil, err
	}
	w.socket = os.NewFile(uintptr(socket), "session")
	connection, err := w.socket.SyscallConn()
	if err != nil {
		w.socket.Close()
		return nil, err
	}
	go func() {
		_ = connection.Read(func(socket uintptr) bool {
			for {
				count, _, err := unix.Recvfrom(int(socket), make([]byte, 1), unix.MSG_DONTWAIT)
				if err != nil || count == 0 {
					return err != unix.EAGAIN
				}
				w.Kill() // a stub sends nothing on this socket
			}
		})
		w.end()
	}()
	return w, nil
}

func (w *worker) PID() int              { return w.pid }
func (w *worker) Gone() <-chan struct{} { return w.gone }

// Kill implements [Worker]. While the stub's end of the socket is open, the stub lives,
// and the number is its own.
func (w *worker) Kill() {
	w.whileOpen(func() { _ = unix.Kill(w.pid, unix.SIGKILL) })
}

// Ended implements [Worker].
func (w *worker) Ended() bool {
	ended := true
	w.whileOpen(func() { ended = false })
	return ended
}

// whileOpen calls do if the other end of the socket is open.
func (w *worker) whileOpen(do func()) {
	connection, err := w.socket.SyscallConn()
	if err != nil {
		return // it has gone
	}
	_ = connection.Control(func(socket uintptr) {
		poll := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, 0); err == nil && poll[0].Revents&unix.POLLHUP == 0 {
			do()
		}
	})
}

// place sends the stub the descriptors of its session.
func (w *worker) place(accepted *Accepted) error {
	placed := wire.Placed{Connection: int32(accepted.Connection)}
	var files []*os.File
	for _, number := range accepted.numbers() {
		placed.Numbers = append(placed.Numbers, int32(number))
		files = append(files, accepted.Descriptors[number])
		if number < wire.FDMonitor {
			if err := limitStandard(int(accepted.Descriptors[number].Fd()), plan.OutputRights); err != nil {
				return err
			}
		}
	}
	return w.send(placed, files)
}

func (w *worker) send(placed wire.Placed, files []*os.File) error {
	connection, err := w.socket.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = connection.Control(func(socket uintptr) { failure = sendAnswer(int(socket), w.request, placed, files...) })
	if err != nil {
		return err
	}
	return failure
}

// release tells the stub that it gets no session.
func (w *worker) release() {
	// A stub that is dead needs no answer.
	_ = w.send(wire.Placed{Status: int32(unix.ECONNABORTED)}, nil)
	w.end()
}

func (w *worker) end() {
	w.once.Do(func() {
		w.socket.Close()
		w.clean()
		close(w.gone)
	})
}
