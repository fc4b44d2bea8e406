// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// Choices by the way they really take: a task in its sandbox, its supervisor, the monitor.

const (
	ofFriends   = "/corpus/friends/bob/1.txt"
	bobsPrivate = `private(owner: "bob")`
	bobsFriends = `friends(owner: "bob")`
	nobodys     = `index()` // which lets no user read
)

// startChoosing starts a stack in which bob, whose friend is alice, may choose for a document.
func startChoosing(t *testing.T, revocation string) *stack {
	t.Helper()
	s := newIngestingStack(t)
	s.options.NoIngest = true
	s.withChoices()
	last := `            - {by: "{owner}", policy: {name: friends, arguments: {owner: "{owner}"}}}` + "\n"
	s.manifests["pipeline.yaml"] = strings.NewReplacer(last, last+`            - {by: "{owner}", policy: {name: index}}`+"\n",
		"revocation: lazy", "revocation: "+revocation).Replace(s.manifests["pipeline.yaml"])
	s.principal("carol", "de")
	s.document(ofFriends)
	s.startIngesting()
	return s
}

// offered returns what the task tells of a document's choices: its path, its nonce, the policy in
// force, and those that the user may choose.
func (u *user) offered(name string) (conduit, nonce string, policies []string) {
	u.stack.t.Helper()
	answer := u.must(fmt.Sprintf("choices %d", u.stack.id(name)))
	policies = strings.Split(answer, " | ")
	if n, err := fmt.Sscanf(policies[0], "offered %s %s", &conduit, &nonce); n != 2 {
		u.stack.t.Fatalf("%s: %v", answer, err)
	}
	return conduit, nonce, policies[1:]
}

// choice is the command that passes bob's choice for his document on, as the user's client signs it
// by what the task tells, with somebody's key.
func (u *user) choice(policy, signer string) string {
	u.stack.t.Helper()
	conduit, nonce, _ := u.offered(ofFriends)
	text := api.SignedChoice(u.stack.served,
		api.ChoiceRequest{Conduit: conduit, Principal: "bob", Policy: policy, Nonce: nonce})
	signature := ed25519.Sign(pipelinetest.Key(signer), text)
	return fmt.Sprintf("choose %d %s %s", u.stack.id(ofFriends), hex.EncodeToString(signature), policy)
}

// A worker in its sandbox lists and passes on what its user chooses, once. With another's signature
// nothing is chosen, and whoever may choose nothing learns nothing.
func TestWorkersChoose(t *testing.T) {
	s := startChoosing(t, "lazy")
	bob, alice := s.login("bob", "127.0.1.2"), s.login("alice", "127.0.1.1")
	conduit, nonce, policies := bob.offered(ofFriends)
	if diff := cmp.Diff([]string{bobsFriends, bobsPrivate, bobsFriends, nobodys}, policies); diff != "" ||
		conduit != ofFriends || len(nonce) != 64 {
		t.Fatalf("%s %s: %s", conduit, nonce, diff)
	}
	const nothing = "error EACCES choices for document %d: its policy is not for this user to choose"
	s.expect("a friend", alice.must(fmt.Sprintf("choices %d", s.id(ofFriends))), fmt.Sprintf(nothing, s.id(ofFriends)))
	s.expect("a number of nothing", alice.must("choices 99999"), fmt.Sprintf(nothing, 99999))
	s.expect("before", alice.reading(ofFriends), "text "+ofFriends+", asked 0")
	s.records()

	good, forged := bob.choice(bobsPrivate, "bob"), bob.choice(bobsPrivate, "alice")
	made := false
	for _, test := range []struct {
		name    string
		by      *user
		command string
		want    string
	}{
		{"another's signature", bob, forged, "the signature is not of principal"},
		{"another policy than was signed", bob, strings.Replace(good, bobsPrivate, nobodys, 1),
			"the signature is not of principal"},
		{"in another's session", alice, good, "this user has nothing to choose for this document"},
		{"good", bob, good, ""},
		{"once more", bob, good, "the signature is not of principal"},
	} {
		answer := test.by.must(test.command)
		if test.want == "" {
			made = true
			s.expect(test.name, answer, "chosen")
		} else if !strings.HasPrefix(answer, "error EACCES ") || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %s; want %s", test.name, answer, test.want)
		}
		if _, _, now := bob.offered(ofFriends); (now[0] == bobsPrivate) != made {
			t.Errorf("%s: then %s is in force", test.name, now[0])
		}
		recorded := recordsOf(t, s.monitor, "choose")
		if last := recorded[len(recorded)-1]; (last.Kind == audit.Document) != (test.want == "") {
			t.Errorf("%s is recorded as %+v", test.name, last.Event)
		}
	}
	s.expect("afterwards", alice.reading(ofFriends), "error EACCES withheld 1, asked 1")
	s.expect("the owner", strings.Split(bob.reading(ofFriends), ",")[0], "text "+ofFriends)
	s.expect("given back", bob.must(bob.choice(bobsFriends, "bob")), "chosen")
	before := s.interceptions()["choose"]
	bob.offered(ofFriends)
	if asked := s.interceptions()["choose"] - before; asked != 1 {
		t.Errorf("a question counts as %d", asked)
	}
	s.expect("a friend again", strings.Split(alice.reading(ofFriends), ",")[0], "text "+ofFriends)
}

// With immediate revocation, a choice by which its own session loses the document ends it, and no
// answer arrives. With lazy, the session goes on without the document.
func TestAWorkersChoiceThatEndsItsOwnSession(t *testing.T) {
	for revocation, ends := range map[string]bool{"lazy": false, "immediate": true} {
		t.Run(revocation, func(t *testing.T) {
			s := startChoosing(t, revocation)
			bob, alice := s.login("bob", "127.0.1.2"), s.login("alice", "127.0.1.1")
			carol := s.login("carol", "127.0.1.3")
			s.expect("before", bob.reading(ofFriends), "text "+ofFriends+", asked 0")
			answer, err := bob.say(bob.choice(nobodys, "bob"))
			if (err != nil) != ends || !ends && answer != "chosen" {
				t.Errorf("the choice is answered %q, %v", answer, err)
			}
			item, err := s.monitor.ItemPolicy(t.Context(), ofFriends)
			s.must(err)
			s.expect("in force", item.Policy+" by "+item.ChosenBy, nobodys+" by bob")
			if ends { // bob's client may know of the end of his session before alice's has ended
				waiting.Until(t, "the sessions are over", func() bool { return len(s.liveSessions()) == 1 })
			}
			if _, err := alice.say("mode"); (err != nil) != ends {
				t.Errorf("the session of a friend, who loses the document, too: %v", err)
			}
			carol.must("mode")
			if !ends {
				s.expect("goes on", bob.reading(ofFriends), "error EACCES withheld 1, asked 1")
				return
			}
			s.awaitIdle()
			again := s.login("bob", "127.0.1.2")
			s.expect("in a new session", strings.Split(again.reading(ofFriends), ",")[0], "error EACCES withheld 1")
			if answer := again.must(fmt.Sprintf("choices %d", s.id(ofFriends))); !strings.HasPrefix(answer, "error EACCES ") {
				t.Errorf("a new session is offered %s", answer)
			}
		})
	}
}
