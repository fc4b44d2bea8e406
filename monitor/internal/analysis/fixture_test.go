// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

var now = time.Date(2017, 6, 1, 0, 0, 0, 0, time.UTC)

// sysE reads the pipeline that is shipped with the project.
func sysE(t testing.TB) (*Plan, catalog.Bundle) {
	t.Helper()
	sources, err := manifest.Read(nil, "../../../crds/examples/syse")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := manifest.Parse(sources...).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	define := map[string]string{"JAVA": "/j", "JAVA_HOME": "/h", "SYSE": "/s", "REDIS_SOCKET": "/r",
		"KEYS": "/srv/keys"}
	resolved, err := bundle.Resolve("syse", define)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := PlanOf(resolved)
	if err != nil {
		t.Fatal(err)
	}
	return plan, catalogBundle(t, bundle, plan)
}

// catalogBundle turns manifests into a bundle, as the monitor does.
func catalogBundle(t testing.TB, bundle *manifest.Bundle, plan *Plan) catalog.Bundle {
	t.Helper()
	out := catalog.Bundle{Hash: bundle.Hash()}
	for _, p := range bundle.EnforcedPolicies() {
		out.Policies = append(out.Policies, catalog.PolicyText{Name: p.Metadata.Name, File: p.Metadata.Name,
			Text: p.Spec.Text})
	}
	for _, pipeline := range bundle.Pipelines() {
		for i, conduit := range pipeline.Spec.Conduits {
			for _, path := range conduit.Paths {
				out.Rules = append(out.Rules, catalog.Rule{
					Set: plan.Sets[i].Catalog, Kind: plan.Sets[i].Kind, Ingress: conduit.Ingress,
					Internal: !conduit.Ingress && !conduit.Egress, Directory: conduit.Directory,
					Type: conduit.Type, Path: path.Path, Policy: catalog.Reference{Policy: path.Policy.Name,
						Arguments: path.Policy.Arguments},
				})
			}
		}
	}
	return out
}

func newCatalog(t testing.TB, bundle catalog.Bundle) *catalog.Catalog {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "catalog")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Apply(bundle); err != nil {
		t.Fatal(err)
	}
	return c
}

func fact(conduit, relation string, values ...string) policy.Fact {
	f := policy.Fact{Conduit: conduit, Relation: relation}
	for _, value := range values {
		f.Arguments = append(f.Arguments, policy.String(value))
	}
	return f
}

// village is Sys-E with a few users: alice and bob are friends, dave is bob's friend,
// carol has no friends. One public document is blocked in de. Erin and frank work for the support.
func village(t testing.TB) (*Plan, *catalog.Catalog) {
	t.Helper()
	plan, bundle := sysE(t)
	c := newCatalog(t, bundle)
	var names []string
	var facts []policy.Fact
	for i, user := range []string{"alice", "bob", "carol", "dave"} {
		for _, kind := range []string{"private", "friends", "circles"} {
			names = append(names, fmt.Sprintf("/corpus/%s/%s/1.txt", kind, user),
				fmt.Sprintf("/corpus/%s/%s/2.txt", kind, user))
		}
		facts = append(facts, fact("population", "home", user, []string{"de", "us", "de", "fr"}[i]))
	}
	names = append(names, "/corpus/public/1.txt", "/corpus/public/2.txt", "/corpus/public/3.txt")
	facts = append(facts,
		fact("friends/alice", "friend", "bob"), fact("friends/bob", "friend", "alice"),
		fact("friends/bob", "friend", "dave"), fact("friends/dave", "friend", "bob"),
		fact("blacklist/de", "blocked", "/corpus/public/1.txt"),
		fact("blacklist/us", "blocked", "/corpus/private/alice/1.txt"),
		fact("employees", "employee", "erin"), fact("employees", "office", "erin", "us"),
		fact("employees", "employee", "frank"), fact("employees", "office", "frank", "de"))
	if _, _, err := c.Register(names); err != nil {
		t.Fatal(err)
	}
	if _, err := addFacts(c, facts...); err != nil {
		t.Fatal(err)
	}
	return plan, c
}

func run(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
	t.Helper()
	result, err := Run(context.Background(), plan, c.State(), Options{Now: now, search: true})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// readable lists the documents that an instance may read.
func readable(t testing.TB, r *Result, c *catalog.Catalog, instance Instance) map[string]bool {
	t.Helper()
	capabilities, ok := r.Instance(instance)
	if !ok {
		t.Fatalf("%s was not analysed", instance.Name())
	}
	names := make(map[string]bool)
	s := c.State()
	for id := uint32(1); id <= s.Conduits(); id++ {
		if name, _ := s.Name(id); capabilities.mayRead(s.ClassOf(id)) {
			names[name] = true
		}
	}
	return names
}

func addFacts(c *catalog.Catalog, facts ...policy.Fact) (*catalog.Change, error) {
	return c.AtOnce().ChangeFacts(nil, facts)
}

func removeFacts(c *catalog.Catalog, facts ...policy.Fact) (*catalog.Change, error) {
	return c.AtOnce().ChangeFacts(facts, nil)
}

// mayRead reports whether a class is in the capability set.
func (c *Capabilities) mayRead(class uint32) bool {
	_, found := slices.BinarySearch(c.Reads, class)
	return found
}
