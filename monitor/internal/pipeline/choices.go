// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// A session asks what its user may choose for a document, and passes the user's signed choice on. It
// says neither who the user is nor what the document is called: the monitor knows both, and decides
// by the signature.

// Offer is what a principal may choose for one document.
type Offer struct {
	Number  uint32
	Policy  string // in force, if the principal may choose it; else ""
	Choices []string
	Nonce   string // stands for the document as it is
}

// SignedChoice is a principal's choice of a policy for a document. It is signed with the nonce of an offer
// that is still good.
type SignedChoice struct {
	Task      string // whose session passes it on
	Instance  string // the session's
	Conduit   string
	Principal string
	Policy    string
	Signature [wire.SignatureSize]byte
}

// Choosing is where policies of documents are chosen. It records choices and refused ones.
type Choosing interface {
	// Offer returns what a principal may choose; ok is false if nothing.
	Offer(conduit, principal string) (offer Offer, ok bool)
	// Choose puts a choice in force. It may wait for changes, and for the end of sessions. Unless it
	// fails with a *RefusedChoice, the choice could not be made for another reason.
	Choose(choice SignedChoice) error
}

// RefusedChoice is why a choice was not made, in words for who has made it.
type RefusedChoice struct {
	Outdated bool // it is about the document as it was
	Reason   string
}

func (r *RefusedChoice) Error() string { return r.Reason }

// notChoosable is said of every conduit for which a session's user has nothing to choose: the task
// does not learn whether it exists, or whether the user may read it.
const notChoosable = "this user has nothing to choose for this document"

// choosable finds a document that the session's user may read in it, and what the user may choose for
// it. offered is false if that is nothing, known if there is no such document.
func (s *session) choosable(asked *metrics.Interception, who actor, id uint32) (
	name string, offer Offer, known, offered bool,
) {
	p := s.pipeline
	found, exists := p.services.document(id)
	if !exists || !p.owns(p.services.state().SetOf(found.conduit)) {
		p.refused(metrics.Unknown, who.Subject, "choose", fmt.Sprintf("conduit %d", id),
			"the pipeline has no document with this number", asked)
		return "", Offer{}, false, false
	}
	if !s.mayRead(asked, who, found) {
		return "", Offer{}, false, false
	}
	offer, offered = p.services.Choosing.Offer(found.conduit.Name, who.Session.Principal)
	return found.conduit.Name, offer, true, offered && offer.Number == id
}

// mayRead decides whether the session may read a document.
func (s *session) mayRead(asked *metrics.Interception, who actor, found document) bool {
	p := s.pipeline
	if s.mode.IsDynamic() || !who.holds.holdsClass(found.class) {
		if decision := p.decide(asked, who, policy.Read, found.conduit); !decision.Allowed {
			return false
		}
		s.learn(found.class)
		return true
	}
	if err := p.outdated(who.holds, p.services.state(), time.Now()); err != nil {
		p.refused(metrics.Limit, who.Subject, "open", found.conduit.Name, err.Error(), asked)
		return false
	}
	s.learnSet()
	return true
}

// choices answers what the session's user may choose.
func (s *session) choices(sequence uint64, message wire.Message, asking *metrics.Interception) error {
	name, offer, _, offered := s.choosable(asking, s.actor(), message.(wire.Choices).Conduit)
	answer := wire.Offered{Status: int32(unix.EACCES)}
	if choices := fitting(offer.Choices); offered && len(choices) > 0 && len(name) < wire.PrefixMax {
		answer = wire.Offered{Conduit: name, Nonce: offer.Nonce, Policy: wire.Truncate(offer.Policy, wire.PolicyMax),
			Choices: choices}
	}
	return s.send(sequence, answer)
}

// fitting returns the choices that fit a record.
func fitting(choices []string) (fit []string) {
	for _, one := range choices {
		if len(one) < wire.PolicyMax && len(fit) < wire.OfferedMax {
			fit = append(fit, one)
		}
	}
	return fit
}

// choose passes a choice of the session's user on. It may end the session, whose task then gets no answer.
func (s *session) choose(sequence uint64, message wire.Message, choosing *metrics.Interception) error {
	request, who := message.(wire.Choose), s.actor()
	name, _, known, offered := s.choosable(choosing, who, request.Conduit)
	refusal := wire.Chosen{Status: int32(unix.EACCES), Reason: notChoosable}
	if !known {
		return s.send(sequence, refusal)
	}
	err := s.pipeline.services.Choosing.Choose(SignedChoice{Task: who.Task, Instance: who.Instance,
		Conduit: name, Principal: who.Session.Principal, Policy: request.Policy, Signature: request.Signature})
	var refused *RefusedChoice
	if errors.As(err, &refused) {
		s.pipeline.counts.Refused("choose")
		s.pipeline.counts.Denied(who.Task, "", metrics.Choice)
	}
	switch {
	case err == nil:
		return s.send(sequence, wire.Chosen{})
	case refused == nil:
		s.pipeline.services.Logger.Error("a choice was not made", "conduit", name, "error", err)
		refusal = wire.Chosen{Status: int32(unix.EIO), Reason: "the choice could not be stored"}
	case refused.Outdated:
		refusal = wire.Chosen{Status: int32(unix.ESTALE), Reason: wire.Truncate(refused.Reason, wire.ReasonMax)}
	case offered:
		refusal.Reason = wire.Truncate(refused.Reason, wire.ReasonMax)
	}
	return s.send(sequence, refusal)
}
