// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A policy zoo: what the generated bundles are made of.
var zoo = map[string]string{
	"open":    `policy open { read :- true. ` + exit + `}`,
	"nobody":  `policy nobody { update :- true. }`,
	"mine":    `policy mine(owner) { read :- sKeyIs(owner). update :- sKeyIs(owner). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`,
	"friends": `policy friends(owner) { read :- sKeyIs(owner). read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K). ` + exit + `}`,
	"circle":  `policy circle(owner) { read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(M), concat(G, "friends/", M), G says friend(K). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`,
	"region":  `policy region { read :- sRegionIs(R), concat(L, "blacklist/", R), each in L says blocked(D) { neq(D, this) }. declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`,
	"vip":     `policy vip(level) { read :- sKeyIs(K), "club" says member(K, level). ` + exit + `}`,
	"switch":  `policy switch(owner) { read :- "switch" says on(owner). ` + exit + `}`,
	"unlinked": `policy unlinked(owner) { read :- "club" says vip("c"). read :- sKeyIs(owner), "x" says vip(owner). ` +
		exit + `}`,
	"until":  `policy until(owner) { read :- sKeyIs(owner), timeIs(T), lt(T, 2018-01-01T00:00:00Z). ` + exit + `}`,
	"from":   `policy from(owner) { read :- sKeyIs(owner), timeIs(T), ge(T, 2018-01-01T00:00:00Z). ` + exit + `}`,
	"shared": `policy shared(owner) { read :- sKeyIs(K), "club" says shared(this, K). ` + exit + `}`,
	"named": `policy named { read :- sKeyIs(K), concat(L, "list/", this), L says open(K).
		read :- sKeyIs(K), concat(_L, "list/", this), "switch" says on(""), neq(K, ""). ` + exit + `}`,
	"either": `policy either(owner) { read :- sKeyIs(owner), sRegionIs("de"). read :- sRegionIs("us"), "switch" says on(owner). update :- "switch" says on("a"). ` + exit + `}`,
	"pair": `policy pair(one, other) { read :- sKeyIs(one), "friends/a" says friend(other). read :- sKeyIs(other). ` +
		exit + `}`,
	"asked": `policy asked(owner) { read :- sKeyIs(K), concat(F, "friends/", K), F says friend(owner), "deny" says none(), each in "deny" says blocked(D) { neq(D, this) }. ` + exit + `}`,
	"empty": `policy empty(owner) { read :- sKeyIs(owner), each in "deny" says none() { eq(1, 2) }. ` + exit + `}`,
}

var (
	people  = []string{"a", "b", "c", "a/b", ""}
	regions = []string{"de", "us"}
)

// randomFact is about what the zoo speaks of.
func randomFact(rt *rapid.T) policy.Fact {
	person := func() string { return rapid.SampledFrom(people).Draw(rt, "person") }
	document := func() string { return rapid.SampledFrom(documents()).Draw(rt, "document") }
	switch rapid.IntRange(0, 10).Draw(rt, "fact") {
	case 0, 1, 2:
		return fact("friends/"+person(), "friend", person())
	case 3:
		return fact("blacklist/"+rapid.SampledFrom(regions).Draw(rt, "region"), "blocked",
			"/d/region/"+rapid.SampledFrom([]string{"a/1", "a/2", "b/1"}).Draw(rt, "blocked"))
	case 4:
		return fact("club", "member", person(), person())
	case 5:
		return fact("switch", "on", rapid.SampledFrom([]string{"", person()}).Draw(rt, "on"))
	case 6:
		return fact(rapid.SampledFrom([]string{"club", "x"}).Draw(rt, "conduit"), "vip", person())
	case 7:
		return fact("list//d/named/"+rapid.SampledFrom([]string{"a/1", "a/2", "b/1"}).Draw(rt, "named"), "open",
			person())
	case 8:
		if rapid.Bool().Draw(rt, "none") {
			return fact("deny", "none")
		}
		return fact("deny", "blocked", document())
	case 9:
		return fact("club", "shared", document(), person())
	default:
		return fact("population", "home", person(), rapid.SampledFrom(regions).Draw(rt, "home"))
	}
}

func documents() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(zoo)) {
		for _, owner := range people[:3] {
			names = append(names, "/d/"+name+"/"+owner+"/1")
		}
		names = append(names, "/d/"+name+"/a/2")
	}
	return names
}

// zooBundle has one rule for each policy, and tasks with different taints.
func zooBundle(t testing.TB) (*Plan, catalog.Bundle) {
	t.Helper()
	bundle := catalog.Bundle{Hash: "zoo"}
	for _, name := range slices.Sorted(maps.Keys(zoo)) {
		text := zoo[name]
		bundle.Policies = append(bundle.Policies, catalog.PolicyText{Name: name, File: name, Text: text})
		template, err := policy.CompileText(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		arguments := make(map[string]string)
		for _, parameter := range template.Parameters() {
			arguments[parameter] = "{owner}"
		}
		bundle.Rules = append(bundle.Rules, catalog.Rule{
			Set: "zoo/documents", Kind: policy.FileConduit, Ingress: true, Path: "/d/" + name + "/{owner}/**",
			Policy: catalog.Reference{Policy: name, Arguments: arguments},
		})
	}
	for name, text := range map[string]string{
		"worker": `policy worker(user, region) { read :- sKeyIs(user), sRegionIs(region). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`,
		"club":   `policy club { read :- sKeyIs(K), "club" says vip(K). }`,
		"closed": `policy closed { declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`,
	} {
		bundle.Policies = append(bundle.Policies, catalog.PolicyText{Name: name, File: name, Text: text})
	}
	slices.SortFunc(bundle.Policies, func(a, b catalog.PolicyText) int {
		return bytes.Compare([]byte(a.Name),
			[]byte(b.Name))
	})
	both := []string{"documents"}
	return &Plan{
		Pipeline: "zoo",
		Tasks: []Task{
			{Name: "club", Taint: catalog.Reference{Policy: "club"}, Reads: both, Writes: both},
			{Name: "indexer", Taint: catalog.Reference{Policy: "closed"}, Reads: both, Writes: both},
			{
				Name: "worker", Parameters: []string{"user", "region"}, Reads: both, Writes: both,
				Taint: catalog.Reference{Policy: "worker",
					Arguments: map[string]string{"user": "{user}", "region": "{region}"}},
				Expect: []Expectation{{Conduit: "population", Says: "home", Parameters: []string{"user", "region"}}},
			},
		},
		Sets: []Set{{Name: "documents", Catalog: "zoo/documents", Kind: policy.FileConduit, Ingress: true}},
	}, bundle
}

func TestJoinEqualsTheNaiveProduct(t *testing.T) {
	plan, bundle := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t, bundle)
		defer c.Close()
		populate(rt, c)
		alone := run(t, plan, c)
		checkAgainstNaive(rt, plan, c, alone)
		// A population is analysed in cohorts, class by class.
		options := Options{Now: now, search: true, cohort: rapid.IntRange(1, 5).Draw(rt, "cohort"),
			wide: rapid.IntRange(1, 30).Draw(rt, "wide")}
		together, err := Run(context.Background(), plan, c.State(), options)
		if err != nil {
			rt.Fatal(err)
		}
		checkAgainstNaive(rt, plan, c, together)
		if !together.equal(alone) {
			rt.Fatal("other accesses are expected later")
		}
	})
}

func populate(rt *rapid.T, c *catalog.Catalog) {
	if _, _, err := c.Register(rapid.SliceOfNDistinct(rapid.SampledFrom(documents()), 10, 50, rapid.ID).Draw(rt,
		"documents")); err != nil {
		rt.Fatal(err)
	}
	var facts []policy.Fact
	for range rapid.IntRange(5, 30).Draw(rt, "facts") {
		facts = append(facts, randomFact(rt))
	}
	for _, class := range c.State().ClassesOfPolicy("zoo/documents", "shared") { // no document has this name
		facts = append(facts, fact("club", "shared", fmt.Sprint(standIn, class), rapid.SampledFrom(people).Draw(rt, "with")))
	}
	if _, err := addFacts(c, facts...); err != nil {
		rt.Fatal(err)
	}
}

// checkAgainstNaive also compares with decisions conduit by conduit, which knows
// nothing of classes.
func checkAgainstNaive(rt *rapid.T, plan *Plan, c *catalog.Catalog, r *Result) {
	naive, err := runNaive(context.Background(), plan, c.State(), Options{Now: now})
	if err != nil {
		rt.Fatal(err)
	}
	for i, got := range r.Instances() {
		want := naive.Instances()[i]
		want.begins = got.begins // of policies without a class, too
		if diff := cmp.Diff(want.Reads, got.Reads); diff != "" {
			rt.Fatalf("%s reads: %s", got.Instance.Name(), diff)
		}
		if diff := cmp.Diff(want.Writes, got.Writes); diff != "" {
			rt.Fatalf("%s writes: %s", got.Instance.Name(), diff)
		}
	}
	if !r.equal(naive) {
		rt.Fatal("the conditions differ")
	}
	s := c.State()
	for _, capabilities := range r.Instances() {
		who, err := newSubject(plan, s, capabilities.Instance)
		if err != nil {
			rt.Fatal(err)
		}
		for id := uint32(1); id <= s.Conduits(); id++ {
			conduit, _ := s.ConduitByID(int64(id))
			decision := policy.Decide(policy.Read, who.taint, conduit, s,
				policy.Environment{Session: who.session, Now: now})
			if decision.Allowed != capabilities.mayRead(s.ClassOf(id)) {
				rt.Fatalf("%s reads %s (class %d): decided %v by itself: %s", capabilities.Instance.Name(),
					conduit.Name, s.ClassOf(id), decision.Allowed, decision.Reason)
			}
		}
	}
}

func TestIncrementalEqualsAFullRun(t *testing.T) {
	plan, bundle := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t, bundle)
		defer c.Close()
		populate(rt, c)
		r := run(t, plan, c)
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			change := randomChange(rt, c)
			next, affected, err := r.Update(context.Background(), change, Options{Now: now})
			if err != nil {
				rt.Fatal(err)
			}
			full := run(t, plan, c)
			if len(full.instances) != len(next.instances) {
				rt.Fatalf("step %d: %d instances, want %d", step, len(next.instances), len(full.instances))
			}
			for i, want := range full.instances {
				got := next.instances[i]
				if diff := cmp.Diff(want.Reads, got.Reads); diff != "" {
					rt.Fatalf("step %d (added %v, removed %v, classes %v): %s reads: %s", step, change.Added,
						change.Removed, change.Classes, want.Instance.Name(), diff)
				}
				// An access that holds already keeps the proof it was found with, so
				// conditions are not compared: were they wrong, a later step would
				// leave an access that a full run does not give.
				if !slices.Equal(want.Writes, got.Writes) || !slices.Equal(want.Others, got.Others) {
					rt.Fatalf("step %d (added %v, removed %v): %s writes %v, want %v", step, change.Added,
						change.Removed, want.Instance.Name(), got.Writes, want.Writes)
				}
			}
			checkAffected(rt, r, next, affected)
			r = next
		}
	})
}

func randomChange(rt *rapid.T, c *catalog.Catalog) *catalog.Change {
	if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
		name := rapid.SampledFrom(documents()).Draw(rt, "document")
		_, change, err := c.Register([]string{name})
		if err != nil {
			rt.Fatal(err)
		}
		return change
	}
	var add, remove []policy.Fact
	for range rapid.IntRange(0, 3).Draw(rt, "add") {
		add = append(add, randomFact(rt))
	}
	for range rapid.IntRange(0, 6).Draw(rt, "remove") {
		remove = append(remove, randomFact(rt))
	}
	remove = append(remove, someOf(rt, c.State())...)
	change, err := c.AtOnce().ChangeFacts(remove, add)
	if err != nil {
		rt.Fatal(err)
	}
	return change
}

// someOf draws facts that are there.
func someOf(rt *rapid.T, state *catalog.State) (some []policy.Fact) {
	var all []policy.Fact
	state.FactIndex().All(func(one policy.Fact) bool {
		if !one.Positioned {
			all = append(all, one)
		}
		return true
	})
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b policy.Fact) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(rt, "facts that are there")
}

// checkAffected compares what Update says it did with what it did.
func checkAffected(rt *rapid.T, before, after *Result, affected []Affected) {
	want := difference(before.instances, after.instances)
	if len(want) != len(affected) {
		rt.Fatalf("%d instances affected, want %d", len(affected), len(want))
	}
	for i := range want {
		if want[i].Instance.compare(affected[i].Instance) != 0 || !slices.Equal(want[i].Gained, affected[i].Gained) ||
			!slices.Equal(want[i].Lost, affected[i].Lost) {
			rt.Fatalf("affected: %+v, want %+v", affected[i], want[i])
		}
	}
}
