// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"io"
	"net"
	"strings"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// relay is another service, which passes everything between its clients and the stack's
// front end, the nonce among it.
func (s *stack) relay(from string) string {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.t.Cleanup(func() { listener.Close() })
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: waiting.Limit}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := dialer.Dial("tcp", s.address)
			if err != nil {
				client.Close()
				continue
			}
			go pass(client, server)
			go pass(server, client)
		}
	}()
	return listener.Addr().String()
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// A user logs in at a service that acts as the pipeline's front end towards her. It could
// log in as her at the real one if she did not sign whom she has dialled. The same relay may
// pass logins on if the manifest says that users dial it.
func TestLoginsAreNotRelayed(t *testing.T) {
	for name, named := range map[string]bool{"another service": false, "the service of the manifest": true} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			s.startKeyValue()
			s.principal("alice", "de")
			s.fact("regions", "prefix", "127.0.1.0/24", "de")
			relay := s.relay("127.0.1.1")
			if named {
				text, listen := s.manifests["pipeline.yaml"], "      listen: $(LISTEN)\n"
				s.manifests["pipeline.yaml"] = strings.Replace(text, listen, listen+"      service: "+relay+"\n", 1)
			}
			s.start()
			u, err := s.dial(relay, "127.0.1.1")
			s.must(err)
			answer, err := u.say("authenticate alice " + signatureFor(relay, "probe", "alice", "alice", u.nonce))
			s.must(err)
			if strings.HasPrefix(answer, "bound ") != named {
				t.Errorf("through the relay: %s", answer)
			}
			if !named {
				s.login("alice", "127.0.1.1")
			}
		})
	}
}
