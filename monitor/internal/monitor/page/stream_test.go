// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
)

// deadlines is a recorder that has deadlines, as connections have.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// newEnded returns a context that has ended, as that of a browser that has gone.
func newEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended, cancel
}

// denied is a source whose denials are those that a test makes.
type denied struct {
	*apitest.Service
	mu        sync.Mutex
	followers map[chan audit.Record]bool
}

func (d *denied) Query(ctx context.Context, query audit.Query, each func(audit.Record) error) error {
	if !query.Follow || len(query.Kinds) != 1 || query.Kinds[0] != audit.Denial {
		return errors.New("another question was asked")
	}
	records := make(chan audit.Record, 1)
	d.mu.Lock()
	d.followers[records] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.followers, records)
		d.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case record := <-records:
			if err := each(record); err != nil {
				return err
			}
		}
	}
}

// deny makes a denial, which all streams have.
func (d *denied) deny(record audit.Record) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for follower := range d.followers {
		follower <- record
	}
}

func (d *denied) following() int {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.followers)
}

// pipes is a listener whose connections are pipes without buffers: who does not read, blocks.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// watching serves a page in a bubble and returns its source, and a function that follows denials.
func watching(t *testing.T) (d *denied, follow func() (net.Conn, *bufio.Reader)) {
	d = &denied{Service: new(apitest.Service), followers: map[chan audit.Record]bool{}}
	listener := pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, []net.Listener{listener}, New(d, nil)) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return d, func() (net.Conn, *bufio.Reader) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		listener.accepted <- theirs
		fmt.Fprintf(ours, "GET /data/denials HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		return ours, bufio.NewReader(ours)
	}
}

// until reads lines to one that contains a text.
func until(t *testing.T, reader *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("before %q: %v", text, err)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// A stream has what happens, and shows that it is alive when nothing does.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, follow := watching(t)
		_, stream := follow()
		until(t, stream, "200 OK")
		until(t, stream, "text/event-stream")
		until(t, stream, "event: begin")
		d.deny(audit.Record{Sequence: 17, Event: audit.Event{Kind: audit.Denial, Conduit: "/a\nevent: x\n\n"}})
		until(t, stream, "id: 17")
		until(t, stream, "event: denial")
		until(t, stream, `"conduit":"/a\nevent: x\n\n"`)
		before := time.Now()
		until(t, stream, ": alive")
		if took := time.Since(before); took > heartbeat {
			t.Errorf("the heartbeat came after %s", took)
		}
	})
}

// A stream on which nothing has happened for some time ends whole when the monitor does.
func TestStreamsEndWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &denied{Service: new(apitest.Service), followers: map[chan audit.Record]bool{}}
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- api.Serve(ctx, []net.Listener{listener}, New(d, nil)) }()
		ours, theirs := net.Pipe()
		defer ours.Close()
		listener.accepted <- theirs
		fmt.Fprintf(ours, "GET /data/denials HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		go func() {
			time.Sleep(patience + time.Second)
			stop()
		}()
		if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "event: begin") {
			t.Errorf("%q: %v", text, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// There is a limit on streams; one that ends makes room.
func TestStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, follow := watching(t)
		first, stream := follow()
		until(t, stream, "event: begin")
		for range maxStreams - 1 {
			_, stream := follow()
			until(t, stream, "event: begin")
		}
		_, stream = follow()
		until(t, stream, "503")
		until(t, stream, "Retry-After")
		first.Close()
		if following := d.following(); following != maxStreams-1 {
			t.Errorf("%d streams follow", following)
		}
		_, stream = follow()
		until(t, stream, "event: begin")
	})
}

// A browser that does not read loses its stream, and delays no other.
func TestSlowBrowsersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, follow := watching(t)
		_, slow := follow()
		until(t, slow, "event: begin")
		_, reading := follow()
		until(t, reading, "event: begin")
		d.deny(audit.Record{Sequence: 1, Event: audit.Event{Kind: audit.Denial}})
		until(t, reading, "event: denial")
		time.Sleep(patience + time.Second)
		if following := d.following(); following != 1 {
			t.Errorf("%d streams follow, want that of the browser that reads", following)
		}
		until(t, reading, ": alive")
	})
}
