// SPDX-License-Identifier: BSD-2-Clause

//go:build linux || freebsd

package pipeline

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

func endpoints(t *testing.T) (*endpoint, int) {
	t.Helper()
	mine, theirs, err := newEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mine.close(); theirs.Close() })
	return mine, int(theirs.Fd())
}

func TestEndpointReceives(t *testing.T) {
	mine, theirs := endpoints(t)
	buffer := make([]byte, 64)
	if err := unix.Sendto(theirs, make([]byte, 64), 0, nil); err != nil {
		t.Fatal(err)
	}
	if size, err := mine.receive(buffer); size != 64 || err != nil {
		t.Errorf("a record that just fits: %d, %v", size, err)
	}
	if err := unix.Sendto(theirs, make([]byte, 65), 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.receive(buffer); !errors.Is(err, errTruncated) {
		t.Errorf("a record that is too long: %v", err)
	}
	if err := unix.Shutdown(theirs, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.receive(buffer); !errors.Is(err, io.EOF) {
		t.Errorf("a socket that is closed: %v", err)
	}
}

// The monitor closes its end when a task's keeper has ended, also while it waits for a
// record. That is no mistake of the task.
func TestClosedEndpoint(t *testing.T) {
	mine, theirs := endpoints(t)
	received := make(chan error)
	receive := func() {
		_, err := mine.receive(make([]byte, 64))
		received <- err
	}
	go receive()
	if err := mine.send([]byte("x")); err != nil {
		t.Fatal(err)
	}
	mine.close()
	if err := <-received; !errors.Is(err, os.ErrClosed) {
		t.Errorf("receive, closed while it may wait: %v", err)
	}
	if err := unix.Sendto(theirs, []byte("x"), unix.MSG_NOSIGNAL, nil); err == nil {
		t.Error("the task still sends")
	}
	go receive()
	if err := <-received; !errors.Is(err, os.ErrClosed) {
		t.Errorf("receive: %v", err)
	}
	if err := mine.send([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("send: %v", err)
	}
}

// Descriptors that a task sends are never the monitor's.
func TestEndpointTakesNoDescriptors(t *testing.T) {
	mine, theirs := endpoints(t)
	buffer, before := make([]byte, 64), pipelinetest.OpenDescriptors(t)
	for range 200 {
		if err := unix.Sendmsg(theirs, []byte("x"), unix.UnixRights(0, 1, 2), nil, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := mine.receive(buffer); err != nil {
			t.Fatal(err)
		}
	}
	if after := pipelinetest.OpenDescriptors(t); after > before { // what earlier tests used may be closed meanwhile
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// A task that does not read cannot hold up the monitor.
func TestEndpointNeverBlocks(t *testing.T) {
	mine, _ := endpoints(t)
	for range 1 << 16 {
		if err := mine.send(make([]byte, 1024)); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				t.Errorf("a full socket: %v", err)
			}
			return
		}
	}
	t.Error("64 MiB fit a socket that nobody reads")
}

// A channel can be used in one direction only, and is empty for the next session.
func TestChannelDirections(t *testing.T) {
	pair, err := newChannel("test")
	if err != nil {
		t.Fatal(err)
	}
	defer pair.close()
	if _, err := unix.Write(int(pair.reader.Fd()), []byte("x")); err == nil {
		t.Error("the reading end can be written into")
	}
	record := pipelinetest.Transfer(1, 1)
	for range 3 {
		if _, err := unix.Write(int(pair.writer.Fd()), record); err != nil {
			t.Fatal(err)
		}
	}
	pair.drain()
	if _, _, err := unix.Recvfrom(int(pair.reader.Fd()), make([]byte, 8), unix.MSG_DONTWAIT); !errors.Is(err,
		unix.EAGAIN) {
		t.Errorf("after draining: %v", err)
	}
}
