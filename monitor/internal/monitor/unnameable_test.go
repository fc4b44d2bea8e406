// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

// unnameable is no part of a record, and so of no instance's name.
const unnameable = "a\x00b"

// withRoles has two users, of whom bob has a role.
func withRoles(t *testing.T) *player {
	p := &player{stack: newStack(t), users: map[string]*user{}}
	p.withParameter("role", roleOfFact)
	p.do("document /corpus/public/1.txt")
	p.do("principal alice home de")
	p.do("principal bob home de")
	p.do("region 127.0.1.0/24 is de")
	p.fact("employees", "role", "bob", "editor")
	return p
}

// expectOnlyAliceRefused checks that alice's login is refused for her value, and what bob does works.
func (p *player) expectOnlyAliceRefused() {
	p.t.Helper()
	p.do("s1: connect from 127.0.1.1")
	if answer := p.do("s1: authenticate alice"); !strings.Contains(answer, "parameter role has a value with a NUL") ||
		!strings.Contains(answer, `says role("alice", V); correct the fact`) {
		p.t.Errorf("alice gets %q", answer)
	}
	if answer := p.do("s2: read /corpus/public/1.txt"); !strings.Contains(answer, "text /corpus/public/1.txt") {
		p.t.Errorf("bob gets %q", answer)
	}
}

// A fact about one user that no instance can be named by is not the end of the service for the others: its user
// is refused a login.
func TestServiceStartsBesideAValueOfNoName(t *testing.T) {
	p := withRoles(t)
	p.fact("employees", "role", "alice", unnameable)
	p.do("start")
	p.do("s2: connect from 127.0.1.1")
	p.do("s2: authenticate bob")
	p.expectOnlyAliceRefused()
}

// The same when the fact comes while others have sessions: they go on. Alice's own session ends with her role.
func TestSessionsGoOnBesideAValueOfNoName(t *testing.T) {
	p := withRoles(t)
	p.fact("employees", "role", "alice", "editor")
	p.do("start")
	for _, command := range []string{"s1: connect from 127.0.1.1", "s1: authenticate alice",
		"s2: connect from 127.0.1.1", "s2: authenticate bob"} {
		p.do(command)
	}
	about := func(value string) []api.Fact {
		return []api.Fact{{Conduit: "employees", Says: "role",
			Tuple: policy.NewTuple(policy.String("alice"), policy.String(value))}}
	}
	change := api.FactChange{Add: about(unnameable), Remove: about("editor")}
	result, err := p.monitor.ChangeFacts(context.Background(), change)
	if err != nil || result.SessionsReset != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	p.expectOnlyAliceRefused()
	p.do("restart")
	p.do("s2: connect from 127.0.1.1")
	p.do("s2: authenticate bob")
	p.expectOnlyAliceRefused()
}

// A long value is no reason to refuse a login: names of instances are shortened in records.
func TestLongValuesAreShortenedInNames(t *testing.T) {
	p := withRoles(t)
	p.fact("employees", "role", "alice", strings.Repeat("é", 100))
	p.do("start")
	p.do("s1: connect from 127.0.1.1")
	if answer := p.do("s1: authenticate alice"); !strings.Contains(answer, "bound worker(alice, de, éé") {
		t.Errorf("alice gets %q", answer)
	}
	if answer := p.do("s1: read /corpus/public/1.txt"); !strings.Contains(answer, "text /corpus/public/1.txt") {
		t.Errorf("alice reads %q", answer)
	}
}
