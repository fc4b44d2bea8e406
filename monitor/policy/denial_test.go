// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"strings"
	"testing"
)

// The sentences of denials, for the standard policies and for the usual taints of
// readers.
func TestDenialsInPlainWords(t *testing.T) {
	bob := mustLibrary(t, "private", "bob")
	carol := mustBind(t, `policy worker(user, region) { read :- sKeyIs(user), sRegionIs(region). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`, "carol", "de")
	index := mustBind(t, `policy index { update :- sKeyIs("task/indexer"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`)
	at := func(p *Policy) Conduit { return Conduit{Name: "/doc", Kind: FileConduit, Policy: p} }
	tests := []struct {
		name      string
		operation Operation
		taint     Label
		conduit   Conduit
		session   *Session
		want      string
		remedy    string
	}{
		{"private", Read, mustLibrary(t, "private", "alice").Label(""), at(bob), nil,
			`only bob may read it (private, owner bob); alice is not bob`, ``},
		{"private, from a region", Read, carol.Label(""), at(bob), nil,
			`only bob may read it (private, owner bob); carol is not bob`, ``},
		{"private, by a task that keeps nothing", Read, Label{}, at(bob), nil,
			`only bob may read it (private, owner bob); the task may pass what it reads on to anybody`, ``},
		{"private, by the indexer", Read, index.Label(""), at(mustLibrary(t, "search-history", "bob")), nil,
			`what derives from it is protected for ever (search-history, owner bob), what the task writes only until it goes through a conduit of kind descriptor (index)`, ``},
		{"friends", Read, carol.Label(""), at(mustLibrary(t, "friends", "alice")), nil,
			`only alice, or whoever "friends/alice" lists as friend may read it (friends, owner alice); "friends/alice" does not list carol as friend`, `add friends/alice friend("carol")`},
		{"friends of friends", Read, mustLibrary(t, "private", "dora").Label(""),
			at(mustLibrary(t, "friends-of-friends", "alice")), nil,
			`only alice, or whoever "friends/alice" lists as friend, or whoever "friends/<M>" lists as friend, where "friends/alice" lists <M> as friend may read it (friends-of-friends, owner alice); "friends/alice" does not list dora as friend`, `add friends/alice friend("dora")`},
		{"region blacklist", Read, carol.Label(""), at(mustLibrary(t, "region-blacklist")), nil,
			`it may be read only in a region <R>, unless "blacklist/<R>" lists it as blocked (region-blacklist); "blacklist/de" lists it as blocked`, `remove blacklist/de blocked("/doc")`},
		{"region blacklist, from nowhere", Read, bob.Label(""), at(mustLibrary(t, "region-blacklist")), nil,
			`it may be read only in a region <R>, unless "blacklist/<R>" lists it as blocked (region-blacklist); the region of bob is not known`, ``},
		{"by a task that releases it elsewhere", Read, index.Label(""),
			at(mustBind(t, `read :- sKeyIs("bob"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor), cNameIs(N), concat(N, "syse/results/", _).`)), nil,
			`what derives from it is protected until it goes through a conduit of kind descriptor called "syse/results/…" (test.pol), what the task writes only until it goes through a conduit of kind descriptor (index)`, ``},
		{"by a task that releases it by content", Read,
			mustBind(t, `read :- sKeyIs("bob"). declassify :- isAsRestrictive(read, this.read) until cNameIs("/t"), cTypeIs("topics"). declassify :- isAsRestrictive(read, this.read) until cIdExists(1).`).Label(""),
			at(bob), nil,
			`what derives from it is protected until it goes through a conduit of kind descriptor (private, owner bob), what the task writes only until it goes anywhere, where cIdExists(1), or through a conduit of type topics called "/t" (test.pol)`, ``},
		{"where something is", Read, bob.Label(""), at(mustBind(t, `read :- cIdExists(77).`)), nil,
			`it may be read only where cIdExists(77) (test.pol); what the task holds is for bob`, ``},
		{"expiry", Read, bob.Label(""), at(mustLibrary(t, "expiry", "2026-01-01T00:00:00Z")), nil,
			`it may be read only before 2026-01-01T00:00:00Z (expiry, end 2026-01-01T00:00:00Z); that time is over`,
			``},
		{"log", Read, bob.Label(""), at(mustLibrary(t, "append-only-log", "alice")), nil,
			`only alice may read it (append-only-log, auditor alice); bob is not alice`, ``},
		{"mandatory access logging", Read, mustLibrary(t, "private", "frank").Label(""),
			at(mustLibrary(t, "mandatory-access-logging", "log")), nil,
			`only whoever "employees" lists as employee, where "log" says access(<reader>, "/doc", _) may read it (mandatory-access-logging, log log); there is no fact "log" says access("frank", "/doc", _)`, ``},
		{"no policy", Read, bob.Label(""), Conduit{Name: "/doc"}, nil,
			`nobody may read it (there is no policy)`, ``},
		{"conduit ids", Read, mustLibrary(t, "private", "alice").Label(""), at(mustLibrary(t, "conduit-ids", "bob")),
			nil,
			`only bob may read it (conduit-ids, owner bob); alice is not bob`, ``},
		{"writing what others read", Write, bob.Label(""), at(mustLibrary(t, "private", "alice")), session("alice", ""),
			`what the task writes is for bob only (private, owner bob); alice may read it (private, owner alice)`, ``},
		{"writing what everybody reads", Write, bob.Label(""), at(mustLibrary(t, "public")), session("bob", ""),
			`what the task writes is for bob only (private, owner bob); anybody may read it (public)`, ``},
		{"writing what ends earlier", Write, mustLibrary(t, "search-history", "bob").Label(""), at(bob),
			session("bob", ""),
			`what the task writes is protected for ever (search-history, owner bob), what derives from it there only until it goes through a conduit of kind descriptor (private, owner bob)`, ``},
		{"writing for somebody else", Write, Label{}, at(bob), session("alice", ""),
			`only bob may write it (private, owner bob); alice is not bob`, ``},
		{"writing what nobody may", Write, Label{}, at(mustLibrary(t, "public")), session("alice", ""),
			`nobody may write it (public)`, ``},
		{"writing text where descriptors pass", Write, Label{}, at(mustLibrary(t, "descriptor-only")),
			session("alice", ""),
			`it may be written only through a conduit of kind descriptor (descriptor-only); this is another conduit`,
			``},
		{"answering somebody else", Leave, bob.Label(""), Conduit{Name: "web", Kind: ConnectionConduit},
			session("alice", ""),
			`only bob may read it (private, owner bob); alice is not bob`, ``},
		{"answering elsewhere", Leave, carol.Label(""), Conduit{Name: "web", Kind: ConnectionConduit},
			session("carol", "us"),
			`only carol in region de may read it (worker, user carol, region de); carol is in region us`, ``},
		{"answering nobody", Leave, bob.Label(""), Conduit{Name: "web", Kind: ConnectionConduit}, nil,
			`only bob may read it (private, owner bob); nobody is authenticated`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			decision := Decide(test.operation, test.taint, test.conduit, world(t),
				Environment{Session: test.session, Now: noon, Explain: true})
			if decision.Allowed || decision.Sentence != test.want ||
				!strings.HasPrefix(decision.Reason, test.want+" [") {
				t.Errorf("allowed %v\ngot  %s\nwant %s", decision.Allowed, decision.Sentence, test.want)
			}
			remedy := ""
			if decision.Remedy != nil {
				remedy = map[bool]string{true: "add ", false: "remove "}[decision.Remedy.Add] +
					decision.Remedy.Fact.Conduit + " " +
					decision.Remedy.Fact.Relation + NewTuple(decision.Remedy.Fact.Arguments...).String()
			}
			if remedy != test.remedy {
				t.Errorf("remedy %q, want %q", remedy, test.remedy)
			}
		})
	}
}

// What may be read is decided by obligations: a read rule that the declassify rule does not keep denies nothing.
func TestWithoutObligationsAnybodyReads(t *testing.T) {
	bob := mustLibrary(t, "private", "bob").Label("")
	for declassify, want := range map[string]bool{
		`declassify :- true.`: true,
		`update :- sKeyIs("bob"). declassify :- isAsRestrictive(read, this.update) until cKindIs(descriptor).`: true,
		`declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`:                            false,
		``: false,
	} {
		data := Conduit{Name: "/doc", Kind: FileConduit, Policy: mustBind(t, `read :- sKeyIs("alice"). `+declassify)}
		if got := Decide(Read, bob, data, StateOf(NewFactBase(), nil), Environment{}); got.Allowed != want {
			t.Errorf("%q: allowed %t, %s", declassify, got.Allowed, got.Sentence)
		}
	}
}
