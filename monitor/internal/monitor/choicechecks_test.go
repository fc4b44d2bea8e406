// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// alices is alice's signed choice for her diary, as it is now.
func (s choosingSession) alices(policy string, change func(*api.ChoiceRequest)) api.ChoiceRequest {
	s.t.Helper()
	request := api.ChoiceRequest{Conduit: diary, Principal: "alice", Policy: policy, Nonce: s.offer(s.id(diary)).Nonce}
	change(&request)
	signature := ed25519.Sign(pipelinetest.Key("alice"), api.SignedChoice("bare", request))
	request.Signature = hex.EncodeToString(signature)
	return request
}

func asIs(*api.ChoiceRequest) {}

// A choice that is refused does not wait for other changes, and so holds up neither its session nor
// whoever changes something. One that can be made waits for its turn.
func TestRefusedChoicesWaitForNothing(t *testing.T) {
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	forged := alice.alices(asSecret, asIs)
	forged.Policy = asDropbox
	tests := []struct {
		name, want string
		request    api.ChoiceRequest
	}{
		{"no document", "it is no document", alice.alices(asSecret, func(r *api.ChoiceRequest) { r.Conduit = "/none" })},
		{"another policy than was signed", noSignature, forged},
		{"as the document was", "something else was chosen",
			alice.alices(asSecret, func(r *api.ChoiceRequest) { r.Nonce = strings.Repeat("0", 64) })},
		{"not offered", "does not let", alice.alices("open()", asIs)},
	}
	good := alice.alices(asSecret, asIs)
	made := make(chan error, 1)
	func() {
		alice.m.changing.Lock()
		defer alice.m.changing.Unlock()
		go func() {
			_, err := alice.m.ChoosePolicy(t.Context(), good)
			made <- err
		}()
		for _, test := range tests {
			refused := make(chan error, 1)
			go func() {
				_, err := alice.m.ChoosePolicy(t.Context(), test.request)
				refused <- err
			}()
			waiting.Until(t, test.name+" is refused", func() bool { return len(refused) == 1 })
			if err := <-refused; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
		}
		unsigned := wire.Choose{Conduit: alice.id(diary), Policy: asSecret}
		if status, reason := alice.chooses(unsigned); status != "EACCES" {
			t.Errorf("without a signature: %s %s", status, reason)
		}
		if len(made) > 0 {
			t.Errorf("a choice is made in the middle of another change: %v", <-made)
		}
		alice.inForce(diary, asDiary)
	}()
	if err := <-made; err != nil {
		t.Error(err)
	}
	alice.inForce(diary, asSecret)
	recorded := recordsOf(t, alice.m, "choose")
	if len(recorded) != len(tests)+2 || recorded[len(tests)+1].Kind != audit.Document {
		t.Errorf("%+v", recorded)
	}
}

// A choice that has waited is decided on by what is in force then.
func TestChoicesAreCheckedAgain(t *testing.T) {
	public := func(name string) string {
		return hex.EncodeToString(pipelinetest.Key(name).Public().(ed25519.PublicKey))
	}
	for name, test := range map[string]struct {
		change func(manifest string) string
		want   string
	}{
		"nothing has changed": {func(manifest string) string { return manifest }, ""},
		"another key": {func(manifest string) string {
			return strings.Replace(manifest, public("alice"), public("carol"), 1)
		}, noSignature},
		"no choices": {func(manifest string) string {
			before, rest, _ := strings.Cut(manifest, "          choices:\n")
			for strings.HasPrefix(rest, "            - {by:") {
				_, rest, _ = strings.Cut(rest, "\n")
			}
			return before + rest
		}, `does not let "alice" choose`},
	} {
		t.Run(name, func(t *testing.T) {
			alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
			request := alice.alices(asSecret, asIs)
			if _, _, err := alice.m.checkChoice(request); err != nil {
				t.Fatal(err)
			}
			applyBare(t, alice.m, test.change(choosingManifest("lazy")))
			alice.m.changing.Lock()
			defer alice.m.changing.Unlock()
			_, err := alice.m.choosePolicy(t.Context(), request)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			alice.inForce(diary, map[bool]string{true: asSecret, false: asDiary}[test.want == ""])
		})
	}
}

// Another principal, bob, may choose for alice's diary, too. Each session is told of a policy, even of
// the one in force, only if its user may choose it.
func TestSessionsAreToldOnlyWhatTheirUserMayChoose(t *testing.T) {
	const asOpen = "open()"
	manifest := strings.Replace(choosingManifest("lazy"), "          choices:\n",
		"          choices:\n            - {by: bob, policy: {name: open}}\n", 1)
	sessions := sessionsOf(t, wire.ModeShai, manifest, "alice", "bob")
	alice, bob := sessions[0], sessions[1]
	told := func(when, ofAlice, ofBob string) {
		t.Helper()
		for _, one := range []struct {
			by      choosingSession
			inForce string
			choices []string
		}{{alice, ofAlice, []string{asDiary, asSecret, asDropbox}}, {bob, ofBob, []string{asOpen}}} {
			got := one.by.offer(one.by.id(diary))
			want := wire.Offered{Conduit: diary, Nonce: got.Nonce, Policy: one.inForce, Choices: one.choices}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
	}
	told("at first", asDiary, "")
	choice := bob.signed(diary, "bob", "bare", api.ChoiceRequest{Conduit: diary, Principal: "bob", Policy: asOpen,
		Nonce: bob.offer(bob.id(diary)).Nonce})
	if status, reason := bob.chooses(choice); status != "" {
		t.Fatal(status, reason)
	}
	told("after bob's choice", "", asOpen)
	if status, reason := alice.chooses(alice.good(diary, asDiary)); status != "" {
		t.Fatal(status, reason)
	}
	told("after alice's choice", asDiary, "")
}

// A task cannot write what it has read into the audit log, in the place of a policy.
func TestOnlyPoliciesThatMayBeChosenAreRecorded(t *testing.T) {
	const stolen = `a secret of "alice"`
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	for name, test := range map[string]struct {
		choice   wire.Choose
		recorded string
	}{
		"signed":            {alice.good(diary, stolen), ""},
		"not signed":        {wire.Choose{Conduit: alice.id(diary), Policy: stolen}, ""},
		"of no document":    {wire.Choose{Conduit: 1 << 20, Policy: stolen}, ""},
		"another's to read": {wire.Choose{Conduit: alice.id("/dropbox/1.txt"), Policy: stolen}, ""},
		"listed":            {wire.Choose{Conduit: alice.id(diary), Policy: asSecret}, asSecret},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(recordsOf(t, alice.m, "choose"))
			status, reason := alice.chooses(test.choice)
			if status != "EACCES" || strings.Contains(reason, "a secret of") {
				t.Errorf("%s %s", status, reason)
			}
			for _, record := range recordsOf(t, alice.m, "choose")[before:] {
				text := fmt.Sprintf("%+v", record)
				if record.Policy != test.recorded || strings.Contains(text, "a secret of") {
					t.Error(text)
				}
			}
		})
	}
}

// A session does not say which offer was signed. That of the period before is good, too; others are not.
func TestSessionsPassOnWhatWasOfferedBefore(t *testing.T) {
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	signed := func(nonce func(catalog.Item) string) wire.Choose {
		item, _ := alice.m.catalog.Item(diary)
		return alice.signed(diary, "alice", "bare",
			api.ChoiceRequest{Conduit: diary, Principal: "alice", Policy: asSecret, Nonce: nonce(item)})
	}
	old := signed(func(catalog.Item) string { return strings.Repeat("0", 64) })
	status, reason := alice.chooses(old)
	if status != "EACCES" || !strings.Contains(reason, noSignature) || !strings.Contains(reason, "ask again") {
		t.Errorf("an older offer: %s %s", status, reason)
	}
	earlier := signed(func(item catalog.Item) string { return item.Earlier })
	if status, reason := alice.chooses(earlier); status != "" {
		t.Errorf("the offer before: %s %s", status, reason)
	}
	alice.inForce(diary, asSecret)
	if status, reason := alice.chooses(earlier); status != "EACCES" || !strings.Contains(reason, noSignature) {
		t.Errorf("once more: %s %s", status, reason)
	}
}
