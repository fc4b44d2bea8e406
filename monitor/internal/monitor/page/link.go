// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"golang.org/x/net/netutil"

	"shai.dev/monitor/internal/monitor/api"
)

// connectionsAtATime limits the connections to the page, which every user of the machine can make:
// the monitor needs its descriptors for the tasks' opens.
const connectionsAtATime = 128

// Listen listens on an address of the loopback network, and on no other: there is no TLS.
func Listen(address string) (net.Listener, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %s: expected an address such as 127.0.0.1:8650", address)
	}
	if !parsed.Addr().IsLoopback() {
		return nil, fmt.Errorf("serve the page at %s: other machines could reach it, and it has no TLS; "+
			"use an address such as 127.0.0.1:8650, and forward the port with ssh -L", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %s: %w; choose another port", address, err)
	}
	return netutil.LimitListener(listener, connectionsAtATime), nil
}

// Link returns the address of the page with a ticket, and with a question that it answers at
// once. Both are in the fragment, which browsers send to no server.
func Link(at net.Addr, ticket string, question api.Question) string {
	values := url.Values{"ticket": {ticket}}
	for name, value := range map[string]string{
		"pipeline": question.Pipeline, "principal": question.Principal, "region": question.Region,
		"conduit": question.Conduit, "access": question.Access, "task": question.Task,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "http://" + at.String() + "/#" + values.Encode()
}
