// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"testing"
)

// benchmarkRead compares a worker's taint with the label of a document while every
// friend list has 100 entries and the blacklist 2,250.
func benchmarkRead(b *testing.B, name, owner string, allowed bool) {
	policies := sysePolicies(b)
	base := NewFactBase()
	add := func(conduit, relation, argument string) {
		if _, err := base.Add(Fact{Conduit: conduit, Relation: relation,
			Arguments: []Value{String(argument)}}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100 {
		add("friends/bob", "friend", fmt.Sprintf("user%05d", i))
		add(fmt.Sprintf("friends/user%05d", i), "friend", "bob")
	}
	for i := range 2250 {
		add("blacklist/de", "blocked", fmt.Sprintf("/corpus/public/%d.txt", i))
	}
	taint := mustBindTemplate(b, policies["worker"], "user00042", "de").Label("worker")
	var arguments []string
	if owner != "" {
		arguments = []string{owner}
	}
	label := mustBindTemplate(b, policies[name], arguments...).Label("/corpus/friends/bob/1.txt")
	state, environment := StateOf(base, NewConduitTable()), Environment{Now: noon}
	b.ReportAllocs()
	for b.Loop() {
		if mayRead(taint, label, state, environment).Allowed != allowed {
			b.Fatal("wrong decision")
		}
	}
}

func BenchmarkReadPublic(b *testing.B)        { benchmarkRead(b, "public", "", true) }
func BenchmarkReadPrivate(b *testing.B)       { benchmarkRead(b, "private", "user00042", true) }
func BenchmarkReadFriends(b *testing.B)       { benchmarkRead(b, "friends", "bob", true) }
func BenchmarkReadFriendsDenied(b *testing.B) { benchmarkRead(b, "friends", "carol", false) }
func BenchmarkReadFriendsOfFriends(b *testing.B) {
	benchmarkRead(b, "friends-of-friends", "user00007", true)
}

func BenchmarkWriteQuery(b *testing.B) {
	policies := sysePolicies(b)
	taint := mustBindTemplate(b, policies["worker"], "alice", "de").Label("worker")
	target := Conduit{Name: "queries", Kind: PipeConduit, Internal: true,
		Policy: mustBindTemplate(b, policies["internal"])}
	state, environment := syse(b), Environment{Now: noon, Session: session("alice", "de")}
	b.ReportAllocs()
	for b.Loop() {
		if !mayWrite(taint, target, state, environment).Allowed {
			b.Fatal("wrong decision")
		}
	}
}

func BenchmarkCandidatesFriends(b *testing.B) {
	policies := sysePolicies(b)
	base := NewFactBase()
	for i := range 100 {
		if _, err := base.Add(Fact{Conduit: fmt.Sprintf("friends/user%05d", i), Relation: "friend",
			Arguments: []Value{String("alice")}}); err != nil {
			b.Fatal(err)
		}
	}
	taint := mustBindTemplate(b, policies["worker"], "alice", "de").Label("worker")
	state := StateOf(base, NewConduitTable())
	b.ReportAllocs()
	for b.Loop() {
		if found, complete, _ := policies["friends"].Candidates(taint, state, Environment{Now: noon}); len(found) != 101 ||
			!complete {
			b.Fatal("wrong candidates")
		}
	}
}

func BenchmarkBindFriends(b *testing.B) {
	policies := sysePolicies(b)
	b.ReportAllocs()
	for b.Loop() {
		mustBindTemplate(b, policies["friends"], "bob")
	}
}
