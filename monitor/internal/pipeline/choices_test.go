// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// chooses stands for the monitor.
type chooses struct {
	offer  Offer
	choose func(SignedChoice) error
}

func (c chooses) Offer(_, principal string) (Offer, bool) {
	return c.offer, principal == "alice" && len(c.offer.Choices) > 0
}
func (c chooses) Choose(choice SignedChoice) error { return c.choose(choice) }

const chosenDocument = "/corpus/private/alice/1.txt"

// choosingSession is alice's session. Whatever it chooses is answered by choose.
func choosingSession(t *testing.T, choices []string,
	choose func(*wireSession, SignedChoice) error) (*wireSession, uint32) {
	t.Helper()
	s := probe(t, SessionLimits{})
	s.analyze()
	id := s.id(chosenDocument)
	b := s.wireSession(t)
	s.Pipeline.services.Choosing = chooses{Offer{Number: id, Policy: "now()", Choices: choices, Nonce: "nonce"},
		func(choice SignedChoice) error { return choose(b, choice) }}
	if bound := b.authenticate("alice"); bound.Status != 0 {
		t.Fatal(bound.Reason)
	}
	return b, id
}

// What fits no record is not offered.
func TestOffersFitARecord(t *testing.T) {
	long := strings.Repeat("x", wire.PolicyMax)
	var many []string
	for i := range wire.OfferedMax + 1 {
		many = append(many, fmt.Sprint("p", i))
	}
	refused := wire.Offered{Status: int32(unix.EACCES)}
	for name, test := range map[string]struct {
		choices []string
		want    wire.Offered
	}{
		"none": {nil, refused}, "too long": {[]string{long}, refused},
		"some": {[]string{long, long[1:]}, wire.Offered{Conduit: chosenDocument, Nonce: "nonce", Policy: "now()",
			Choices: []string{long[1:]}}},
		"many": {many, wire.Offered{Conduit: chosenDocument, Nonce: "nonce", Policy: "now()", Choices: many[:wire.OfferedMax]}},
	} {
		t.Run(name, func(t *testing.T) {
			b, id := choosingSession(t, test.choices, nil)
			b.say(wire.Choices{Conduit: id})
			if diff := cmp.Diff(wire.Message(test.want), b.answer()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The monitor gets the session's user and the document's name and nonce, none of which the task says.
func TestChoicesAreTheSessionsUsers(t *testing.T) {
	signature := [64]byte{7}
	for name, test := range map[string]struct {
		err  error
		want wire.Chosen
	}{
		"made":     {nil, wire.Chosen{}},
		"refused":  {&RefusedChoice{Reason: "no"}, wire.Chosen{Status: int32(unix.EACCES), Reason: "no"}},
		"outdated": {&RefusedChoice{Outdated: true, Reason: "late"}, wire.Chosen{Status: int32(unix.ESTALE), Reason: "late"}},
		"not stored": {errors.New("/a/path: no space"),
			wire.Chosen{Status: int32(unix.EIO), Reason: "the choice could not be stored"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got SignedChoice
			b, id := choosingSession(t, []string{"next()"}, func(_ *wireSession, choice SignedChoice) error {
				got = choice
				return test.err
			})
			b.say(wire.Choose{Conduit: id, Policy: "next()", Signature: signature})
			if answer := b.answer(); answer != wire.Message(test.want) {
				t.Errorf("the answer is %+v", answer)
			}
			want := SignedChoice{Task: "worker", Instance: "worker(alice, de)", Conduit: chosenDocument,
				Principal: "alice", Policy: "next()", Signature: signature}
			if got != want {
				t.Errorf("the monitor gets %+v", got)
			}
			refused := map[bool]float64{true: 1}[strings.Contains("refused outdated", name)]
			(&fixture{Pipeline: b.pipeline, t: t}).expectMeasured(name, map[string]float64{
				"shai_refusals_total choose": refused, "shai_denials_total  choice worker": refused})
		})
	}
}

// A choice waits for the end of sessions, its own among them.
func TestAChoiceWaitsForItsOwnSessionsEnd(t *testing.T) {
	chosen := make(chan struct{})
	b, id := choosingSession(t, []string{"next()"}, func(b *wireSession, _ SignedChoice) error {
		defer close(chosen)
		b.Kill()
		b.socket.Close() // the worker's end
		<-b.ended
		return nil
	})
	b.say(wire.Choose{Conduit: id, Policy: "next()"})
	<-chosen
	b.dies()
}

// A session that does not wait for the answer to its choice ends.
func TestASessionHasOneChoiceAtATime(t *testing.T) {
	for name, next := range map[string]wire.Message{"a choice": wire.Choose{}, "choices": wire.Choices{}} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			b, id := choosingSession(t, []string{"next()"}, func(*wireSession, SignedChoice) error {
				<-release
				return nil
			})
			b.say(wire.Choose{Conduit: id, Policy: "next()"})
			b.say(next)
			b.dies()
			close(release)
		})
	}
}
