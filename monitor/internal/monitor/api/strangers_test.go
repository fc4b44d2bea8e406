// SPDX-License-Identifier: BSD-2-Clause

package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// crowded serves at a TLS address, and knows how many connections there are.
type crowded struct {
	t       *testing.T
	address string
	client  *tls.Config

	mu        sync.Mutex
	now, most int
}

func newCrowded(t *testing.T) *crowded {
	t.Helper()
	ours := newAuthority(t)
	certificate, key := ours.leaf("monitor", x509.ExtKeyUsageServerAuth)
	listeners, err := api.Endpoints{Listen: "127.0.0.1:0", Certificate: certificate, Key: key, ClientCA: ours.path}.Open()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ours.path)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	own, err := tls.LoadX509KeyPair(ours.leaf("client", x509.ExtKeyUsageClientAuth))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowded{t: t, address: listeners[0].Addr().String(),
		client: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, NextProtos: []string{"http/1.1"}}}
	server := api.NewUnhurriedServer(http.NotFoundHandler())
	watched := server.ConnState
	server.ConnState = func(connection net.Conn, state http.ConnState) {
		watched(connection, state)
		c.count(state)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listeners[0]) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

func (c *crowded) count(state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.now++
		c.most = max(c.most, c.now)
	case http.StateClosed:
		c.now--
	case http.StateActive, http.StateIdle, http.StateHijacked:
	}
}

func (c *crowded) connections() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.most
}

// dial connects, and says nothing.
func (c *crowded) dial() net.Conn {
	c.t.Helper()
	connection, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(waiting.Limit))
	return connection
}

// request sends a request and reads its answer; the connection stays open.
func request(connection net.Conn) error {
	if _, err := connection.Write([]byte("GET / HTTP/1.1\r\nHost: monitor\r\n\r\n")); err != nil {
		return err
	}
	_, err := connection.Read(make([]byte, 1024))
	return err
}

func (c *crowded) secured(connection net.Conn) net.Conn {
	config := c.client.Clone()
	config.ServerName = "127.0.0.1"
	return tls.Client(connection, config)
}

// Who connects again and again and says nothing holds few connections, for whatever time, and
// keeps nobody out who has a certificate.
func TestIdleStrangersAreCutOff(t *testing.T) {
	c := newCrowded(t)
	early := c.secured(c.dial())
	if err := request(early); err != nil {
		t.Fatal(err)
	}
	first := c.dial()
	for range 3 * api.StrangersAtATime {
		c.dial()
	}
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest connection is still there: %v", err)
	}
	for _, known := range []net.Conn{early, c.secured(c.dial())} {
		if err := request(known); err != nil {
			t.Errorf("somebody with a certificate has no answer: %v", err)
		}
	}
	waiting.Until(t, "the others are closed", func() bool {
		now, _ := c.connections()
		return now <= api.StrangersAtATime+2
	})
}

// caller is a connection from an address.
type caller struct {
	net.Conn
	address net.Addr
	closed  bool
}

func (c *caller) RemoteAddr() net.Addr { return c.address }

func (c *caller) Close() error {
	c.closed = true
	return nil
}

func callerFrom(host string) *caller {
	return &caller{address: &net.TCPAddr{IP: net.ParseIP(host), Port: 1024}}
}

// Who connects again and again keeps out neither callers from other addresses nor those of the socket.
func TestStrangersOfOneNetworkGiveWayFirst(t *testing.T) {
	for _, flood := range []func(i int) string{
		func(int) string { return "192.0.2.1" },
		func(int) string { return "::ffff:192.0.2.1" },
		func(i int) string { return fmt.Sprintf("2001:db8::%x:1", i) },
	} {
		see := api.NewStrangers()
		others := []*caller{
			{address: &net.UnixAddr{Net: "unix"}}, callerFrom("192.0.2.2"),
			callerFrom("2001:db8:0:1::1"), callerFrom("::1"),
		}
		for _, other := range others {
			see(other, http.StateNew)
		}
		var crowd []*caller
		for i := range 10 * api.StrangersAtATime {
			crowd = append(crowd, callerFrom(flood(i)))
			see(crowd[i], http.StateNew)
		}
		for _, other := range others {
			if other.closed {
				t.Errorf("%s: %v was cut off", flood(1), other.address)
			}
		}
		for i, one := range crowd {
			if stays := i >= len(crowd)+len(others)-api.StrangersAtATime; one.closed == stays {
				t.Fatalf("%s: connection %d of %d is closed: %v", flood(1), i, len(crowd), one.closed)
			}
		}
	}
}

// Clients with certificates hold no more connections than the limit; the next waits for a place.
func TestConnectionsAreLimited(t *testing.T) {
	c := newCrowded(t)
	var all []net.Conn
	for range api.ConnectionsAtATime {
		all = append(all, c.secured(c.dial()))
		if err := request(all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	const more = 8
	answers := make(chan error, more)
	for range more {
		waitingOne := c.secured(c.dial())
		go func() { answers <- request(waitingOne) }()
	}
	if err := request(all[0]); err != nil {
		t.Error(err)
	}
	if _, most := c.connections(); most > api.ConnectionsAtATime {
		t.Errorf("there were %d connections", most)
	}
	for _, one := range all[:more] {
		one.Close()
	}
	for range more {
		if err := <-answers; err != nil {
			t.Errorf("one that waited has no answer: %v", err)
		}
	}
}
