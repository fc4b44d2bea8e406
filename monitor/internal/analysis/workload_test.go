// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

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

// workloadPolicies are Sys-E's.
var workloadPolicies = sync.OnceValue(func() (texts []catalog.PolicyText) {
	file, err := os.Open("../../../crds/examples/syse/policies.yaml")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var manifest struct {
			Metadata struct{ Name string }
			Spec     struct{ Text string }
		}
		if err := decoder.Decode(&manifest); errors.Is(err, io.EOF) {
			return texts
		} else if err != nil {
			panic(err)
		}
		switch name := manifest.Metadata.Name; name {
		case "friends", "index", "private", "public", "worker":
			texts = append(texts, catalog.PolicyText{Name: name, File: name, Text: manifest.Spec.Text})
		}
	}
})

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
		Hash: fmt.Sprintf("benchmark-%d-%d-%d", w.users, w.friends, w.seed), Policies: workloadPolicies(),
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

// factBatches yields homes and friendships in lists of about so many, those of one conduit in
// one list.
func (w workload) factBatches(size int) iter.Seq[[]policy.Fact] {
	return func(yield func([]policy.Fact) bool) {
		names := make([]policy.Value, w.users)
		for i := range names {
			names[i] = policy.String(userName(i))
		}
		batch := append(w.homes(names), w.blacklists()...)
		for i, friends := range w.friendships() {
			conduit := "friends/" + userName(i)
			for _, friend := range friends {
				batch = append(batch, policy.Fact{Conduit: conduit, Relation: "friend",
					Arguments: names[friend : friend+1 : friend+1]})
			}
			if len(batch) >= size {
				if !yield(batch) {
					return
				}
				batch = batch[:0]
			}
		}
		yield(batch)
	}
}

// facts are all of them.
func (w workload) facts() []policy.Fact {
	var facts []policy.Fact
	for batch := range w.factBatches(math.MaxInt) {
		facts = append(facts, batch...)
	}
	return facts
}

var workloadRegions = []string{"us", "de", "fr"}

func (w workload) homes(names []policy.Value) []policy.Fact {
	facts := make([]policy.Fact, len(names))
	for i, name := range names {
		facts[i] = policy.Fact{Conduit: "population", Relation: "home",
			Arguments: []policy.Value{name, policy.String(workloadRegions[i%len(workloadRegions)])}}
	}
	return facts
}

// friendships lists each user's friends, most of them different ones.
func (w workload) friendships() [][]uint32 {
	random := rand.New(rand.NewPCG(w.seed, 1))
	friends := make([][]uint32, w.users)
	if w.users < 2 {
		return friends
	}
	for i := range friends {
		for range w.friends / 2 {
			other := (i + 1 + random.IntN(w.users-1)) % w.users
			friends[i] = append(friends[i], uint32(other))
			friends[other] = append(friends[other], uint32(i))
		}
	}
	return friends
}

func (w workload) blacklists() []policy.Fact {
	random := rand.New(rand.NewPCG(w.seed, 2))
	var facts []policy.Fact
	for _, region := range workloadRegions {
		for range w.users / 100 {
			facts = append(facts, policy.Fact{Conduit: "blacklist/" + region, Relation: "blocked",
				Arguments: []policy.Value{policy.String(publicDocument(random.IntN(w.users)))}})
		}
	}
	return facts
}

func publicDocument(i int) string { return fmt.Sprintf("/corpus/public/%05d/%07d.txt", i/1000, i) }

// documents are one private and one friends-only document for each user, and as many
// public ones. The analysis' work depends on classes, not on how many documents are
// in each.
func (w workload) documents() []string { return slices.Collect(w.listing(3 * w.users)) }

// listing yields so many documents in the order of a walk through the corpus: a third of
// them for friends, a third private and the others public.
func (w workload) listing(documents int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, kind := range []string{"friends", "private"} {
			for i := range w.users {
				directory := "/corpus/" + kind + "/" + userName(i) + "/"
				for j := range (documents/3*(i+1))/w.users - (documents/3*i)/w.users {
					if !yield(directory + fmt.Sprintf("%05d.txt", j)) {
						return
					}
				}
			}
		}
		for i := range documents - documents/3*2 {
			if !yield(publicDocument(i)) {
				return
			}
		}
	}
}
