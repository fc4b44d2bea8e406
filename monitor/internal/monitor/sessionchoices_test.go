// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

const (
	diary       = "/diary/alice/1.txt"
	secondDiary = "/diary/alice/2.txt"
	paper       = "/papers/1.txt"
	asDiary     = `diary(owner: "alice")`
	asSecret    = `secret(owner: "alice")`
	asDropbox   = `dropbox()` // which only an administrator reads

	noSignature = "the signature is not of principal"
)

// choosingManifest is pipelinetest.Bare with keys, and choices for diaries.
func choosingManifest(revocation string) string {
	var keys []string
	for _, name := range []string{"alice", "bob"} {
		public := pipelinetest.Key(name).Public().(ed25519.PublicKey)
		keys = append(keys, fmt.Sprintf("[%s, %q]", name, hex.EncodeToString(public)))
	}
	return strings.NewReplacer(
		"    - {conduit: population, says: home,", "    - {conduit: population, says: key, tuples: ["+strings.Join(keys, ", ")+
			"]}\n    - {conduit: population, says: home,",
		"revocation: lazy", "revocation: "+revocation,
		`        - {path: "/diary/{owner}/**", policy: {name: diary, arguments: {owner: "{owner}"}}}
`, `        - path: "/diary/{owner}/**"
          policy: {name: diary, arguments: {owner: "{owner}"}}
          choices:
            - {by: "{owner}", policy: {name: diary, arguments: {owner: "{owner}"}}}
            - {by: "{owner}", policy: {name: secret, arguments: {owner: "{owner}"}}}
            - {by: "{owner}", policy: {name: dropbox}}
`).Replace(pipelinetest.Bare) + `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: secret}
spec: {text: "policy secret(owner) { read :- sKeyIs(owner). }"}
`
}

// papers is another pipeline, whose document everybody reads and alice chooses for.
const papers = `---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: clerk}
spec: {command: [/bin/true], runtimeName: system, run: Once, taint: {name: open}, reads: [papers]}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: neighbour}
spec:
  mode: shai
  revocation: lazy
  tasks: [clerk]
  conduits:
    - name: papers
      kind: file
      ingress: true
      paths:
        - {path: "/papers/**", policy: {name: open}, choices: [{by: alice, policy: {name: open}}]}
`

// choosingSession is a session, with its monitor.
type choosingSession struct {
	*typedSession
	m *Monitor
}

func sessionsThatChoose(t *testing.T, mode wire.Mode, revocation string, names ...string) []choosingSession {
	t.Helper()
	return sessionsOf(t, mode, choosingManifest(revocation), names...)
}

// sessionsOf are sessions of pipeline "bare" of a manifest. Every denial is recorded by itself.
func sessionsOf(t *testing.T, mode wire.Mode, manifest string, names ...string) (sessions []choosingSession) {
	t.Helper()
	options := bareOptions(t)
	for _, name := range []string{secondDiary, paper} {
		file := filepath.Join(options.Data, name)
		made := os.MkdirAll(filepath.Dir(file), 0o755)
		if err := errors.Join(made, os.WriteFile(file, []byte("text"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := m.audit.Close(); err != nil {
		t.Fatal(err)
	}
	m.audit, err = audit.Open(audit.Options{Directory: filepath.Join(options.State, "audit"), RefuseUnrecorded: true,
		RepeatWindow: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.services.Audit = m.audit
	applyBare(t, m, manifest)
	if _, err := m.Analyze(t.Context(), api.AnalyzeRequest{Pipeline: "bare"}, func(api.Progress) {}); err != nil {
		t.Fatal(err)
	}
	for _, one := range typedSessions(t, m, mode, names...) {
		sessions = append(sessions, choosingSession{one, m})
	}
	return sessions
}

func (s choosingSession) id(name string) uint32 {
	s.t.Helper()
	id, found := s.m.state().ID(name)
	if !found {
		s.t.Fatalf("no conduit is called %s", name)
	}
	return id
}

func (s choosingSession) offer(id uint32) wire.Offered {
	s.t.Helper()
	return s.ask(wire.Choices{Conduit: id}).(wire.Offered)
}

// signed is a choice for a document, signed for what request says.
func (s choosingSession) signed(name, signer, pipeline string, request api.ChoiceRequest) wire.Choose {
	s.t.Helper()
	return wire.Choose{Conduit: s.id(name), Policy: request.Policy,
		Signature: [64]byte(ed25519.Sign(pipelinetest.Key(signer), api.SignedChoice(pipeline, request)))}
}

// good is the choice that alice makes properly, as her client sees the document now.
func (s choosingSession) good(name, policy string) wire.Choose {
	s.t.Helper()
	offer := s.offer(s.id(name))
	return s.signed(name, "alice", "bare", api.ChoiceRequest{Conduit: offer.Conduit, Principal: "alice", Policy: policy,
		Nonce: offer.Nonce})
}

// chooses returns how a choice ends: "" or the error's name.
func (s choosingSession) chooses(choice wire.Choose) (status, reason string) {
	s.t.Helper()
	answer := s.ask(choice).(wire.Chosen)
	if (answer.Status == 0) != (answer.Reason == "") {
		s.t.Errorf("status %d: %q", answer.Status, answer.Reason)
	}
	return unix.ErrnoName(unix.Errno(answer.Status)), answer.Reason
}

func (s choosingSession) inForce(name, want string) {
	s.t.Helper()
	item, err := s.m.ItemPolicy(s.t.Context(), name)
	if err != nil || item.Policy != want {
		s.t.Errorf("%s has the policy %s, %v, want %s", name, item.Policy, err, want)
	}
}

// A session's user chooses, and undoes it. The session says neither the user's name nor the document's.
func TestSessionsChoose(t *testing.T) {
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeDynamic, wire.ModeDynamicLazy, wire.ModeAudit} {
		t.Run(mode.String(), func(t *testing.T) {
			s := sessionsThatChoose(t, mode, "lazy", "alice")[0]
			offer := s.offer(s.id(diary))
			want := wire.Offered{Conduit: diary, Nonce: offer.Nonce, Policy: asDiary,
				Choices: []string{asDiary, asSecret, asDropbox}}
			if diff := cmp.Diff(want, offer); diff != "" || len(offer.Nonce) != 64 {
				t.Fatal(offer.Nonce, diff)
			}
			for _, policy := range []string{asSecret, asDiary, asSecret} {
				if status, reason := s.chooses(s.good(diary, policy)); status != "" {
					t.Fatalf("%s: %s %s", policy, status, reason)
				}
				s.inForce(diary, policy)
				if got := s.offer(s.id(diary)); got.Policy != policy || got.Nonce == offer.Nonce {
					t.Errorf("afterwards it is offered %+v", got)
				}
			}
			s.inForce(secondDiary, asDiary)
		})
	}
}

// The monitor knows the user, and decides by the user's signature: of this choice for this document
// in this pipeline, once. What is refused changes nothing and is recorded.
func TestSessionsCannotForgeChoices(t *testing.T) {
	sessions := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice", "bob")
	alice, bob := sessions[0], sessions[1]
	nonce := alice.offer(alice.id(diary)).Nonce
	proper := api.ChoiceRequest{Conduit: diary, Principal: "alice", Policy: asSecret, Nonce: nonce}
	altered := func(change func(r *api.ChoiceRequest)) wire.Choose {
		r := proper
		change(&r)
		choice := alice.signed(diary, "alice", "bare", r)
		choice.Policy = asSecret
		return choice
	}
	good := alice.signed(diary, "alice", "bare", proper)
	unlisted := proper
	unlisted.Policy = "open()"
	made := false
	for _, test := range []struct {
		name   string
		by     choosingSession
		choice wire.Choose
		reason string
	}{
		{"another's signature", alice, alice.signed(diary, "bob", "bare", proper), noSignature},
		{"no signature", alice, wire.Choose{Conduit: good.Conduit, Policy: asSecret}, noSignature},
		{"signed as another", alice, altered(func(r *api.ChoiceRequest) { r.Principal = "bob" }), noSignature},
		{"of another document", alice, altered(func(r *api.ChoiceRequest) { r.Conduit = secondDiary }), noSignature},
		{"for another document", alice,
			wire.Choose{Conduit: alice.id(secondDiary), Policy: asSecret, Signature: good.Signature}, noSignature},
		{"of another policy", alice, altered(func(r *api.ChoiceRequest) { r.Policy = asDiary }), noSignature},
		{"for another policy", alice, wire.Choose{Conduit: good.Conduit, Policy: asDropbox, Signature: good.Signature},
			noSignature},
		{"of another pipeline", alice, alice.signed(diary, "alice", "other", proper), noSignature},
		{"of another nonce", alice, altered(func(r *api.ChoiceRequest) { r.Nonce = nonce[1:] + "0" }), noSignature},
		{"not offered", alice, alice.signed(diary, "alice", "bare", unlisted), "does not let \"alice\" choose"},
		{"no policy", alice, wire.Choose{Conduit: good.Conduit, Signature: good.Signature}, noSignature},
		// bob is a friend, and reads it. The owner's own choice is worth nothing in his session.
		{"a stranger", bob, bob.signed(diary, "bob", "bare",
			api.ChoiceRequest{Conduit: diary, Principal: "bob", Policy: asSecret, Nonce: nonce}),
			"this user has nothing to choose"},
		{"a stranger with the owner's choice", bob, good, "this user has nothing to choose"},
		{"good", alice, good, ""},
		{"once more", alice, good, noSignature},
	} {
		before := len(recordsOf(t, alice.m, "choose"))
		status, reason := test.by.chooses(test.choice)
		if (status == "") != (test.reason == "") || status != "" && status != "EACCES" ||
			!strings.Contains(reason, test.reason) {
			t.Errorf("%s: %s %q, want %q", test.name, status, reason, test.reason)
		}
		made = made || test.reason == ""
		alice.inForce(diary, map[bool]string{true: asSecret, false: asDiary}[made])
		recorded := recordsOf(t, alice.m, "choose")[before:]
		if len(recorded) != 1 || (recorded[0].Kind == audit.Denial) != (test.reason != "") ||
			recorded[0].Task != "worker" || recorded[0].Instance != test.by.instance {
			t.Errorf("%s is recorded as %+v", test.name, recorded)
		}
	}
	alice.inForce(secondDiary, asDiary)
}

// A task whose sessions' choices are refused again and again keeps nobody else's refused choice out of
// the log.
func TestFloodOfRefusedChoices(t *testing.T) {
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	for i := 0; alice.m.audit.Omitted() == 0; i++ { // until the task's allowance is used up
		alice.chooses(wire.Choose{Conduit: alice.id(diary), Policy: fmt.Sprintf("x%d()", i)})
	}
	forged := alice.alices(asSecret, asIs)
	forged.Policy = asDropbox
	if _, err := alice.m.ChoosePolicy(t.Context(), forged); err == nil {
		t.Fatal("a forged choice is made")
	}
	recorded := recordsOf(t, alice.m, "choose")
	if last := recorded[len(recorded)-1]; last.Task != "" || last.Policy != asDropbox || last.Kind != audit.Denial {
		t.Errorf("the last refused choice that is recorded is %+v", last)
	}
}

func recordsOf(t *testing.T, m *Monitor, operation string) (found []audit.Record) {
	t.Helper()
	flushed := m.audit.Flush(t.Context())
	err := errors.Join(flushed, m.audit.Query(t.Context(), audit.Query{}, func(r audit.Record) error {
		if r.Operation == operation {
			found = append(found, r)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Of a document that its user may not read, a task learns as little as of one that does not exist,
// and as of one for which there is nothing to choose.
func TestSessionsLearnNothingByChoices(t *testing.T) {
	sessions := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice", "bob")
	alice, bob := sessions[0], sessions[1]
	secret := alice.id(secondDiary)
	if status, reason := alice.chooses(alice.good(secondDiary, asSecret)); status != "" {
		t.Fatal(status, reason)
	}
	signature := bob.signed(secondDiary, "bob", "bare", api.ChoiceRequest{Conduit: secondDiary, Principal: "bob",
		Policy: asSecret}).Signature
	numbers := map[string]uint32{"none": 0, "nonexistent": 1 << 20, "the largest": 1<<32 - 1,
		"unreadable":           bob.id("/dropbox/1.txt"),
		"unreadable by choice": secret, "readable, of another": bob.id(diary),
		"readable, no choices": bob.id("/open/1.txt")}
	for name, number := range numbers {
		if got := bob.offer(number); !cmp.Equal(got, wire.Offered{Status: int32(unix.EACCES)}) {
			t.Errorf("%s: %+v", name, got)
		}
		answer := bob.ask(wire.Choose{Conduit: number, Policy: asSecret, Signature: signature})
		want := wire.Chosen{Status: int32(unix.EACCES), Reason: "this user has nothing to choose for this document"}
		if answer != want {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	alice.inForce(secondDiary, asSecret)
}

// Even who may choose learns nothing of a document that this user may not read in this session.
func TestChoosersHaveToRead(t *testing.T) {
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	undo := alice.id(diary)
	if status, reason := alice.chooses(alice.good(diary, asDropbox)); status != "" {
		t.Fatal(status, reason)
	}
	item, err := alice.m.ItemPolicy(t.Context(), diary)
	if err != nil {
		t.Fatal(err)
	}
	if got := alice.offer(undo); got.Status != int32(unix.EACCES) || got.Conduit != "" {
		t.Errorf("it is offered %+v", got)
	}
	back := api.ChoiceRequest{Conduit: diary, Principal: "alice", Policy: asDiary, Nonce: item.Nonce}
	if status, _ := alice.chooses(alice.signed(diary, "alice", "bare", back)); status != "EACCES" {
		t.Errorf("it is chosen: %q", status)
	}
	alice.inForce(diary, asDropbox)
	// Her client can undo it at the monitor itself.
	back.Signature = hex.EncodeToString(ed25519.Sign(pipelinetest.Key("alice"), api.SignedChoice("bare", back)))
	if _, err := alice.m.ChoosePolicy(t.Context(), back); err != nil {
		t.Error(err)
	}
}

// Documents of other pipelines are none, even if the policies would let the user read and choose.
func TestChoicesAreOfTheSessionsPipeline(t *testing.T) {
	alice := sessionsOf(t, wire.ModeShai, choosingManifest("lazy")+papers, "alice")[0]
	if item, ok := alice.m.catalog.Item(paper); !ok || len(item.Choices) != 1 {
		t.Fatalf("%+v, %v", item, ok)
	}
	if got := alice.offer(alice.id(paper)); got.Status != int32(unix.EACCES) {
		t.Errorf("it is offered %+v", got)
	}
	if got := alice.offer(alice.id(diary)); got.Status != 0 {
		t.Errorf("its own is not: %+v", got)
	}
}

// A choice that ends the session that makes it does not wait for itself.
func TestAChoiceThatEndsItsOwnSession(t *testing.T) {
	for _, revocation := range []string{"lazy", "immediate"} {
		t.Run(revocation, func(t *testing.T) {
			sessions := sessionsThatChoose(t, wire.ModeShai, revocation, "alice", "bob")
			alice, bob := sessions[0], sessions[1]
			if status, reason := alice.chooses(alice.good(diary, asDropbox)); status != "" {
				t.Fatal(status, reason)
			}
			alice.inForce(diary, asDropbox)
			ended := map[uint64]bool{}
			for _, record := range alice.supervisor.Told() {
				if end, is := record.(supervision.End); is {
					ended[end.Session] = true
				}
			}
			if want := revocation == "immediate"; ended[alice.number] != want || ended[bob.number] != want {
				t.Errorf("the sessions that end are %v", ended)
			}
		})
	}
}

// Of choices that were signed for the same state of a document, one is made.
func TestOneOfConcurrentChoicesIsMade(t *testing.T) {
	const many = 8
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	choices := []wire.Choose{alice.good(diary, asSecret), alice.good(diary, asDiary)}
	alice.supervisor.Since()
	alice.m.changing.Lock() // they wait
	for i := range many {
		record, err := wire.Encode(uint64(i), choices[i%2])
		if err != nil {
			t.Fatal(err)
		}
		alice.supervisor.Sessions.Receive(supervision.AskRecord{Session: alice.number, Record: record})
	}
	alice.m.changing.Unlock()
	var answers []wire.Chosen
	waiting.Until(t, "all are answered", func() bool {
		answers = nil
		for _, record := range alice.supervisor.Told() {
			if relay, is := record.(supervision.Relay); is {
				_, answer, err := wire.Decode(relay.Record, wire.TypeChosen)
				if err != nil {
					t.Fatal(err)
				}
				answers = append(answers, answer.(wire.Chosen))
			}
		}
		return len(answers) == many
	})
	made := slices.DeleteFunc(slices.Clone(answers), func(a wire.Chosen) bool { return a.Status != 0 })
	refused := slices.DeleteFunc(slices.Clone(answers), func(a wire.Chosen) bool {
		return a.Status != int32(unix.ESTALE) && a.Status != int32(unix.EACCES)
	})
	if len(made) != 1 || len(refused) != many-1 {
		t.Errorf("%+v", answers)
	}
}
