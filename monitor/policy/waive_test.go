// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
	"testing"
)

// waiving waives the policies compiled under the given names.
func waiving(names ...string) func(*Policy) bool {
	return func(p *Policy) bool { return slices.Contains(names, p.Template().File()) }
}

// The demands of a waived policy are not checked; those of other policies are.
func TestWaivedPoliciesForbidNothing(t *testing.T) {
	named := func(file, text string) *Policy {
		template, err := CompileAccepted(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return mustBindTemplate(t, template)
	}
	alice := named("alice", `read :- sKeyIs("alice"). update :- sKeyIs("alice").`)
	bob := named("bob", `read :- sKeyIs("bob"). update :- true.`)
	anybody := named("anybody", `read :- true. update :- true.`)
	locked := named("locked", `read :- true.`)
	environment := Environment{Session: &Session{Principal: "bob"}, Now: noon}
	on := func(p *Policy) Conduit { return Conduit{Name: "/x", Kind: FileConduit, Policy: p} }
	nothing := stateOf(t)
	reads := func(taint, data *Policy) func(Environment) Decision {
		return func(e Environment) Decision { return mayRead(taint.Label("t"), data.Label("/x"), nothing, e) }
	}
	writes := func(taint *Policy, target *Policy) func(Environment) Decision {
		return func(e Environment) Decision { return mayWrite(taint.Label("t"), on(target), nothing, e) }
	}
	leaves := func(taint *Policy, egress *Policy) func(Environment) Decision {
		return func(e Environment) Decision { return mayLeave(taint.Label("t"), on(egress), nothing, e) }
	}
	for _, test := range []struct {
		name   string
		ask    func(Environment) Decision
		unmet  []string // without waiving anything
		waive  []string
		allows bool
	}{
		{"read what the taint does not keep", reads(bob, alice), []string{"alice"}, []string{"alice"}, true},
		{"the taint's own policy is not asked on reading", reads(bob, alice), []string{"alice"}, []string{"bob"},
			false},
		{"a waived taint still keeps what it keeps", reads(alice, alice), nil, []string{"alice"}, true},
		{"write where the taint is not kept", writes(alice, bob), []string{"alice"}, []string{"alice"}, true},
		{"the target is not asked whether it keeps", writes(alice, bob), []string{"alice"}, []string{"bob"}, false},
		{"write against the update rule", writes(anybody, alice), []string{"alice"}, []string{"alice"}, true},
		{"both, one waived", writes(alice, locked), []string{"alice", "locked"}, []string{"alice"}, false},
		{"both, both waived", writes(alice, locked), []string{"alice", "locked"}, []string{"alice", "locked"}, true},
		{"leave to another", leaves(alice, anybody), []string{"alice"}, []string{"alice"}, true},
		{"leave by another's conduit", leaves(anybody, alice), []string{"alice"}, []string{"alice"}, true},
		{"leave, the other waived", leaves(alice, anybody), []string{"alice"}, []string{"anybody"}, false},
		{"a conduit without a policy is nobody's", writes(anybody, nil), []string{"built in"},
			[]string{"alice", "bob", "anybody", ""}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain := test.ask(environment)
			var unmet []string
			for _, p := range plain.Unmet {
				unmet = append(unmet, p.Template().File())
			}
			if !slices.Equal(unmet, test.unmet) || plain.Allowed != (len(unmet) == 0) {
				t.Errorf("allowed %v, not met: %v, want %v", plain.Allowed, unmet, test.unmet)
			}
			waived := environment
			waived.Waive = waiving(test.waive...)
			if got := test.ask(waived); got.Allowed != test.allows || got.Allowed != (len(got.Unmet) == 0) {
				t.Errorf("waiving %v: allowed %v (%s), want %v", test.waive, got.Allowed, got.Reason, test.allows)
			}
		})
	}
}

// A policy that costs more steps than there are cannot keep another one's decision from
// being taken when it is waived.
func TestAWaivedPolicyCostsNothing(t *testing.T) {
	costly := mustBind(t, `read :- "a" says p(X, Y), "a" says p(Y, Z), "a" says p(Z, X), lt(X, Y), lt(Y, Z), lt(Z, X). update :- true.`)
	open := mustBind(t, `read :- sKeyIs("alice"). update :- true.`)
	var texts []string
	for _, x := range "12345" {
		for _, y := range "12345" {
			texts = append(texts, fmt.Sprintf(`a says p ["%c", "%c"]`, x, y))
		}
	}
	facts := stateOf(t, texts...)
	environment := Environment{Session: &Session{Principal: "alice"}, Now: noon, Steps: 20}
	target := Conduit{Name: "/x", Kind: FileConduit, Policy: costly}
	plain := mayLeave(open.Label("t"), target, facts, environment)
	if plain.Allowed || plain.Err == nil || len(plain.Unmet) == 0 || plain.Unmet[0] != costly {
		t.Fatalf("%+v", plain)
	}
	environment.Waive = func(p *Policy) bool { return p == costly }
	if got := mayLeave(open.Label("t"), target, facts, environment); !got.Allowed {
		t.Errorf("waived, and yet: %s", got.Reason)
	}
}
