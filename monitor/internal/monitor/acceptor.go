// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

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
	listener *os.File // blocking: accept4 has a thread of its own
	waiting  chan *waiter
	stop     chan struct{} // closed by close
	done     chan struct{} // closed when nothing is accepted any more
}

// waiter is one idle worker. ready has room for one connection, so that the
// acceptor never blocks on a worker that has just died.
type waiter struct {
	ctx   context.Context
	ready chan accepted
}

// openListener listens at address ("127.0.0.1:8640"). The error names the address and
// the remedy when it is occupied.
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
	descriptor := int(a.listener.Fd())
	for {
		var w *waiter
		select {
		case w = <-a.waiting:
		case <-a.stop:
			return
		}
		for w.ctx.Err() == nil {
			connection, address, err := unix.Accept4(descriptor, unix.SOCK_CLOEXEC)
			if isTransient(err) {
				continue
			}
			if err != nil {
				return // close has shut the listening socket down
			}
			deliver(w, accepted{connection: os.NewFile(uintptr(connection), "connection"), peer: peerAddress(address)})
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

// close stops accepting: shutting a listening socket down wakes accept4, which closing
// its descriptor would not.
func (a *acceptor) close() {
	_ = unix.Shutdown(int(a.listener.Fd()), unix.SHUT_RDWR)
	close(a.stop)
	<-a.done
	a.listener.Close()
}
