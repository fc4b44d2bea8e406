// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// suggested is what is suggested so that a user may read a conduit, divided into the clause and what it holds for.
func suggested(t *testing.T, plan *Plan, c *catalog.Catalog, who Instance, name string) (whole, clause, scope string) {
	t.Helper()
	conduit, found := c.State().ConduitNamed(name)
	if !found {
		t.Fatalf("there is no %s", name)
	}
	whole = Suggest(plan, c.State(), who, policy.Read, conduit, now)
	_, rest, _ := strings.Cut(whole, "add `")
	clause, scope, _ = strings.Cut(rest, "`; ")
	return whole, clause, scope
}

// reads says which of the conduits an instance may read, once a clause is added to a policy.
func reads(t *testing.T, plan *Plan, c *catalog.Catalog, instance Instance, names []string) map[string]bool {
	t.Helper()
	who, err := newSubject(plan, c.State(), instance)
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{}
	for _, name := range names {
		conduit, _ := c.State().ConduitNamed(name)
		to := &target{conduit: conduit, label: conduit.Label(), name: name}
		may[name] = decide(who, policy.Read, to, c.State(), now, nil).Allowed
	}
	return may
}

// A suggested reader gets the documents of one owner, and the suggestion says that it gets all of these.
func TestSuggestedReadersGetOneOwnersDocuments(t *testing.T) {
	plan, bundle := sysE(t)
	c := newCatalog(t, bundle)
	alices := []string{"/corpus/private/alice/1.txt", "/corpus/private/alice/2.txt"}
	others := "/corpus/private/carol/1.txt"
	if _, _, err := c.Register(slices.Concat(alices, []string{others})); err != nil {
		t.Fatal(err)
	}
	bob := Instance{Task: "worker", Arguments: []string{"bob", "de"}}
	suggestion, clause, scope := suggested(t, plan, c, bob, alices[0])
	if scope != `this holds for all conduits under private(owner: "alice"), and under policies that include it` {
		t.Errorf("the suggestion %q does not say what it opens", suggestion)
	}
	text, _ := c.State().PolicyText("private")
	if _, err := c.Apply(changed(t, bundle, "private", strings.TrimSuffix(strings.TrimSpace(text), "}")+clause+"}",
		catalog.Enforce)); err != nil {
		t.Fatal(err)
	}
	may := reads(t, plan, c, bob, slices.Concat(alices, []string{others}))
	if !may[alices[0]] || !may[alices[1]] || may[others] {
		t.Errorf("with the suggestion %q, bob may read %v", suggestion, may)
	}
}

// A suggestion for conduits with a number and a time among their arguments opens none with another number or time.
func TestSuggestedReadersGetOneNumberAndTime(t *testing.T) {
	const text = `policy private(owner, level: integer, end: time) {
		read :- sKeyIs(owner), gt(level, 0), timeIs(T), lt(T, end).
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
		declassify :- isAsRestrictive(read, this.read)
			until cTypeIs("topics"), cNameIs(C), each in C willsay topic(T) { "topics" says topic(T) }.`
	plan, bundle := sysE(t)
	bundle = changed(t, bundle, "private", text+"}", catalog.Enforce)
	bundle.Rules = slices.DeleteFunc(bundle.Rules, func(r catalog.Rule) bool { return r.Policy.Policy == "private" })
	names := []string{"/corpus/1/a", "/corpus/2/a", "/corpus/3/a"}
	for i, arguments := range []map[string]string{
		{"owner": "alice", "level": "1", "end": "2200-01-01T00:00:00Z"},
		{"owner": "alice", "level": "2", "end": "2200-01-01T00:00:00Z"},
		{"owner": "alice", "level": "1", "end": "2200-01-01T00:00:01Z"},
	} {
		bundle.Rules = append(bundle.Rules, catalog.Rule{Set: "syse/documents", Kind: policy.FileConduit, Ingress: true,
			Path: names[i], Policy: catalog.Reference{Policy: "private", Arguments: arguments}})
	}
	c := newCatalog(t, bundle)
	if _, _, err := c.Register(names); err != nil {
		t.Fatal(err)
	}
	bob := Instance{Task: "worker", Arguments: []string{"bob", "de"}}
	suggestion, clause, _ := suggested(t, plan, c, bob, names[0])
	bundle.Hash = "with the suggestion"
	isPrivate := func(p catalog.PolicyText) bool { return p.Name == "private" }
	bundle.Policies[slices.IndexFunc(bundle.Policies, isPrivate)].Text =
		text + clause + "}"
	if _, err := c.Apply(bundle); err != nil {
		t.Fatal(err)
	}
	if may := reads(t, plan, c, bob, names); !may[names[0]] || may[names[1]] || may[names[2]] {
		t.Errorf("with the suggestion %q, bob may read %v", suggestion, may)
	}
}

// Nobody can change a policy of the standard library: the suggestion is about a copy.
func TestSuggestionsAboutTheLibraryAreForACopy(t *testing.T) {
	plan, bundle := sysE(t)
	at := slices.IndexFunc(bundle.Policies, func(p catalog.PolicyText) bool { return p.Name == "private" })
	bundle.Policies[at].Name, bundle.Policies[at].File = "library/private", "library/private"
	for i := range bundle.Rules {
		if bundle.Rules[i].Policy.Policy == "private" {
			bundle.Rules[i].Policy.Policy = "library/private"
		}
	}
	c := newCatalog(t, bundle)
	name := "/corpus/private/alice/1.txt"
	if _, _, err := c.Register([]string{name}); err != nil {
		t.Fatal(err)
	}
	suggestion, _, scope := suggested(t, plan, c, Instance{Task: "worker", Arguments: []string{"bob", "de"}}, name)
	const begin = "in the place of library/private, a copy of it (shai policy library private): add `read :- "
	if !strings.HasPrefix(suggestion, begin) ||
		scope != `this holds for the conduits that get the copy with the arguments (owner: "alice")` {
		t.Errorf("suggestion %q", suggestion)
	}
}
