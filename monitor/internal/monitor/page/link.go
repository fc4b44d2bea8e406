// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/netutil"

	"shai.dev/monitor/internal/monitor/api"
)

// Site is where the page is served on this machine.
//
// Its host is a random name that ends with .localhost, which browsers look for on the loopback
// network themselves. A port has other owners before and after: what a browser keeps for
// 127.0.0.1 and a port, such as a service worker, can be another user's. For a name that nobody
// could know, it keeps nothing.
type Site struct {
	Host      string // with the port
	Listeners []net.Listener
}

// connectionsAtATime limits the connections to each address of the page, which every user of the
// machine can make: the monitor needs its descriptors for the tasks' opens.
const connectionsAtATime = 128

// attempts is how often Listen looks for a port that is free on both addresses.
const attempts = 16

// Listen listens on the loopback network, and on no other: there is no TLS. A browser may try
// 127.0.0.1 or ::1 first, so nobody else may have the other one.
func Listen(address string) (*Site, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %s: expected an address such as 127.0.0.1:8650", address)
	}
	if !parsed.Addr().IsLoopback() {
		return nil, fmt.Errorf("serve the page at %s: other machines could reach it, and it has no TLS; "+
			"use an address such as 127.0.0.1:8650, and forward the port with ssh -L", address)
	}
	if parsed.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return nil, fmt.Errorf("serve the page at %s: browsers look for its name at 127.0.0.1 and ::1 only; "+
			"use 127.0.0.1:%d, which serves both", address, parsed.Port())
	}
	for range attempts {
		var listeners []net.Listener
		if listeners, err = listenBoth(int(parsed.Port())); err == nil {
			port := listeners[0].Addr().(*net.TCPAddr).Port
			return &Site{at(strings.ToLower(rand.Text())+".localhost", port), listeners}, nil
		}
		if parsed.Port() != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("serve the page at %s: %w; choose another port", address, err)
}

// listenBoth listens on the addresses of the loopback network that browsers try. A machine
// without IPv6 has one.
func listenBoth(port int) ([]net.Listener, error) {
	first, err := listen("tcp4", "127.0.0.1", port)
	if err != nil {
		return nil, err
	}
	second, err := listen("tcp6", "::1", first.Addr().(*net.TCPAddr).Port)
	switch {
	case err == nil:
		return []net.Listener{first, second}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{first}, nil
	}
	return nil, errors.Join(err, first.Close())
}

func listen(network, host string, port int) (net.Listener, error) {
	listener, err := net.Listen(network, at(host, port))
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(listener, connectionsAtATime), nil
}

func at(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Close ends a site that was not served.
func (s *Site) Close() error {
	var failures []error
	for _, one := range s.Listeners {
		failures = append(failures, one.Close())
	}
	return errors.Join(failures...)
}

// Link returns the address of the page with a ticket, and with a question that it answers at
// once. Both are in the fragment, which browsers send to no server.
func (s *Site) Link(ticket string, question api.Question) string {
	values := url.Values{"ticket": {ticket}}
	for name, value := range map[string]string{
		"pipeline": question.Pipeline, "principal": question.Principal, "region": question.Region,
		"conduit": question.Conduit, "access": question.Access, "task": question.Task,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "http://" + s.Host + "/#" + values.Encode()
}
