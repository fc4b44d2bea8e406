// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
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
// oldest of the network that has most is closed: others that are idle do not keep a client out, which
// needs milliseconds, and one that connects without end keeps only its own network out.
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
		at := s.first()
		cutOff(s.connections[at])
		s.connections = slices.Delete(s.connections, at, at+1)
	}
}

// first returns which one gives way.
func (s *strangers) first() (at int) {
	numbers := map[netip.Prefix]int{}
	for _, connection := range s.connections {
		numbers[networkOf(connection.RemoteAddr())]++
	}
	most := 0
	for i, connection := range s.connections {
		if number := numbers[networkOf(connection.RemoteAddr())]; number > most {
			at, most = i, number
		}
	}
	return at
}

// networkOf returns an address, or of IPv6 its network of 64 bits, all of which one client may have. Sockets
// without an address are one network.
func networkOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	host := tcp.AddrPort().Addr().Unmap().WithZone("")
	return netip.PrefixFrom(host, min(host.BitLen(), 64)).Masked()
}

// cutOff closes a connection without a TLS alert, for which it could have to wait. The server gets
// an error from it, and forgets it.
func cutOff(connection net.Conn) {
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn()
	}
	connection.Close()
}
