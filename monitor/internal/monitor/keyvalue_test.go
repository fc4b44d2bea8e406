// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// expectUsers compares the key-value store's users with those of the pipeline's instances. A
// user may read the profile of its instance's principal, by which it is known.
func (s *stack) expectUsers(what string, principals ...string) {
	s.t.Helper()
	secrets, err := kvfilter.ReadSecrets(s.options.Secrets)
	s.must(err)
	connection, err := redis.Dial("unix", s.options.Define["REDIS_SOCKET"])
	s.must(err)
	defer connection.Close()
	_, err = connection.Do(secrets.AuthCommand, secrets.Administrator, secrets.Password)
	s.must(err)
	rules, err := redis.Strings(connection.Do("ACL", "LIST"))
	s.must(err)
	var found []string
	for _, rule := range rules {
		name := strings.Fields(rule)[1]
		if name == "default" || name == secrets.Administrator {
			continue
		}
		profile := regexp.MustCompile(`~profile:(\w+)`).FindStringSubmatch(rule)
		if profile == nil {
			s.t.Fatalf("%s: the store has a user that may read no profile: %s", what, rule)
		}
		found = append(found, profile[1])
	}
	slices.Sort(found)
	slices.Sort(principals)
	if !slices.Equal(found, principals) {
		s.t.Errorf("%s: the store has users for %q, want %q", what, found, principals)
	}
}

// A key-value user lasts as long as an instance has a capability set or a session.
func TestKeyValueUsersEndWithTheirInstances(t *testing.T) {
	s := newStack(t)
	s.options.NoLearning = true // carol's instance is not expected, until an analysis is run
	s.startKeyValue()
	for _, name := range []string{"alice", "bob", "carol"} {
		s.principal(name, "")
	}
	s.fact("population", "home", "alice", "de")
	s.fact("population", "home", "bob", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	s.expectUsers("analysed", "alice", "bob")

	carol := s.login("carol", "127.0.1.1")
	s.changeFacts(api.FactChange{Remove: []api.Fact{apiFact("population", "home", "bob", "de")}})
	s.expectUsers("bob has left", "alice", "carol")
	if answer := carol.must("get profile:carol"); answer != "reply $-1" {
		t.Errorf("carol, whose set was dropped while her session lasts: %s", answer)
	}
	_, _ = carol.say("quit")
	waiting.Until(t, "carol's session is over", func() bool { return len(s.liveSessions()) == 0 })
	s.must(s.monitor.expire(t.Context(), time.Now()))
	s.expectUsers("carol has gone", "alice")
	s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("population", "home", "bob", "de")}})
	s.expectUsers("bob is back", "alice", "bob")

	s.facts = slices.DeleteFunc(s.facts, func(fact string) bool { return strings.Contains(fact, `["bob","de"]`) })
	s.apply()
	s.expectUsers("applied without bob", "alice")
	s.analyze() // carol was seen, and is expected from now on
	s.expectUsers("analysed again", "alice", "carol")
	alice := s.login("alice", "127.0.1.1")
	_, err := s.monitor.Analyze(t.Context(), api.AnalyzeRequest{Scope: api.ScopeActive, Full: true},
		func(api.Progress) {})
	s.must(err)
	s.expectUsers("analysed for alice alone", "alice")
	if answer := alice.must("get profile:alice"); answer != "reply $-1" {
		t.Errorf("alice: %s", answer)
	}
	s.must(s.monitor.Close())
	s.expectUsers("closed")
	s.monitor = nil
}

// A new bundle's users replace those of the one before; after a roll-back they are back.
func TestKeyValueUsersOfANewBundle(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	manifest := s.manifests["pipeline.yaml"]
	s.manifests["pipeline.yaml"] = strings.Replace(manifest, "revocation: lazy", "revocation: immediate", 1)
	s.apply()
	s.expectUsers("another bundle", "alice")
	s.manifests["pipeline.yaml"] = strings.Replace(manifest, "[$(PROBE)/probe_worker]", "[$(PROBE)/missing]", 1)
	if _, err := s.monitor.Apply(t.Context(), s.sources()); err == nil {
		t.Error("a bundle without its program is in force")
	}
	s.expectUsers("a bundle was rolled back", "alice")
	s.awaitIdle()
	if answer := s.login("alice", "127.0.1.1").must("get profile:alice"); answer != "reply $-1" {
		t.Errorf("alice: %s", answer)
	}
}

// TestTuplesThatComeDuringASession: a session in a dynamic mode that may write another tuple, since
// the facts have changed, reads nothing from then on that the tuple does not keep.
func TestTuplesThatComeDuringASession(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	s.manifests["pipeline.yaml"] = strings.NewReplacer("mode: shai", "mode: dynamic",
		"policy history(owner, region) {\n      read       :- sKeyIs(owner), sRegionIs(region).\n      update     :- sKeyIs(owner).",
		"policy history(owner, region) {\n      read       :- sKeyIs(owner), sRegionIs(region).\n"+
			"      update     :- sKeyIs(owner), \"histories\" says of(owner).",
	).Replace(s.manifests["pipeline.yaml"])
	s.document("/corpus/private/bob/1.txt")
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	alice := s.login("alice", "127.0.1.1")
	if answer := alice.must("push history:alice/de before"); !strings.HasPrefix(answer, "reply -NOPERM") {
		t.Fatalf("alice writes her history before she may: %s", answer)
	}
	s.changeFacts(api.FactChange{Add: []api.Fact{apiFact("histories", "of", "alice")}})
	if answer := alice.must("push history:alice/de after"); answer != "reply :1" {
		t.Fatalf("alice does not write her history: %s", answer)
	}
	s.records()
	answer, err := alice.say(fmt.Sprintf("read %d", s.id("/corpus/private/bob/1.txt")))
	if err != nil || !strings.HasPrefix(answer, "error EACCES") ||
		len(s.recordsThat("it could be written to history:alice/de")) == 0 {
		t.Errorf("it reads what it could write to her history: %q, %v", answer, err)
	}
}

// What a session that was not foreseen got while the set of its instance was made, which has no tuples, it loses
// when that comes into force.
func TestTuplesThatASessionGetsMeanwhileAreTaken(t *testing.T) {
	s := newStack(t)
	s.options.NoLearning = true // carol's instance is not expected
	s.startKeyValue()
	s.principal("alice", "de")
	s.principal("carol", "")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	m := s.monitor
	p, instance := m.pipelines["probe"], analysis.Instance{Task: "worker", Arguments: []string{"carol", "de"}}
	nothing := &analysis.Capabilities{Instance: instance}
	made := p.Prepare(m.state(), []analysis.Affected{{Instance: instance, After: nothing}})
	carol := s.login("carol", "127.0.1.1")
	if answer := carol.must("get profile:carol"); answer != "reply $-1" {
		t.Fatalf("carol does not read her profile: %s", answer)
	}
	m.services.Binding.Lock()
	_, err := p.Replace(made)
	m.services.Binding.Unlock()
	s.must(err)
	if answer := carol.must("get profile:carol"); !strings.HasPrefix(answer, "reply -NOPERM") {
		t.Errorf("carol reads a profile that her instance may not read: %s", answer)
	}
}

// TestTuplesAreTakenAtOnce: with lazy revocation, too, a session neither reads nor writes a tuple that its user
// has lost, whether others are left to it or none; its connection stays, and what comes back is there again.
func TestTuplesAreTakenAtOnce(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	s.manifests["pipeline.yaml"] = strings.NewReplacer(
		"      update     :- sKeyIs(owner).", `      update     :- sKeyIs(owner), "histories" says writer(owner).`,
		`{path: "profile:{user}", policy: {name: private, `, `{path: "profile:{user}", policy: {name: profile, `,
	).Replace(s.manifests["pipeline.yaml"]) + `
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: profile}
spec:
  text: |
    policy profile(owner) {
      read       :- sKeyIs(owner), "profiles" says reader(owner).
      declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
    }
`
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.fact("histories", "writer", "alice")
	s.fact("profiles", "reader", "alice")
	s.start()
	alice := s.login("alice", "127.0.1.1")
	reader, writer := apiFact("profiles", "reader", "alice"), apiFact("histories", "writer", "alice")
	for _, step := range []struct {
		change      api.FactChange
		read, write bool
	}{
		{api.FactChange{}, true, true},
		{api.FactChange{Remove: []api.Fact{writer}}, true, false},
		{api.FactChange{Remove: []api.Fact{reader}}, false, false},
		{api.FactChange{Add: []api.Fact{reader, writer}}, true, true},
		{api.FactChange{Remove: []api.Fact{reader, writer}}, false, false},
	} {
		if len(step.change.Add)+len(step.change.Remove) > 0 {
			s.changeFacts(step.change)
		}
		for command, may := range map[string]bool{
			"get profile:alice": step.read, "push history:alice/de one": step.write,
		} {
			refused := func() bool { return strings.HasPrefix(alice.must(command), "reply -NOPERM") }
			if may { // what a change gives may come later
				waiting.Until(t, command+" is permitted", func() bool { return !refused() })
			} else if !refused() {
				t.Errorf("after %+v, %s is permitted", step.change, command)
			}
		}
	}
}
