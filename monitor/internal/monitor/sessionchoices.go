// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"encoding/hex"
	"errors"
	"net/http"
	"slices"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// choosing lets sessions choose policies as everybody else does.
type choosing struct{ monitor *Monitor }

var _ pipeline.Choosing = choosing{}

// Offer implements [pipeline.Choosing]. What others may choose is none of the principal's business, and
// neither is what they have chosen: it can name other people.
func (c choosing) Offer(conduit, principal string) (offer pipeline.Offer, ok bool) {
	item, known := c.monitor.catalog.Item(conduit)
	if !known {
		return pipeline.Offer{}, false
	}
	about := itemPolicy(conduit, item)
	offer = pipeline.Offer{Number: about.Number, Choices: choosable(about, principal), Nonce: about.Nonce}
	if slices.Contains(offer.Choices, about.Policy) {
		offer.Policy = about.Policy
	}
	return offer, len(offer.Choices) > 0
}

// Choose implements [pipeline.Choosing].
func (c choosing) Choose(choice pipeline.SignedChoice) error {
	request := api.ChoiceRequest{Conduit: choice.Conduit, Principal: choice.Principal, Policy: choice.Policy,
		Signature: hex.EncodeToString(choice.Signature[:])}
	nonce, signed := c.signedNonce(request)
	request.Nonce = nonce
	_, err := c.monitor.chooseFor(c.monitor.context, passedOn{choice.Task, choice.Instance}, request)
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Status == http.StatusInternalServerError {
		return err
	}
	refused := &pipeline.RefusedChoice{Outdated: problem.Status == http.StatusConflict, Reason: problem.Detail}
	if !signed {
		refused.Reason += ", or the offer is outdated: ask again, and sign within 10 minutes"
	}
	return refused
}

// signedNonce returns with which of the document's nonces a choice is signed: its session does not say.
func (c choosing) signedNonce(request api.ChoiceRequest) (nonce string, ok bool) {
	item, _ := c.monitor.catalog.Item(request.Conduit)
	pipeline := itemPolicy(request.Conduit, item).Pipeline
	for _, request.Nonce = range []string{item.Earlier, item.Nonce} {
		if c.monitor.verifyChoice(pipeline, request) == nil {
			return request.Nonce, true
		}
	}
	return request.Nonce, false
}
