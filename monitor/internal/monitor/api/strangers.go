// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Connections hold descriptors, which the monitor needs for the tasks' opens. So those that
// others can make are limited.
const (
	// connectionsAtATime limits those of clients with certificates.
	connectionsAtATime = 256
	// strangersAtATime limits those that have sent no request yet, which anybody can make.
	strangersAtATime = 64
	// requestTime is how long a client may take for its TLS handshake, and to send a request's header.
	requestTime = 5 * time.Second
	// idleTime is how long a connection is kept for the next request.
	idleTime = time.Minute
)

// strangers are the connections that have sent no request yet, oldest first. Of too many, the
// oldest is closed: others that are idle do not keep a client out, which needs milliseconds.
type strangers struct {
	mu          sync.Mutex
	connections []net.Conn
}

// see is for [http.Server.ConnState].
func (s *strangers) see(connection net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != http.StateNew {
		if at := slices.Index(s.connections, connection); at >= 0 {
			s.connections = slices.Delete(s.connections, at, at+1)
		}
		return
	}
	s.connections = append(s.connections, connection)
	if len(s.connections) > strangersAtATime {
		cutOff(s.connections[0])
		s.connections = slices.Delete(s.connections, 0, 1)
	}
}

// cutOff closes a connection without a TLS alert, for which it could have to wait. The server gets
// an error from it, and forgets it.
func cutOff(connection net.Conn) {
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn()
	}
	connection.Close()
}
