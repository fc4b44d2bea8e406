// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// A policy with a value that nobody supplies is refused before any decision uses it. Both
// attacks were possible: the length of every conduit was taken for 0, so that a file to
// "write while it is empty" could be appended to; facts have no offsets, so that a list
// of banned users that is read by offset was empty.
func TestPoliciesThatNobodySuppliesAreRefused(t *testing.T) {
	const (
		banned    = "    - {conduit: banned, says: user, tuples: [[task/collector]]}\n"
		anyPolicy = `read :- true. update :- true.`
	)
	for _, test := range []struct {
		name, update string
		refused      string // part of the error; "" for none
		allowed      bool   // the collector's write to a file that is not empty, where the policy is accepted
	}{
		{"while it is empty", `cCurrLenIs(0)`, "`cCurrLenIs` cannot be enforced in the update rule", false},
		{"whatever its length", `sKeyIs(\"task/collector\")`, "", true},
		{"unless banned, by offset", `sKeyIs(K), each in \"banned\"@_O says user(U) { neq(U, K) }`,
			"an offset (`@`) cannot be enforced in the update rule", false},
		{"unless banned", `sKeyIs(K), each in \"banned\" says user(U) { neq(U, K) }`, "", false},
		{"unless banned elsewhere", `sKeyIs(K), each in \"others\" says user(U) { neq(U, K) }`, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := bareMonitor(t)
			text := strings.Replace(pipelinetest.Bare, anyPolicy, "read :- true. update :- "+test.update+".", 1)
			err := applyText(m, strings.Replace(text, "    - {conduit: friends", banned+"    - {conduit: friends", 1))
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) ||
					!strings.Contains(err.Error(), "olicy open") {
					t.Errorf("apply says %v, want that policy open is refused: %s; the write is allowed: %v", err,
						test.refused, collectorWrites(t, m))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := collectorWrites(t, m); got != test.allowed {
				t.Errorf("allowed %v, want %v", got, test.allowed)
			}
		})
	}
}

// collectorWrites decides whether the collector may write /open/1.txt, which is not
// empty.
func collectorWrites(t *testing.T, m *Monitor) bool {
	t.Helper()
	return collectorOpens(t, m, "/open/1.txt", unix.O_WRONLY)
}

// Policies that name an address are decided with the connection's own.
func TestAddressesAreTheConnections(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"],
		"read       :- sKeyIs(user), sRegionIs(region).",
		`read       :- sKeyIs(user), sRegionIs(region), sIpIs(A), ipPrefix(A, "127.0.1.0/24").`, 1)
	s.start()
	answerOf := func(address string) string {
		u, err := s.connect(address)
		s.must(err)
		answer, err := u.authenticate("alice", "alice")
		s.must(err)
		return answer
	}
	if got := answerOf("127.0.1.1"); !strings.HasPrefix(got, "bound ") {
		t.Errorf("from an address of the prefix: %s", got)
	}
	if got := answerOf("127.0.2.1"); strings.HasPrefix(got, "bound ") {
		t.Errorf("from another address of the same region: %s", got)
	}
}

// The flows from a session's worker to other tasks are decided when the session is bound.
func TestSessionsAreDecidedOnTheirPipes(t *testing.T) {
	for name, test := range map[string]struct {
		update  string
		allowed bool
	}{
		"between tasks":           {"cIsInternal()", true},
		"by somebody else":        {`sKeyIs("bob")`, false},
		"from that address":       {`sIpIs("127.0.1.1")`, true},
		"from another address":    {`sIpIs("127.0.1.2")`, false},
		"into that slot":          {`cNameIs(N), concat(N, "probe/queries/", _)`, true},
		"into another's slots":    {`cNameIs(N), concat(N, "probe/answers/", _)`, false},
		"from that region":        {`sRegionIs("de")`, true},
		"from the server's place": {`sRegionIs("us")`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			s.principal("alice", "de")
			s.fact("regions", "prefix", "127.0.1.0/24", "de")
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "update     :- cIsInternal().",
				"update     :- "+test.update+".", 1)
			s.start()
			u, err := s.connect("127.0.1.1")
			s.must(err)
			answer, err := u.authenticate("alice", "alice")
			s.must(err)
			if strings.HasPrefix(answer, "bound ") != test.allowed || !test.allowed &&
				!strings.Contains(answer, "may not write queries") {
				t.Errorf("the session is answered: %s; want it to be bound: %v", answer, test.allowed)
			}
		})
	}
}
