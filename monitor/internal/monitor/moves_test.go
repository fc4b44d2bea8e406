// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
)

// TestAddressThatMoves moves the address of a session, and of a connection without a user,
// to a region whose policy forbids a document. Nobody logs in to the former region any
// more; a session ends only if revocation is immediate.
func TestAddressThatMoves(t *testing.T) {
	for name, move := range map[string]func(*stack){
		"facts change":       (*stack).moveByFacts,
		"a bundle comes":     (*stack).moveByBundle,
		"nothing of it does": (*stack).moveAnother,
	} {
		for _, revocation := range []string{"lazy", "immediate"} {
			t.Run(name+", "+revocation, func(t *testing.T) {
				s := newStack(t)
				s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "revocation: lazy",
					"revocation: "+revocation, 1)
				s.principal("alice", "de")
				s.fact("regions", "prefix", "127.0.1.0/24", "de")
				s.fact("blacklist/us", "blocked", "/corpus/public/1.txt")
				s.start()
				live := s.in("127.0.1.1", "worker(alice, de)")
				unbound, err := s.connect("127.0.1.1")
				s.must(err)
				unbound.must("session")
				move(s)
				moves := name != "nothing of it does"
				if reads := s.reads(live); reads == (moves && revocation == "immediate") {
					t.Errorf("the session of the former region reads on: %v", reads)
				}
				answer, err := unbound.authenticate("alice", "alice")
				if moves && err == nil {
					t.Errorf("the connection of the former region gets %q", answer)
				}
				if !moves && answer != "bound worker(alice, de)" {
					t.Errorf("the connection whose address has not moved gets %q, %v", answer, err)
				}
				live.connection.Close()
				unbound.connection.Close()
				if !moves {
					return
				}
				if s.reads(s.in("127.0.1.1", "worker(alice, us)")) {
					t.Error("the new region's session reads what is blocked there")
				}
			})
		}
	}
}

func (s *stack) moveByFacts() {
	result := s.changeFacts(api.FactChange{
		Remove: []api.Fact{apiFact("regions", "prefix", "127.0.1.0/24", "de")},
		Add:    []api.Fact{apiFact("regions", "prefix", "127.0.1.0/24", "us")},
	})
	want := strings.Count(s.manifests["pipeline.yaml"], "revocation: immediate") // the one with a user
	if result.SessionsReset != want {
		s.t.Errorf("%d sessions are reset, not %d", result.SessionsReset, want)
	}
}

func (s *stack) moveByBundle() {
	s.facts = slices.DeleteFunc(s.facts, func(fact string) bool { return strings.Contains(fact, "127.0.1.0/24") })
	s.fact("regions", "prefix", "127.0.1.0/24", "us")
	s.apply()
}

func (s *stack) moveAnother() {
	s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("regions", "prefix", "127.0.2.0/24", "us")}})
}

// in logs alice in.
func (s *stack) in(address, instance string) *user {
	s.t.Helper()
	u, err := s.connect(address)
	s.must(err)
	if answer, err := u.authenticate("alice", "alice"); err != nil || answer != "bound "+instance {
		s.t.Fatalf("alice logs in from %s: %q, %v", address, answer, err)
	}
	return u
}

// reads reports whether a session reads the public document.
func (s *stack) reads(u *user) bool {
	answer, err := u.say(fmt.Sprintf("read %d", s.id("/corpus/public/1.txt")))
	return err == nil && strings.HasPrefix(answer, "text ")
}
