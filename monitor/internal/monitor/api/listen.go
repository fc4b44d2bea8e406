// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"

	"shai.dev/monitor/internal/pemfile"
)

// Endpoints are the addresses that the server listens on. The socket is for the user who
// runs the monitor. The TCP address is for others, who must show a client certificate.
type Endpoints struct {
	Socket      string // path of a unix socket, mode 0600
	Listen      string // TCP address; empty: none
	Certificate string // PEM files, all three needed with Listen
	Key         string
	ClientCA    string
}

// Open listens on the endpoints. After an error it leaves nothing open.
func (e Endpoints) Open() ([]net.Listener, error) {
	var listeners []net.Listener
	if e.Socket != "" {
		listener, err := listenUnix(e.Socket)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
	}
	if e.Listen != "" {
		listener, err := e.listenTLS()
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, listener)
	}
	if len(listeners) == 0 {
		return nil, errors.New("listen: neither a socket nor an address is given; give --socket")
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close()
	}
}

// listenUnix makes the socket. It replaces a socket that a dead monitor left behind, but
// not one that answers.
func listenUnix(path string) (net.Listener, error) {
	if connection, err := net.DialTimeout("unix", path, time.Second); err == nil {
		connection.Close()
		return nil, fmt.Errorf("listen on %s: another monitor answers there; stop it, or choose another --socket", path)
	}
	if about, err := os.Lstat(path); err == nil {
		if about.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("listen on %s: there is a file that is not a socket; remove it, or choose another --socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen on %s: replace the socket of an earlier monitor: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	listener, err := (&net.ListenConfig{Control: privateSocket}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; a socket's path may have at most 107 bytes", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return listener, nil
}

func (e Endpoints) listenTLS() (net.Listener, error) {
	if e.Certificate == "" || e.Key == "" || e.ClientCA == "" {
		return nil, fmt.Errorf("listen on %s: an address needs --certificate, --key and --client-ca; without them anybody could command the monitor", e.Listen)
	}
	certificate, err := pemfile.Pair(e.Certificate, e.Key)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: read certificate %s and key %s: %w", e.Listen, e.Certificate, e.Key, err)
	}
	authorities, err := pemfile.Authorities(e.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", e.Listen, err)
	}
	listener, err := net.Listen("tcp", e.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another --listen", e.Listen, err)
	}
	return tls.NewListener(netutil.LimitListener(listener, connectionsAtATime), &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authorities,
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2", "http/1.1"},
	}), nil
}

// closing is the key of a context that ends when the server begins to shut down,
// before the contexts of its requests do.
type closing struct{}

// UntilClosing returns ctx, ended by the server's shutdown. It is for requests that would
// otherwise never end. The server forgets the request when it is cancelled.
func UntilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancel(ctx)
	shutdown, ok := ctx.Value(closing{}).(context.Context)
	if !ok {
		return limited, cancel
	}
	forget := context.AfterFunc(shutdown, cancel)
	return limited, func() {
		forget()
		cancel()
	}
}

// newServer limits what clients can hold open. Answers may take as long as they need: some are
// streams.
func newServer(requests context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnState:         new(strangers).see,
	}
}

// Serve answers on the listeners until ctx ends. Then it lets running requests finish for
// a few seconds, and closes the listeners.
func Serve(ctx context.Context, listeners []net.Listener, handler http.Handler) error {
	shutdown, begin := context.WithCancel(context.Background())
	defer begin()
	requests, end := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), closing{}, shutdown))
	defer end()
	server := newServer(requests, handler)
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { failed <- server.Serve(listener) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	}
	begin()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(grace) != nil {
		end()
		server.Close()
	}
	return err
}
