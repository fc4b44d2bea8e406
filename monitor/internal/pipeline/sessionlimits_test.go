// SPDX-License-Identifier: BSD-2-Clause

//go:build linux || freebsd

package pipeline

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/waiting"
)

// A user with as many connections as there are workers must not lock all others out.
func TestSessionsPerUser(t *testing.T) {
	s := probe(t, SessionLimits{PerUser: 1})
	first := s.wireSession(t)
	if bound := first.authenticate("alice"); bound.Status != 0 {
		t.Fatalf("alice is refused: %s", bound.Reason)
	}
	second := s.wireSession(t)
	if bound := second.authenticate("alice"); bound.Status == 0 || !strings.Contains(bound.Reason, "alice has 1 sessions already") {
		t.Errorf("alice's second session: %+v", bound)
	}
	if second.bound() != nil {
		t.Error("the session has its capabilities all the same")
	}
	if bound := second.authenticate("bob"); bound.Status != 0 {
		t.Errorf("bob is refused: %s", bound.Reason)
	}
	first.socket.Close()
	<-first.session.ended
	if bound := s.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Errorf("alice is refused although her session has ended: %s", bound.Reason)
	}
}

// An address whose connections only wait must not keep all workers: those beyond its share
// end after hurry, and more are closed at once. Other addresses, and connections with a user,
// do not count.
func TestConnectionsPerAddress(t *testing.T) {
	s := probe(t, SessionLimits{PerPeer: 1, Login: time.Hour})
	sessions, peer, other := s.sessions, netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("127.0.1.2")
	first, second := s.wireSession(t), s.wireSession(t)
	left := second
	select {
	case <-first.gone:
	case <-second.gone:
		left = first
	}
	waiting.Until(t, "the address is crowded", func() bool { return sessions.crowded(peer, 1) })
	if sessions.crowded(other, 1) {
		t.Error("another address is crowded, too")
	}
	if bound := left.authenticate("alice"); bound.Status != 0 {
		t.Fatalf("the session that is left: %s", bound.Reason)
	}
	if sessions.crowded(peer, 1) {
		t.Error("a session with a user counts as one that waits")
	}
	if !s.recorded("only 1 connections from one address") {
		t.Error("no record says why")
	}
}

func TestNetworksOfPeers(t *testing.T) {
	for peer, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "2001:db8::1": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := networkOf(netip.MustParseAddr(peer)).String(); got != want {
			t.Errorf("%s is of %s, want %s", peer, got, want)
		}
	}
}

// A session ends when its time is over, with and without a user.
func TestSessionsEndInTime(t *testing.T) {
	for name, limits := range map[string]SessionLimits{
		"nobody authenticated within 1 ms": {Login: time.Millisecond},
		"a session lasts at most 1 s":      {Lifetime: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := probe(t, limits)
			b := s.wireSession(t)
			<-b.gone
			b.socket.Close()
			<-b.session.ended
			if !s.recorded(name) {
				t.Errorf("no record says %q", name)
			}
		})
	}
}

func TestDefaultSessionLimits(t *testing.T) {
	for workers, user := range map[int]int{1: 1, 2: 1, 3: 2, 8: 4} {
		want := SessionLimits{PerUser: user, PerPeer: user, Waiting: DefaultWaiting, PerWorker: DefaultPerWorker,
			Login: DefaultLoginTime, Lifetime: DefaultLifetime}
		if got := (SessionLimits{}).orDefault(workers); got != want {
			t.Errorf("%d workers: %+v, want %+v", workers, got, want)
		}
	}
	want := SessionLimits{PerUser: 3, PerPeer: 4, Waiting: 5, PerWorker: 6, Login: time.Second, Lifetime: time.Hour}
	if got := want.orDefault(1); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
