// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// accepted is a user's connection that the monitor itself took from the listening socket.
// The monitor therefore knows its peer.
type accepted struct {
	connection *os.File
	peer       netip.Addr
}

// acceptor owns a pipeline's listening socket and hands each connection to one
// worker that waits for it. It takes a connection from the kernel's queue only
// when a worker waits, so that the queue's limit is the limit of the pipeline.
type acceptor struct {
	listener *os.File // blocking: accept4 has a thread of its own
	waiting  chan *waiter
	stop     chan struct{} // closed by close
	done     chan struct{} // closed when accepting has ended
}

// waiter is one idle worker. The channel ready is unbuffered, so a connection belongs
// either to the worker or still to the acceptor.
type waiter struct {
	ctx   context.Context
	ready chan accepted
}

// openListener listens at address ("127.0.0.1:8640"). If the address is in use, the error
// names it and the remedy.
func openListener(address string) (*net.TCPListener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; free the port, or change the conduit's \"listen\"", address, err)
	}
	return listener.(*net.TCPListener), nil
}

// listen opens a pipeline's listening socket and starts to accept.
func listen(address string) (*acceptor, error) {
	listener, err := openListener(address)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	a := &acceptor{
		listener: file,
		waiting:  make(chan *waiter, 256),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go a.run()
	return a, nil
}

// next waits for a connection on behalf of one worker. ctx ends when the worker dies.
func (a *acceptor) next(ctx context.Context) (accepted, error) {
	w := &waiter{ctx: ctx, ready: make(chan accepted)}
	select {
	case a.waiting <- w:
	case <-ctx.Done():
		return accepted{}, ctx.Err()
	case <-a.done:
		return accepted{}, net.ErrClosed
	}
	select {
	case got := <-w.ready:
		return got, nil
	case <-ctx.Done():
		return accepted{}, ctx.Err()
	case <-a.done:
		return accepted{}, net.ErrClosed
	}
}

func (a *acceptor) run() {
	defer close(a.done)
	for {
		w, open := a.waiter()
		if !open {
			return
		}
		got, err := a.accept()
		if err != nil {
			return // close has shut the listening socket down
		}
		// The worker may have died while it waited. Another worker then gets the
		// connection.
		for !deliver(w, got) {
			if w, open = a.waiter(); !open {
				got.connection.Close()
				return
			}
		}
	}
}

// waiter returns the next idle worker; open is false if the acceptor is to stop.
func (a *acceptor) waiter() (w *waiter, open bool) {
	for {
		select {
		case w = <-a.waiting:
		case <-a.stop:
			return nil, false
		}
		if w.ctx.Err() == nil {
			return w, true
		}
	}
}

// accept takes one connection from the kernel's queue.
func (a *acceptor) accept() (accepted, error) {
	for {
		connection, address, err := unix.Accept4(int(a.listener.Fd()), unix.SOCK_CLOEXEC)
		switch {
		case err == nil:
			return accepted{connection: os.NewFile(uintptr(connection), "connection"), peer: peerAddress(address)}, nil
		case !isTransient(err):
			return accepted{}, err
		}
		if !a.resumeAfter(pauseAfter(err)) {
			return accepted{}, net.ErrClosed
		}
	}
}

// pauseAfter returns how long to wait after a transient error. If descriptors or memory
// are short, the connection stays in the queue, and an immediate retry would only burn
// CPU time.
func pauseAfter(err error) time.Duration {
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
		return 0
	}
	return shortage
}

// resumeAfter waits for pause. It returns false if the acceptor is to stop, which accept4
// reports on FreeBSD as an aborted connection.
func (a *acceptor) resumeAfter(pause time.Duration) bool {
	select {
	case <-a.stop:
		return false
	default:
	}
	select {
	case <-a.stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// shortage is the pause in which descriptors or memory may become free.
const shortage = 50 * time.Millisecond

// deliver hands a connection to a worker. It returns false if the worker has died.
func deliver(w *waiter, got accepted) bool {
	select {
	case w.ready <- got:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// isTransient reports whether accept4(2) may succeed when it is called again.
func isTransient(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case unix.EINTR, unix.ECONNABORTED, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
		return true
	}
	return false
}

func peerAddress(address unix.Sockaddr) netip.Addr {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap()
	}
	return netip.Addr{}
}

// close stops accepting. It shuts the listening socket down first, because that wakes
// accept4; closing the descriptor would not.
func (a *acceptor) close() {
	close(a.stop)
	_ = unix.Shutdown(int(a.listener.Fd()), unix.SHUT_RDWR)
	<-a.done
	a.listener.Close()
}
