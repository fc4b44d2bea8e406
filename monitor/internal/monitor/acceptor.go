// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// accepted is a user's connection that the monitor itself took from the listening
// socket, and therefore knows the peer of.
type accepted struct {
	connection *os.File
	peer       netip.Addr
}

// acceptor owns a pipeline's listening socket and hands each connection to one
// worker that waits for it. It takes a connection from the kernel's queue only
// when a worker waits, so that the queue's limit is the limit of the pipeline.
type acceptor struct {
	listener *net.TCPListener
	waiting  chan *waiter
	done     chan struct{}
}

// waiter is one idle worker. ready has room for one connection, so that the
// acceptor never blocks on a worker that has just died.
type waiter struct {
	ctx   context.Context
	ready chan accepted
}

// listen opens the listening socket at address ("127.0.0.1:8640") and starts to
// accept. The error names the address and the remedy when it is occupied.
func listen(address string) (*acceptor, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; free the port, or change the conduit's \"listen\"", address, err)
	}
	a := &acceptor{
		listener: listener.(*net.TCPListener),
		waiting:  make(chan *waiter, 256),
		done:     make(chan struct{}),
	}
	go a.run()
	return a, nil
}

// address is where the acceptor really listens; the port is known even when the
// manifest asked for port 0.
func (a *acceptor) address() string { return a.listener.Addr().String() }

// next waits for a connection on behalf of one worker; ctx ends when it dies.
func (a *acceptor) next(ctx context.Context) (accepted, error) {
	w := &waiter{ctx: ctx, ready: make(chan accepted, 1)}
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
		select {
		case got := <-w.ready: // delivered in the same instant: nobody else will close it
			got.connection.Close()
		default:
		}
		return accepted{}, ctx.Err()
	case <-a.done:
		return accepted{}, net.ErrClosed
	}
}

func (a *acceptor) run() {
	defer close(a.done)
	raw, err := a.listener.SyscallConn()
	if err != nil {
		return
	}
	for w := range a.waiting {
		for w.ctx.Err() == nil {
			got, err := acceptRaw(raw)
			if isTransient(err) {
				continue
			}
			if err != nil {
				return // the listener is closed
			}
			deliver(w, got)
			break
		}
	}
}

// deliver gives the connection to w, or closes it when w has died meanwhile: the
// client sees a connection that ends and may try again.
func deliver(w *waiter, got accepted) {
	if w.ctx.Err() != nil {
		got.connection.Close()
		return
	}
	w.ready <- got
}

// acceptRaw accepts without registering the connection with the runtime's poller:
// the monitor never reads from it.
func acceptRaw(raw syscall.RawConn) (accepted, error) {
	var got accepted
	var failure error
	err := raw.Read(func(fd uintptr) bool {
		connection, address, err := unix.Accept4(int(fd), unix.SOCK_CLOEXEC)
		if err == unix.EAGAIN {
			return false
		}
		if err != nil {
			failure = err
			return true
		}
		got = accepted{connection: os.NewFile(uintptr(connection), "connection"), peer: peerAddress(address)}
		return true
	})
	if err != nil {
		return accepted{}, err
	}
	return got, failure
}

// isTransient says whether accept4(2) failed for this connection only.
func isTransient(err error) bool {
	switch err {
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

func (a *acceptor) close() {
	a.listener.Close()
}
