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
	offer = pipeline.Offer{Number: item.Number, Choices: choosable(item, principal), Nonce: item.Nonce}
	if inForce := item.Policy.String(); slices.Contains(offer.Choices, inForce) {
		offer.Policy = inForce
	}
	return offer, len(offer.Choices) > 0
}

// Choose implements [pipeline.Choosing].
func (c choosing) Choose(choice pipeline.SignedChoice) error {
	_, err := c.monitor.ChoosePolicy(c.monitor.context, api.ChoiceRequest{Conduit: choice.Conduit,
		Principal: choice.Principal, Policy: choice.Policy, Nonce: choice.Nonce,
		Signature: hex.EncodeToString(choice.Signature[:])})
	var problem *api.Problem
	if errors.As(err, &problem) && problem.Status < http.StatusInternalServerError {
		return &pipeline.RefusedChoice{Outdated: problem.Status == http.StatusConflict, Reason: problem.Detail}
	}
	return err
}
