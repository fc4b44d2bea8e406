// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// endedOf lists the users of those sessions whose end their supervisor was told.
func endedOf(sessions []choosingSession) (users []string) {
	for _, s := range sessions {
		if slices.ContainsFunc(s.supervisor.Told(), func(record supervision.Record) bool {
			end, is := record.(supervision.End)
			return is && end.Session == s.number
		}) {
			users = append(users, s.instance)
		}
	}
	return users
}

// With immediate revocation a choice ends, in every mode, the sessions that were allowed the document and
// may not read it any more, also if no set has its class. Where sets say what is opened without a question,
// it ends those whose set has the class, whether they have read or not. The owner's sessions go on.
func TestChoicesRevokeInEveryMode(t *testing.T) {
	const listed, unlisted = "  reads: [documents]\n  writes: [web]", "  writes: [web]"
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeAudit, wire.ModeDynamic, wire.ModeDynamicLazy} {
		for _, test := range []struct {
			revocation     string
			listed         bool
			reads          string // what bob reads
			ends           bool
			endsInDynamics bool
		}{
			{"immediate", true, diary, true, true},
			{"immediate", true, "", true, false},
			{"immediate", false, diary, true, true},
			{"immediate", false, secondDiary, true, true}, // of the same class
			{"immediate", false, "", false, false},
			{"lazy", true, diary, false, false},
			{"lazy", false, diary, false, false},
		} {
			name := fmt.Sprintf("%s, %s, listed %v, read %q", mode, test.revocation, test.listed, test.reads)
			t.Run(name, func(t *testing.T) {
				manifest := choosingManifest(test.revocation)
				if !test.listed {
					manifest = strings.Replace(manifest, listed, unlisted, 1)
				}
				both := sessionsOf(t, mode, manifest, "alice", "bob")
				alice, bob := both[0], both[1]
				if !alice.opens(alice.m, diary) || test.reads != "" && !bob.opens(bob.m, test.reads) {
					t.Fatal("the document cannot be read before")
				}
				request := alice.alices(asSecret, asIs)
				alice.supervisor.Since()
				result, err := alice.m.ChoosePolicy(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				if test.ends && !mode.IsDynamic() || test.endsInDynamics && mode.IsDynamic() {
					want = []string{bob.instance}
				}
				if diff := cmp.Diff(want, endedOf(both)); diff != "" || result.SessionsReset != len(want) {
					t.Errorf("%d sessions end: %s", result.SessionsReset, diff)
				}
				// What may be read by the former policy, and by the new one, ends nothing.
				result, err = alice.m.ChoosePolicy(t.Context(), alice.alices(asDiary, asIs))
				if err != nil || result.SessionsReset > 0 {
					t.Errorf("given back: %+v, %v", result, err)
				}
			})
		}
	}
}

// A session that goes on after a choice has the document in its new class: the next choice may end it.
func TestChoicesRevokeAfterOthers(t *testing.T) {
	shared := strings.NewReplacer("            - {by: \"{owner}\", policy: {name: dropbox}}\n",
		"            - {by: \"{owner}\", policy: {name: shared, arguments: {owner: \"{owner}\"}}}\n",
		"  reads: [documents]\n  writes: [web]", "  writes: [web]").Replace(choosingManifest("immediate")) + `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: shared}
spec:
  text: |
    policy shared(owner) {
      read :- sKeyIs(owner).
      read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K), neq(K, "carol").
    }
`
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeAudit, wire.ModeDynamic, wire.ModeDynamicLazy} {
		t.Run(mode.String(), func(t *testing.T) {
			both := sessionsOf(t, mode, shared, "alice", "bob")
			alice, bob := both[0], both[1]
			if !alice.opens(alice.m, diary) || !bob.opens(bob.m, diary) {
				t.Fatal("the document cannot be read before")
			}
			for _, step := range []struct {
				policy string
				reset  int
			}{{`shared(owner: "alice")`, 0}, {asSecret, 1}} {
				result, err := alice.m.ChoosePolicy(t.Context(), alice.alices(step.policy, asIs))
				if err != nil || result.SessionsReset != step.reset {
					t.Errorf("%s: %+v, %v", step.policy, result, err)
				}
			}
		})
	}
}

// What mode audit has let a session read although a policy forbids it counts as allowed.
func TestChoicesRevokeWhatAuditAllows(t *testing.T) {
	for _, reads := range []bool{false, true} {
		bob := sessionsOf(t, wire.ModeAudit, choosingManifest("immediate"), "bob")[0]
		chooses := func(policy string) (reset int) {
			t.Helper()
			item, err := bob.m.ItemPolicy(t.Context(), diary)
			if err != nil {
				t.Fatal(err)
			}
			request := api.ChoiceRequest{Conduit: diary, Principal: "alice", Policy: policy, Nonce: item.Nonce}
			signature := ed25519.Sign(pipelinetest.Key("alice"), api.SignedChoice("bare", request))
			request.Signature = hex.EncodeToString(signature)
			result, err := bob.m.ChoosePolicy(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			return result.SessionsReset
		}
		chooses(asDropbox)
		if reads && !bob.opens(bob.m, diary) {
			t.Fatal("mode audit refuses")
		}
		if reset := chooses(asSecret); (reset > 0) != reads {
			t.Errorf("read %v: %d sessions end", reads, reset)
		}
	}
}

// By a policy that the declared taint does not keep, but by which the data may go to the user at this
// address, a session of a dynamic mode may go on. In mode shai it may not read the document.
func TestChoicesRevokeByWhatModesAllow(t *testing.T) {
	const secret = `policy secret(owner) { read :- sKeyIs(owner). }`
	for mode, want := range map[wire.Mode]int{
		wire.ModeShai: 1, wire.ModeAudit: 1, wire.ModeDynamic: 0, wire.ModeDynamicLazy: 0,
	} {
		alice := sessionsOf(t, mode, strings.Replace(choosingManifest("immediate"), secret,
			`policy secret(owner) { read :- sKeyIs(owner), sIpIs(I), ipPrefix(I, \"192.0.2.0/24\"). }`, 1), "alice")[0]
		if !alice.opens(alice.m, diary) {
			t.Fatal("the document cannot be read before")
		}
		result, err := alice.m.ChoosePolicy(t.Context(), alice.alices(asSecret, asIs))
		if err != nil || result.SessionsReset != want {
			t.Errorf("%s: %d sessions end, %v, want %d", mode, result.SessionsReset, err, want)
		}
	}
}
