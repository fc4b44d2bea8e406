// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// signature is a principal's claim to a connection to the stack's pipeline, which has this
// nonce, signed with somebody's key; both are in hexadecimal.
func (s *stack) signature(principal, signer, nonce string) string {
	return signatureFor(s.address, s.served, principal, signer, nonce)
}

// signatureFor is a claim to a connection to the service that its client has dialled, of the
// pipeline that the client means.
func signatureFor(service, pipeline, principal, signer, nonce string) string {
	text := "shai-session-v2\n" + service + "\n" + pipeline + "\n" + principal + "\n" + nonce
	return hex.EncodeToString(ed25519.Sign(pipelinetest.Key(signer), []byte(text)))
}

// user is one client of the front end.
type user struct {
	stack      *stack
	connection *net.TCPConn
	answers    *lineReader
	nonce      string
	process    int // that serves the user, as a transcript's session knows it
	slot       int
}

// connect connects from an address of the loopback network.
func (s *stack) connect(from string) (*user, error) { return s.dial(s.address, from) }

// dial connects to an address that leads to the front end.
func (s *stack) dial(address, from string) (*user, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: waiting.Limit}
	connection, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	u := &user{stack: s, connection: connection.(*net.TCPConn), answers: &lineReader{from: connection}}
	s.t.Cleanup(func() { connection.Close() })
	answer, err := u.say("nonce")
	u.nonce = strings.TrimPrefix(answer, "nonce ")
	return u, err
}

// firstQuery is the number of the session's first query: see shai_first_query in shai_wire.h.
func (u *user) firstQuery() uint32 {
	nonce, err := hex.DecodeString(u.nonce)
	u.stack.must(err)
	return binary.LittleEndian.Uint32(nonce) & 0x3fffffff
}

// say sends one command and returns its answer; io.EOF when the session has ended.
func (u *user) say(command string) (string, error) {
	_ = u.connection.SetDeadline(time.Now().Add(waiting.Limit))
	if _, err := fmt.Fprintln(u.connection, command); err != nil {
		return "", io.EOF
	}
	return u.answers.line()
}

// must says something in a session that is expected to live.
func (u *user) must(command string) string {
	u.stack.t.Helper()
	answer, err := u.say(command)
	if err != nil {
		u.stack.t.Fatalf("%s: %v", command, err)
	}
	return answer
}

// authenticate signs this connection's nonce as a principal with somebody's key.
func (u *user) authenticate(principal, signer string) (string, error) {
	return u.say("authenticate " + principal + " " + u.stack.signature(principal, signer, u.nonce))
}

// login connects and authenticates, which is expected to succeed.
func (s *stack) login(principal, from string) *user {
	s.t.Helper()
	u, err := s.connect(from)
	s.must(err)
	answer, err := u.authenticate(principal, principal)
	s.must(err)
	if !strings.HasPrefix(answer, "bound ") {
		s.t.Fatalf("%s from %s: %s", principal, from, answer)
	}
	return u
}

// lineReader reads one line at a time and nothing beyond.
type lineReader struct {
	from   net.Conn
	buffer []byte
}

func (r *lineReader) line() (string, error) {
	for {
		if text, rest, found := strings.Cut(string(r.buffer), "\n"); found {
			r.buffer = []byte(rest)
			return text, nil
		}
		var part [1024]byte
		n, err := r.from.Read(part[:])
		r.buffer = append(r.buffer, part[:n]...)
		if n > 0 {
			continue
		}
		var failure net.Error
		if errors.As(err, &failure) && failure.Timeout() {
			return "", fmt.Errorf("no answer within %v", waiting.Limit)
		}
		return "", io.EOF // a reset connection has ended, too
	}
}
