// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ItemPolicy is the policy of one document, and what can be chosen for it.
type ItemPolicy struct {
	Pipeline string `json:"pipeline"`
	Conduit  string `json:"conduit"`
	Number   uint32 `json:"number"`
	Policy   string `json:"policy"`             // in force: `private(owner: "alice")`
	ChosenBy string `json:"chosenBy,omitempty"` // the principal; empty: it is the pipeline's
	// Choices are those that the pipeline permits for this document.
	Choices []PolicyChoice `json:"choices"`
	// Nonce stands for the document as it is. A choice is signed with it, once, and within 10 minutes.
	Nonce string `json:"nonce"`
}

// PolicyChoice is a policy that a principal may choose.
type PolicyChoice struct {
	Principal string `json:"principal"`
	Policy    string `json:"policy"`
}

// ChoiceRequest is a principal's choice of a document's policy.
type ChoiceRequest struct {
	Conduit   string `json:"conduit"`
	Principal string `json:"principal"`
	Policy    string `json:"policy"` // as in ItemPolicy.Choices
	Nonce     string `json:"nonce"`
	// Signature is the principal's Ed25519 signature of SignedChoice, in hexadecimal digits. It is
	// checked with the key with which the principal logs in.
	Signature string `json:"signature"`
}

// ChoiceResult says what a choice has changed.
type ChoiceResult struct {
	ItemPolicy
	Before        string `json:"before"`        // the policy until now
	SessionsReset int    `json:"sessionsReset"` // sessions that ended because they have lost the document
}

// SignedChoice returns the text that a principal signs. Names are quoted as in Go, so that no two
// choices have the same text.
func SignedChoice(pipeline string, r ChoiceRequest) []byte {
	return fmt.Appendf(nil, "shai-policy-v1\n%q\n%q\n%q\n%q\n%s", pipeline, r.Principal, r.Conduit, r.Policy, r.Nonce)
}

func (r ChoiceRequest) check() error {
	signature, err := hex.DecodeString(r.Signature)
	switch {
	case !strings.HasPrefix(r.Conduit, "/"):
		return Invalid("choose a policy", "give the document's path in the pipeline", "%.200q is no path", r.Conduit)
	case r.Principal == "" || r.Policy == "":
		return Invalid("choose a policy", "give both", "the principal or the policy is missing")
	case err != nil || len(signature) != 64:
		return Invalid("choose a policy", "sign the choice with the principal's key",
			"the signature has not 128 hexadecimal digits")
	}
	return nil
}

func (h *Handler) itemPolicy(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	if err := known(values, "conduit"); err != nil {
		return err
	}
	if values.Get("conduit") == "" {
		return badParameter("conduit", "it is missing")
	}
	item, err := h.Service.ItemPolicy(r.Context(), values.Get("conduit"))
	return answer(w, item, err)
}

func (h *Handler) choosePolicy(w http.ResponseWriter, r *http.Request) error {
	var request ChoiceRequest
	if err := read(w, r, maxBody, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	result, err := h.Service.ChoosePolicy(r.Context(), request)
	return answer(w, result, err)
}

// ItemPolicy implements [Calls].
func (c *Client) ItemPolicy(ctx context.Context, conduit string) (ItemPolicy, error) {
	return call[ItemPolicy](ctx, c, http.MethodGet, "/v1/documents/policy", url.Values{"conduit": {conduit}}, nil)
}

// ChoosePolicy implements [Calls].
func (c *Client) ChoosePolicy(ctx context.Context, request ChoiceRequest) (ChoiceResult, error) {
	return call[ChoiceResult](ctx, c, http.MethodPut, "/v1/documents/policy", nil, request)
}
