// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// Once a change has been answered, nothing goes by what was before, however close to the
// change a login was: no document is read whose access was revoked at once, nobody logs in
// with a former key, and no connection gets a former region.
func TestChangesInTheInstantOfALogin(t *testing.T) {
	const changes = 10
	key := hex.EncodeToString(pipelinetest.Key("alice").Public().(ed25519.PublicKey))
	for name, of := range map[string]struct {
		fact    api.Fact
		prepare func(*stack) (try func() bool)
	}{
		"an access": {apiFact("friends/bob", "friend", "alice"), readingOfBob},
		"a key":     {apiFact("population", "key", "alice", key), loginOfAlice},
		"a region":  {apiFact("regions", "prefix", "127.0.1.0/24", "de"), connectionFromGermany},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "revocation: lazy",
				"revocation: immediate", 1)
			s.document("/corpus/friends/bob/1.txt")
			s.principal("alice", "de")
			s.principal("bob", "de")
			s.open()
			s.apply()
			s.changeFacts(api.FactChange{Add: []api.Fact{
				apiFact("friends/bob", "friend", "alice"), apiFact("regions", "prefix", "127.0.1.0/24", "de"),
			}})
			s.analyze()
			s.startWorkers()
			(&changeRace{stack: s, prepare: of.prepare}).run(of.fact, changes)
		})
	}
}

// readingOfBob reads bob's document as alice, as long as the session lives.
func readingOfBob(s *stack) func() bool {
	return readingAgain(s, "127.0.1.1", "/corpus/friends/bob/1.txt")
}

// readingAgain reads a document as alice, as long as the session lives.
func readingAgain(s *stack, from, document string) func() bool {
	u, err := s.connect(from)
	if err != nil {
		return nil
	}
	if answer, err := u.authenticate("alice", "alice"); err != nil || !strings.HasPrefix(answer, "bound ") {
		u.connection.Close()
		return nil
	}
	read := fmt.Sprintf("read %d", s.id(document))
	return func() bool {
		answer, err := u.say(read)
		goes := err == nil && strings.HasPrefix(answer, "text ")
		if !goes {
			u.connection.Close()
		}
		return goes
	}
}

func loginOfAlice(s *stack) func() bool {
	u, err := s.connect("127.0.1.1")
	if err != nil {
		return nil
	}
	return func() bool {
		defer u.connection.Close()
		answer, err := u.authenticate("alice", "alice")
		return err == nil && strings.HasPrefix(answer, "bound ")
	}
}

func connectionFromGermany(s *stack) func() bool {
	return func() bool {
		u, err := s.connect("127.0.1.1")
		if err != nil {
			return false
		}
		defer u.connection.Close()
		answer, err := u.authenticate("alice", "alice")
		return err == nil && answer == "bound worker(alice, de)"
	}
}

// changeRace lets users try what a fact permits while it is removed and added.
type changeRace struct {
	stack   *stack
	prepare func(*stack) (try func() bool)

	over          atomic.Bool
	changes       atomic.Int64 // begun and answered ones; the first removes the fact
	with, without atomic.Int64 // attempts that were permitted with the fact, and failed without it
	wrong         atomic.Int64 // those that were permitted without it
}

func (r *changeRace) run(fact api.Fact, changes int) {
	t := r.stack.t
	t.Helper()
	var users sync.WaitGroup
	defer users.Wait()
	defer r.over.Store(true)
	for range 2 {
		users.Go(func() {
			for !r.over.Load() {
				r.attempt()
			}
		})
	}
	for range changes {
		for _, one := range []struct {
			change api.FactChange
			tried  *atomic.Int64
		}{{api.FactChange{Remove: []api.Fact{fact}}, &r.without}, {api.FactChange{Add: []api.Fact{fact}}, &r.with}} {
			r.changes.Add(1)
			r.stack.changeFacts(one.change)
			before := one.tried.Load()
			r.changes.Add(1)
			waiting.Until(t, "a user has tried", func() bool { return one.tried.Load() > before || r.wrong.Load() > 0 })
		}
	}
	if wrong := r.wrong.Load(); wrong > 0 {
		t.Errorf("permitted by a fact whose removal had been answered: %d times", wrong)
	}
}

// attempt tries until it fails, or the race is over.
func (r *changeRace) attempt() {
	try := r.prepare(r.stack)
	for goes := try != nil; goes && !r.over.Load(); {
		before := r.changes.Load()
		goes = try()
		if r.changes.Load() != before || before%2 != 0 {
			continue // a change was in progress
		}
		switch isThere := before%4 == 0; {
		case goes && isThere:
			r.with.Add(1)
		case goes:
			r.wrong.Add(1)
		case !isThere:
			r.without.Add(1)
		}
	}
}
