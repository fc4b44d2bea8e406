// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A pipeline with one policy on its documents, /d/{owner}/1, and with a worker for each of a and
// b, who live in de and us. The indexer's taint is for nobody.
func onePolicy(t testing.TB, text string, documents ...string) (*Plan, *catalog.Catalog) {
	t.Helper()
	return onePolicyAnd(t, nil, text, documents...)
}

// onePolicyAnd is the same with other policies that are there.
func onePolicyAnd(t testing.TB, others []catalog.PolicyText, text string, documents ...string) (*Plan,
	*catalog.Catalog) {
	t.Helper()
	bundle := catalog.Bundle{Hash: "one", Policies: []catalog.PolicyText{
		{Name: "closed", File: "closed", Text: `policy closed { ` + exit + ` }`},
		{Name: "documents", File: "documents", Text: text},
		{Name: "free", File: "free", Text: `policy free { declassify :- true. }`},
		{Name: "worker", File: "worker", Text: `policy worker(user, region) { read :- sKeyIs(user), sRegionIs(region). ` +
			exit + ` }`},
	}}
	bundle.Policies = append(bundle.Policies, others...)
	template, err := policy.CompileText("documents", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]string{}
	for _, parameter := range template.Parameters() {
		arguments[parameter] = "{owner}"
	}
	bundle.Rules = []catalog.Rule{{Set: "one/documents", Kind: policy.FileConduit, Ingress: true,
		Path: "/d/{owner}/**", Policy: catalog.Reference{Policy: "documents", Arguments: arguments}}}
	c := newCatalog(t, bundle)
	if _, _, err := c.Register(documents); err != nil {
		t.Fatal(err)
	}
	if _, err := addFacts(c, fact("population", "home", "a", "de"), fact("population", "home", "b", "us")); err != nil {
		t.Fatal(err)
	}
	both := []string{"documents"}
	return &Plan{
		Pipeline: "one",
		Tasks: []Task{
			{Name: "indexer", Taint: catalog.Reference{Policy: "closed"}, Reads: both, Writes: both},
			{
				Name: "worker", Parameters: []string{"user", "region"}, Reads: both, Writes: both,
				Taint: catalog.Reference{Policy: "worker",
					Arguments: map[string]string{"user": "{user}", "region": "{region}"}},
				Expect: []Expectation{{Conduit: "population", Says: "home", Parameters: []string{"user", "region"}}},
			},
		},
		Sets: []Set{{Name: "documents", Catalog: "one/documents", Kind: policy.FileConduit, Ingress: true}},
	}, c
}

// What a change of one fact gives and takes is found however the policy is written.
func TestChangesFollowThePolicyAndNotItsText(t *testing.T) {
	changed := fact("list", "open-to", "a")
	for name, text := range map[string]string{
		"a hyphen in the relation": `read :- sKeyIs(K), "list" says open-to(K).`,
		"a comment after says": `read :- sKeyIs(K), "list" says # for whom it is
			open-to(K).`,
		"the relation on the next line": "read :- sKeyIs(K), \"list\" says\n\n\topen-to\n(K).",
		"a removed fact opens a write":  `update :- sKeyIs(K), each in "list" says open-to(D) { neq(D, K) }.`,
		"a removed fact opens a read":   `read :- sKeyIs(K), each in "list" says open-to(D) { neq(D, K) }.`,
		"a brace in a string in an each": `read :- sKeyIs(K), each in "list" says open-to(D) { neq(D, "}"), neq(D, "b"),
			neq(D, K) }.`,
		"an each in an each": `read :- sKeyIs(K),
			each in "all" says one(D) { each in "list" says open-to(E) { neq(E, K), neq(E, D) } }.`,
		"a tuple for each tuple": `read :- sKeyIs(_K), each in "all" says one(D) { "list" says open-to(D) }.`,
		"syntax in strings and comments": `# each in "list" says other(D) { neq(D, this) }
			read :- sKeyIs(K), neq(K, "says other("), neq(K, "each in x says y(D) {"), "list" says open-to(K).`,
		"the owner's document": `policy documents(owner) { read :- sKeyIs(_K), "list" says open-to(owner). }`,
		"for all of a region":  `read :- sRegionIs("us"), "list" says open-to("a").`,
		"a name made of parts": `policy documents(owner) { read :- sKeyIs(K), concat(K, owner, ""), concat(N, "li", "st"), N says open-to(owner). }`,
		"after until": `read :- sKeyIs("a").
			declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor), "list" says open-to("a").`,
		"an update by those whom the read rule admits": `read :- "list" says open-to(K), sKeyIs(K).
			update :- sKeyIs(K), "list" says open-to(K).`,
		"a removed fact leaves only readers whom the taint admits": `read :- "list" says open-to(K), sKeyIs(K), sRegionIs("de").
			update :- sKeyIs("a").`,
		"the rule of the policy itself": `read :- sKeyIs("b"). read :- sKeyIs(K), "list" says open-to(K).
			update :- isAsRestrictive(this.read, this.update). update :- sKeyIs("a"), sRegionIs("de").`,
	} {
		t.Run(name, func(t *testing.T) {
			if inner, isBlock := strings.CutSuffix(text, "}"); isBlock {
				text = inner + exit + "}"
			} else if !strings.Contains(text, "declassify") {
				text += "\n" + exit
			}
			plan, c := onePolicy(t, text, "/d/a/1", "/d/b/1")
			alsoElsewhere(plan, c)
			if _, err := addFacts(c, fact("all", "one", "a"), fact("list", "open-to", "z")); err != nil {
				t.Fatal(err)
			}
			r := run(t, plan, c)
			before := canonical(r)
			var differs bool
			for step, change := range []func() (*catalog.Change, error){
				func() (*catalog.Change, error) { return addFacts(c, changed) },
				func() (*catalog.Change, error) { return removeFacts(c, changed) },
				func() (*catalog.Change, error) { return removeFacts(c, fact("list", "open-to", "z")) },
				func() (*catalog.Change, error) { return addFacts(c, changed) },
			} {
				done, err := change()
				r, _ = follow(t, r, done, err)
				if full := canonical(run(t, plan, c)); canonical(r) != full {
					t.Errorf("step %d: incremental\n%s\nfull\n%s", step, canonical(r), full)
				}
				differs = differs || canonical(r) != before
			}
			if !differs {
				t.Error("no step changes anything: the case shows nothing")
			}
		})
	}
}

// alsoElsewhere puts the policy on a pipe, too, and makes it the taint of a further task.
func alsoElsewhere(plan *Plan, c *catalog.Catalog) {
	reference := catalog.Reference{Policy: "documents", Arguments: map[string]string{}}
	for _, parameter := range c.State().Template("documents").Parameters() {
		reference.Arguments[parameter] = "a"
	}
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit, Policy: &reference,
		From: "indexer", To: "worker"})
	both := []string{"documents", "pipe"}
	plan.Tasks = append(plan.Tasks, Task{Name: "same", Taint: reference})
	for i := range plan.Tasks {
		plan.Tasks[i].Reads, plan.Tasks[i].Writes = both, both
	}
}

// canonical writes what a result gives, without the proofs: an access that holds already keeps
// the one that it was found with.
func canonical(r *Result) string {
	var out strings.Builder
	for _, c := range r.instances {
		fmt.Fprintf(&out, "%s reads %v, writes %v, uses %v\n", c.Instance.Name(), c.Reads, c.Writes, c.Others)
	}
	return out.String()
}

// Sessions of an instance without the parameter user are of many users: no access is validated that
// one of them may not have, as a task of that name might.
func TestNothingRestsOnAUserWhoIsNotKnown(t *testing.T) {
	for _, test := range []struct {
		parameters []string
		writes     int
	}{{[]string{"user", "region"}, 1}, {[]string{"region"}, 0}, {[]string{"user"}, 0}} {
		plan, c := onePolicy(t, `update :- sKeyIs(K), each in "deny" says none-of(D) { neq(D, K) }, sRegionIs(R), neq(R, "fr").
			`+exit, "/d/a/1", "/d/b/1")
		plan.Tasks[1].Parameters, plan.Tasks[1].Taint = test.parameters, catalog.Reference{Policy: "closed"}
		for _, one := range run(t, plan, c).Instances() {
			if one.Instance.Task == "worker" && len(one.Writes) != test.writes {
				t.Errorf("%s may write %d classes ahead of time, want %d", one.Instance.Name(), len(one.Writes), test.writes)
			}
		}
	}
}
