// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// crowd has a document of each of some users, which all may read who are in two sets: all are in the
// first one, and nobody is in the second.
func crowd(t *testing.T, users int) (*Plan, *catalog.Catalog) {
	t.Helper()
	workers := workload{users: users}
	plan, bundle := workers.plan(), workers.bundle()
	bundle.Policies = append(bundle.Policies, catalog.PolicyText{Name: "team", File: "team", Text: `policy team(owner) {
		read :- sKeyIs(owner).
		read :- sKeyIs(K), "staff" says member(K), "vetted" says member(K).
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
		declassify :- isAsRestrictive(read, this.read) until cTypeIs("topics").
	}`})
	team := catalog.Reference{Policy: "team", Arguments: map[string]string{"owner": "{owner}"}}
	bundle.Rules = []catalog.Rule{{Set: "benchmark/documents", Kind: policy.FileConduit, Ingress: true,
		Path: "/team/{owner}/**", Policy: team}}
	c := newCatalog(t, bundle)
	var names []string
	var facts []policy.Fact
	for i := range users {
		names = append(names, "/team/"+userName(i)+"/1")
		facts = append(facts, fact("population", "home", userName(i), "de"), fact("staff", "member", userName(i)))
	}
	if _, _, err := c.Register(names); err != nil {
		t.Fatal(err)
	}
	if _, err := addFacts(c, facts...); err != nil {
		t.Fatal(err)
	}
	return plan, c
}

// What is found of a set with all instances is as much as all instances have of all classes: it is not kept at once.
func TestCandidatesOfACrowdAreNotFoundTogether(t *testing.T) {
	const users = 300
	plan, c := crowd(t, users)
	instances := plan.Instances(c.State(), now)
	for _, test := range []struct {
		wide   int
		ended  bool
		search bool
	}{{wideInstance, false, true}, {1, false, false}, {wideInstance, true, false}} {
		together := &cohort{engine: prepared(plan, c.State(), Options{Now: now}), wide: test.wide,
			found: make([]*Capabilities, len(instances)), subjects: make([]*subject, len(instances)),
			candidates: make([][]uint32, len(instances))}
		for i, instance := range instances {
			together.subject(i, instance)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if test.ended {
			cancel()
		}
		together.searchClasses(ctx)
		cancel()
		found := 0
		for _, classes := range together.candidates {
			found += len(classes)
		}
		if searched := found > users*users; searched != test.search || !searched && found > 0 {
			t.Errorf("%+v: %d candidates", test, found)
		}
	}
	all, err := Run(t.Context(), plan, c.State(), Options{Now: now, cohort: users, wide: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range users {
		one, known := all.Instance(Instance{Task: "worker", Arguments: []string{userName(i), "de"}})
		if !known || len(one.Reads) != 1 {
			t.Fatalf("%s reads %v", userName(i), one)
		}
	}
}
