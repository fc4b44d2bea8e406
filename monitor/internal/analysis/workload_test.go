// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"math/rand/v2"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// workload is the population that the benchmarks analyse, in the paper's
// proportions: every user has private documents and posts for friends, friendship is
// symmetric, some documents are blocked in a region.
type workload struct {
	users   int
	friends int    // of each user, on average
	seed    uint64 // equal seeds give equal populations
}

// The policies are Sys-E's (crds/examples/syse/policies.yaml).
const workloadBlacklist = `sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }`

var workloadPolicies = []catalog.PolicyText{
	{Name: "friends", File: "friends", Text: `policy friends(owner) {
		read :- sKeyIs(owner), ` + workloadBlacklist + `.
		read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K), ` + workloadBlacklist + `.
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`},
	{Name: "index", File: "index", Text: `policy index {
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`},
	{Name: "private", File: "private", Text: `policy private(owner) {
		read :- sKeyIs(owner), ` + workloadBlacklist + `.
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`},
	{Name: "public", File: "public", Text: `policy public {
		read :- ` + workloadBlacklist + `.
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`},
	{Name: "worker", File: "worker", Text: `policy worker(user, region) {
		read :- sKeyIs(user), sRegionIs(region).
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
	}`},
}

// bundle is the workload's bundle, facts left out.
func (w workload) bundle() catalog.Bundle {
	owned := func(name string) catalog.Rule {
		return catalog.Rule{
			Set: "benchmark/documents", Kind: policy.FileConduit, Ingress: true,
			Path:   "/corpus/" + name + "/{owner}/**",
			Policy: catalog.Reference{Policy: name, Arguments: map[string]string{"owner": "{owner}"}},
		}
	}
	return catalog.Bundle{
		Hash: fmt.Sprintf("benchmark-%d-%d-%d", w.users, w.friends, w.seed), Policies: workloadPolicies,
		Rules: []catalog.Rule{
			{Set: "benchmark/documents", Kind: policy.FileConduit, Ingress: true, Path: "/corpus/public/**",
				Policy: catalog.Reference{Policy: "public"}},
			owned("private"), owned("friends"),
		},
	}
}

// plan is the workload's plan: an indexer, a search engine that reads the documents
// as well (as the paper's does), and a worker for each user.
func (w workload) plan() *Plan {
	index := catalog.Reference{Policy: "index"}
	reads := []string{"documents"}
	return &Plan{
		Pipeline: "benchmark",
		Sets:     []Set{{Name: "documents", Catalog: "benchmark/documents", Kind: policy.FileConduit, Ingress: true}},
		Tasks: []Task{
			{Name: "indexer", Taint: index, Reads: reads},
			{Name: "search", Taint: index, Reads: reads},
			{
				Name: "worker", Parameters: []string{"user", "region"}, Reads: reads,
				Taint: catalog.Reference{Policy: "worker",
					Arguments: map[string]string{"user": "{user}", "region": "{region}"}},
				Expect: []Expectation{{Conduit: "population", Says: "home", Parameters: []string{"user", "region"}}},
			},
		},
	}
}

func userName(i int) string { return fmt.Sprintf("user%05d", i) }

// facts are homes and friendships.
func (w workload) facts() []policy.Fact {
	random := rand.New(rand.NewPCG(w.seed, 1))
	regions := []string{"us", "de", "fr"}
	names := make([]policy.Value, w.users)
	var facts []policy.Fact
	for i := range names {
		names[i] = policy.String(userName(i))
		facts = append(facts, policy.Fact{Conduit: "population", Relation: "home",
			Arguments: []policy.Value{names[i], policy.String(regions[i%3])}})
	}
	if w.users < 2 {
		return facts
	}
	friend := func(a, b int) {
		facts = append(facts, policy.Fact{Conduit: "friends/" + names[a].Text(), Relation: "friend",
			Arguments: []policy.Value{names[b]}})
	}
	for i := range names {
		for range w.friends / 2 {
			other := (i + 1 + random.IntN(w.users-1)) % w.users
			friend(i, other)
			friend(other, i)
		}
	}
	for _, region := range regions {
		for range w.users / 100 {
			facts = append(facts, policy.Fact{Conduit: "blacklist/" + region, Relation: "blocked",
				Arguments: []policy.Value{policy.String(fmt.Sprintf("/corpus/public/%d", random.IntN(w.users)))}})
		}
	}
	return facts
}

// documents are one private and one friends-only document for each user, and as many
// public ones. The analysis' work depends on classes, not on how many documents are
// in each.
func (w workload) documents() []string {
	var names []string
	for i := range w.users {
		names = append(names, fmt.Sprintf("/corpus/public/%d", i), "/corpus/private/"+userName(i)+"/1",
			"/corpus/friends/"+userName(i)+"/1")
	}
	return names
}
