// SPDX-License-Identifier: BSD-2-Clause

// Package allowlist decides which sources of facts and which key-value stores a monitor may
// connect to. The default is none. The owner of the monitor lists them, and manifests only
// choose among them: who may write manifests decides neither what the monitor's host
// reaches, nor whose sockets its user can open.
//
// Everything is compared by its parsed value, never as a text. What can be read in two ways
// (a host that is a number, an encoded slash, a segment "..") is refused. The operator has the
// same rules (operator/shai_operator/reconcile/sources.py); the tests of both read
// testdata/cases.json.
package allowlist

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// List is a list of allowed sources. The zero value allows nothing.
type List struct {
	origins []origin
	sockets []string
	store   string
}

const (
	socketScheme = "unix:"
	unlisted     = "it is not listed; who owns the monitor can list it with --allow-source, or in spec.allowedSources of " +
		"the JailPool"
)

// Parse reads a list. Its entries have the forms
//
//	https://HOST[:PORT][/PATH]
//	http://HOST[:PORT][/PATH]
//	unix:/PATH
//
// A path of an origin that ends in a slash allows all paths beneath it, another one only
// itself, and none all of them. An entry has no query and no variables.
func Parse(entries []string) (List, error) {
	var list List
	for _, entry := range entries {
		if strings.Contains(entry, "$(") {
			return List{}, fmt.Errorf("%q has a variable; write the source itself", entry)
		}
		if socket, isSocket := strings.CutPrefix(entry, socketScheme); isSocket {
			if err := checkSocket(socket); err != nil {
				return List{}, fmt.Errorf("%q is not an allowed source: %w", entry, err)
			}
			list.sockets = append(list.sockets, socket)
			continue
		}
		allowed, query, err := parseOrigin(entry)
		if err == nil && query {
			err = fmt.Errorf("it has a query, which is not compared")
		}
		if err != nil {
			return List{}, fmt.Errorf("%q is not an allowed source: %w; expected a form such as "+
				"https://facts.example.org/friends/ or unix:/run/redis/facts.sock", entry, err)
		}
		list.origins = append(list.origins, allowed)
	}
	return list, nil
}

// WithStore returns the list of a monitor whose own key-value store has this socket; empty: it
// has none. The own store needs no entry.
func (l List) WithStore(socket string) List {
	l.store = socket
	return l
}

// Origin returns what the monitor may connect to for a URL, or an error.
func (l List) Origin(text string) (Target, error) {
	wanted, _, err := parseOrigin(text)
	if err != nil {
		return Target{}, refused(text, err.Error())
	}
	if !slices.ContainsFunc(l.origins, func(allowed origin) bool { return allowed.covers(wanted) }) {
		return Target{}, refused(text, unlisted)
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.User != nil || parsed.Hostname() == "" {
		return Target{}, refused(text, "it is not a plain URL")
	}
	return Target{URL: parsed, host: wanted.host}, nil
}

// Socket returns an error unless the monitor may connect to a unix socket.
func (l List) Socket(socket string) error {
	if err := checkSocket(socket); err != nil {
		return refused(socketScheme+socket, err.Error())
	}
	if socket != l.store && !slices.Contains(l.sockets, socket) {
		return refused(socketScheme+socket, unlisted)
	}
	return nil
}

// Store returns an error unless a pipeline's key-value store may have this socket. At a store
// that confines tasks the monitor logs in with the password of its own store, so no other
// one can be that, listed or not. In mode baseline tasks connect as their own users.
func (l List) Store(socket string, confines bool) error {
	switch {
	case !confines:
		return l.Socket(socket)
	case l.IsStore(socket):
		return nil
	case l.store == "":
		return refused(socketScheme+socket, "the monitor has no store of its own, which alone can confine tasks; "+
			"start it with --secrets FILE and --define REDIS_SOCKET=PATH")
	}
	return refused(socketScheme+socket, "it is not the monitor's own store, $(REDIS_SOCKET), which alone can confine tasks; name that one")
}

// IsStore reports whether a socket is that of the monitor's own key-value store.
func (l List) IsStore(socket string) bool { return socket != "" && socket == l.store }

// checkSocket refuses paths that lead to the same socket as another text. Whether the path
// has symbolic links is the business of who lists it.
func checkSocket(socket string) error {
	switch {
	case !strings.HasPrefix(socket, "/") || path.Clean(socket) != socket || socket == "/":
		return fmt.Errorf("the path is not absolute, or has empty segments, . or ..")
	case strings.ContainsFunc(socket, isControl):
		return fmt.Errorf("the path has a control character")
	}
	return nil
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// Refused is the error about a source that the monitor may not connect to.
type Refused struct {
	Source string // as the manifest names it, with its variables replaced
	Why    string // and what to do
}

func (r *Refused) Error() string { return r.Source + " is not allowed: " + r.Why }

func refused(source, why string) error { return &Refused{Source: source, Why: why} }
