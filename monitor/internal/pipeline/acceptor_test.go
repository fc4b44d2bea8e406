// SPDX-License-Identifier: BSD-2-Clause

//go:build linux || freebsd

package pipeline

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

func listening(t *testing.T) (*acceptor, string) {
	t.Helper()
	address := pipelinetest.FreeAddress(t)
	a, err := listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return a, address
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(waiting.Limit))
	return connection
}

// waits calls next in the background.
func waits(ctx context.Context, a *acceptor) (<-chan accepted, <-chan error) {
	connections, failures := make(chan accepted, 1), make(chan error, 1)
	go func() {
		got, err := a.next(ctx)
		if err != nil {
			failures <- err
			return
		}
		connections <- got
	}()
	return connections, failures
}

// A worker that dies while it waits costs no client its connection.
func TestDeadWaiterLosesNoConnection(t *testing.T) {
	a, address := listening(t)
	defer a.close()
	dying, die := context.WithCancel(t.Context())
	_, failures := waits(dying, a)
	waiting.Until(t, "the acceptor has taken the waiter up",
		func() bool { return len(a.waiting) == 0 && threadsIn("accept") })
	die()
	if err := <-failures; !errors.Is(err, context.Canceled) {
		t.Errorf("the dead worker's wait ended with %v", err)
	}
	client := dial(t, address)
	connections, _ := waits(t.Context(), a)
	var got accepted
	select {
	case got = <-connections:
		defer got.connection.Close()
	case <-time.After(waiting.Limit):
		t.Fatal("the connection went to the dead worker")
	}
	if got.peer.String() != "127.0.0.1" {
		t.Errorf("peer is %v", got.peer)
	}
	if _, err := got.connection.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 5)
	if _, err := io.ReadFull(client, text); err != nil || string(text) != "hello" {
		t.Errorf("the client of a dead worker reads %q, %v", text, err)
	}
}

// threadsIn reports whether a goroutine is in a method of the acceptor.
func threadsIn(method string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*acceptor)."+method+"(")
}

func TestAcceptorCloses(t *testing.T) {
	a, address := listening(t)
	_, failures := waits(t.Context(), a)
	waiting.Until(t, "the acceptor blocks in accept4", func() bool { return len(a.waiting) == 0 && threadsIn("accept") })
	a.close()
	if err := <-failures; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a worker that waited is told %v", err)
	}
	if _, err := a.next(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a worker that comes later is told %v", err)
	}
	if connection, err := net.Dial("tcp", address); err == nil {
		connection.Close()
		t.Error("something still listens")
	}
}

// No connection is accepted without a worker: the kernel's queue is the pipeline's limit.
func TestAcceptorWaitsForAWorker(t *testing.T) {
	a, address := listening(t)
	defer a.close()
	first, second := dial(t, address), dial(t, address)
	for _, client := range []net.Conn{first, second} {
		got, err := a.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.connection.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		got.connection.Close()
		if text, err := io.ReadAll(client); err != nil || string(text) != "x" {
			t.Errorf("a client in order of arrival reads %q, %v", text, err)
		}
	}
	if threadsIn("accept") {
		t.Error("the acceptor accepts although nobody waits")
	}
}

func TestOccupiedPort(t *testing.T) {
	a, address := listening(t)
	defer a.close()
	_, err := listen(address)
	if err == nil || !strings.Contains(err.Error(), address) ||
		!strings.Contains(err.Error(), `free the port, or change the conduit's "listen"`) {
		t.Errorf("error %v names not the address and the remedy", err)
	}
}
