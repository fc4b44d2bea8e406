// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"net"
	"net/http"
)

const (
	ConnectionsAtATime = connectionsAtATime
	StrangersAtATime   = strangersAtATime
)

// NewUnhurriedServer returns the server that Serve uses, which lets clients take any time.
func NewUnhurriedServer(handler http.Handler) *http.Server {
	server := newServer(context.Background(), handler)
	server.ReadHeaderTimeout, server.IdleTimeout = 0, 0
	return server
}

// NewStrangers returns what is told of connections' states, as the server's.
func NewStrangers() func(net.Conn, http.ConnState) { return new(strangers).see }

// Patterns returns the patterns of the table of requests.
func (h *Handler) Patterns() []string {
	patterns := []string{"GET /metrics"}
	for pattern := range h.requests() {
		patterns = append(patterns, pattern)
	}
	return patterns
}
