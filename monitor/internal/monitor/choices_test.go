// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// friendsPath is the path of the manifest to which choices are given.
const friendsPath = `        - {path: "/corpus/friends/{owner}/**", policy: {name: friends, arguments: {owner: "{owner}"}}}
`

// withChoices lets owners choose who may read their documents for friends.
func (s *stack) withChoices() {
	s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], friendsPath, `
        - path: "/corpus/friends/{owner}/**"
          policy: {name: friends, arguments: {owner: "{owner}"}}
          choices:
            - {by: "{owner}", policy: {name: private, arguments: {owner: "{owner}"}}}
            - {by: "{owner}", policy: {name: friends, arguments: {owner: "{owner}"}}}
`, 1)
}

// choice is a signed request.
func (s *stack) choice(conduit, policy, principal, signer string) api.ChoiceRequest {
	s.t.Helper()
	item, err := s.monitor.ItemPolicy(context.Background(), conduit)
	s.must(err)
	request := api.ChoiceRequest{Conduit: conduit, Principal: principal, Policy: policy, Nonce: item.Nonce}
	signature := ed25519.Sign(pipelinetest.Key(signer), api.SignedChoice(item.Pipeline, request))
	request.Signature = hex.EncodeToString(signature)
	return request
}

// chooses carries out "NAME POLICY by PRINCIPAL".
func (p *player) chooses(arguments string) string {
	p.t.Helper()
	what, principal, _ := strings.Cut(arguments, " by ")
	conduit, policy, _ := strings.Cut(what, " ")
	result, err := p.monitor.ChoosePolicy(context.Background(), p.choice(conduit, policy, principal, principal))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, before %s, %d sessions ended", result.Policy, result.Before, result.SessionsReset)
}

// Only the principal who may choose can, with his key, what the pipeline says, and for the document
// as it is. What is refused changes nothing, and is recorded.
func TestChoicesAreAuthenticated(t *testing.T) {
	const document, private = "/corpus/friends/bob/1.txt", `private(owner: "bob")`
	s := newIngestingStack(t)
	s.options.NoIngest = true
	s.withChoices()
	s.document(document)
	s.startIngesting()
	s.records()
	good := s.choice(document, private, "bob", "bob")
	other := s.choice(document, `friends(owner: "bob")`, "bob", "bob")
	altered := func(change func(r *api.ChoiceRequest)) api.ChoiceRequest {
		r := good
		change(&r)
		return r
	}
	tests := []struct {
		name, want string
		request    api.ChoiceRequest
	}{
		{"another's key", "the signature is not of principal", s.choice(document, private, "bob", "alice")},
		{"another's name", "the signature is not of principal", altered(func(r *api.ChoiceRequest) { r.Principal = "alice" })},
		{"nobody", "the signature is not of principal", s.choice(document, private, "mallory", "mallory")},
		{"another policy", "the signature is not of principal", altered(func(r *api.ChoiceRequest) { r.Policy = other.Policy })},
		{"another document", "the signature is not of principal", altered(func(r *api.ChoiceRequest) {
			r.Conduit = "/corpus/private/alice/1.txt"
		})},
		{"another nonce", "the signature is not of principal", altered(func(r *api.ChoiceRequest) { r.Nonce = "00" })},
		{"not the owner", "does not let \"alice\" choose", s.choice(document, private, "alice", "alice")},
		{"not permitted", "does not let \"bob\" choose", s.choice(document, "public()", "bob", "bob")},
		{"good", "", good},
		{"once more", "something else was chosen", good},
		{"of before", "something else was chosen", other},
	}
	for _, test := range tests {
		_, err := s.monitor.ChoosePolicy(t.Context(), test.request)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	recorded := slices.DeleteFunc(s.records(), func(r audit.Record) bool { return r.Operation != "choose" })
	if len(recorded) != len(tests) {
		t.Fatalf("%d records", len(recorded))
	}
	for at, r := range recorded {
		wantKind := audit.Denial
		if tests[at].name == "good" {
			wantKind = audit.Document
		}
		if r.Kind != wantKind || r.Principal != tests[at].request.Principal {
			t.Errorf("%s is recorded as %+v", tests[at].name, r.Event)
		}
	}
}

// With immediate revocation, the sessions end that could read the document and may not any more; of
// others, none does.
func TestChoicesRevoke(t *testing.T) {
	const document = "/corpus/friends/bob/1.txt"
	for revocation, ends := range map[string]bool{"lazy": false, "immediate": true} {
		t.Run(revocation, func(t *testing.T) {
			s := newIngestingStack(t)
			s.options.NoIngest = true
			s.withChoices()
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "revocation: lazy",
				"revocation: "+revocation, 1)
			s.principal("carol", "de")
			s.document(document)
			s.startIngesting()
			alice, bob := s.login("alice", "127.0.1.1"), s.login("bob", "127.0.1.2")
			carol := s.login("carol", "127.0.1.3")
			s.expect("before", alice.reading(document), "text "+document+", asked 0")
			result, err := s.monitor.ChoosePolicy(t.Context(), s.choice(document, `private(owner: "bob")`, "bob", "bob"))
			s.must(err)
			if want := map[bool]int{true: 1, false: 0}[ends]; result.SessionsReset != want {
				t.Errorf("%d sessions ended, want %d", result.SessionsReset, want)
			}
			if answer, err := alice.say("mode"); (err != nil) != ends {
				t.Errorf("alice's session: %s, %v", answer, err)
			}
			s.expect("the owner", strings.Split(bob.reading(document), ",")[0], "text "+document)
			carol.must("mode")
			if !ends {
				s.expect("a friend", alice.reading(document), "error EACCES withheld 1, asked 1")
			}
		})
	}
}
