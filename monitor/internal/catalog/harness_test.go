// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"shai.dev/monitor/policy"
)

const (
	publicText = `policy public {
		read       :- sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }.
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`
	privateText = `policy private(owner) {
		read       :- sKeyIs(owner), sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }.
		update     :- sKeyIs(owner).
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`
	namedText = `policy named { read :- concat(L, "list/", this), L says open(). }`
)

const (
	aliceFirst  = "/corpus/private/alice/1"
	aliceSecond = "/corpus/private/alice/2"
)

func testBundle(hash string) Bundle {
	return Bundle{
		Hash: hash, Manifest: []byte("manifest"),
		Policies: []PolicyText{
			{Name: "public", File: "public.pol", Text: publicText},
			{Name: "private", File: "private.pol", Text: privateText},
			{Name: "named", File: "named.pol", Text: namedText},
		},
		Rules: []Rule{
			{Set: "p/documents", Kind: policy.FileConduit, Ingress: true, Path: "/corpus/public/**",
				Policy: Reference{Policy: "public"}},
			{Set: "p/documents", Kind: policy.FileConduit, Ingress: true, Path: "/corpus/private/{owner}/**",
				Policy: Reference{"private", map[string]string{"owner": "{owner}"}}},
			{Set: "p/documents", Kind: policy.FileConduit, Ingress: true, Path: "/corpus/named/**",
				Policy: Reference{Policy: "named"}},
		},
		Principals: []Principal{{Name: "alice", PublicKey: strings.Repeat("ab", 32)}},
		Facts:      []policy.Fact{fact("regions", "prefix", "127.0.0.0/8", "us")},
	}
}

func fact(conduit, relation string, values ...string) policy.Fact {
	f := policy.Fact{Conduit: conduit, Relation: relation}
	for _, value := range values {
		f.Arguments = append(f.Arguments, policy.String(value))
	}
	return f
}

func open(t testing.TB, dir string) *Catalog {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func opened(t testing.TB) *Catalog {
	t.Helper()
	c := open(t, t.TempDir())
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	return c
}

func register(t testing.TB, c *Catalog, names ...string) []uint32 {
	t.Helper()
	ids, _, err := c.Register(names)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func classOf(t testing.TB, s *State, name string) uint32 {
	t.Helper()
	id, ok := s.ID(name)
	if !ok {
		t.Fatalf("%s is not registered", name)
	}
	return s.ClassOf(id)
}

// dump is everything a state says, for comparison.
func dump(s *State) []string {
	lines := []string{fmt.Sprintf("bundle %s %d, version %d", s.BundleHash(), s.Bundle().Version, s.FactsVersion())}
	lines = append(lines, texts(all(s))...)
	for id := uint32(1); id <= s.Conduits(); id++ {
		name, _ := s.Name(id)
		lines = append(lines, fmt.Sprintf("conduit %d %s class %d", id, name, s.ClassOf(id)))
	}
	for number := uint32(1); number <= s.Classes(); number++ {
		info := s.Class(number)
		lines = append(lines, fmt.Sprintf("class %d %s %s %q members %d, live %v", number, info.Set,
			info.Reference.key(), info.Mentions, info.Members, info.Policy != nil))
	}
	return lines
}

func addFacts(c *Catalog, facts ...policy.Fact) (*Change, error) {
	return c.AtOnce().ChangeFacts(nil, facts)
}

func removeFacts(c *Catalog, facts ...policy.Fact) (*Change, error) {
	return c.AtOnce().ChangeFacts(facts, nil)
}
