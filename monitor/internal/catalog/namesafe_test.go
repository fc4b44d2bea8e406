// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

// clauses of which the policies of the next test consist.
var (
	readClauses = []string{
		`true`, `true`, `sKeyIs("alice")`,
		`sRegionIs(L), each in L says t(D) { neq(D, this) }`,
		`sRegionIs(L), each in L says t(D) { neq(D, this) }`,
		`"list" says t(D), sRegionIs(L), each in L says t(E) { neq(E, D) }`,
		`"list" says t(D), sRegionIs(L), each in L says t(E) { neq(E, D) }`,
		`concat(this, "/d/", "4")`,
		`"list" says t(this)`,
		`"list" says t("/d/1")`,
		`"list" says t(D), "link" says u(D, this)`,
		`"list" says t(D), "link" says u(this, D)`,
		`each in "list" says t(D) { neq(D, this) }`,
		`each in "link" says u(D, E) { neq(D, this), neq(E, "a") }`,
		`each in "link" says u(D, E) { neq(D, this), "list" says t(E) }`,
		`each in "list" says t(D) { "link" says u(D, this) }`,
		`this says t(X), "list" says t(X)`,
		`sKeyIs(K), "link" says u(this, K)`,
		`sKeyIs(K), "link" says u(K, K)`,
		`"link" says u(this, this)`,
		`sKeyIs(L), L says t(this)`,
		`"list" says t(L), L says t(this)`,
		`"log"@O says l(this, O)`,
		`"list" says t(D), each in "link" says u(E, _F) { neq(E, D) }`,
		`sKeyIs(owner), "list" says t(owner)`,
		`neq(this, "/d/2")`,
		`concat(L, "x", this), L says t("a")`,
	}
	exitConditions = []string{
		`cKindIs(descriptor)`, `cNameIs(N), "list" says t(N)`, `cNameIs("/d/2")`, `cNameIs(N), concat(N, "/d/", "4")`,
		`cKindIs(file), "list" says t(this)`,
	}
)

func drawPolicy(t *rapid.T, name string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "policy %s(owner) {\n", name)
	for _, clause := range rapid.SliceOfN(rapid.SampledFrom(readClauses), 1, 2).Draw(t, "read") {
		fmt.Fprintf(&text, "read :- %s.\n", clause)
	}
	fmt.Fprintf(&text, "update :- %s.\n", rapid.SampledFrom(readClauses).Draw(t, "update"))
	fmt.Fprintf(&text, "declassify :- isAsRestrictive(read, this.read) until %s.\n}",
		rapid.SampledFrom(exitConditions).Draw(t, "exit"))
	return text.String()
}

// isAccepted reports whether the policy may be used at all: not every exit goes with every rule.
func isAccepted(text string) bool {
	template, err := policy.CompileText("p.pol", []byte(text))
	return err == nil && template.CheckSupplied() == nil
}

// No decision tells two conduits of one class apart: not as what is read, for whatever taint
// and whoever asks, and not as what is written by those who know it by its class only.
func TestNoDecisionTellsConduitsOfAClassApart(t *testing.T) {
	values := []string{"/d/0", "/d/1", "/d/2", "/d/3", "a", "alice"}
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		bundle := Bundle{Hash: "1"}
		for i := range 3 {
			name := fmt.Sprint("p", i)
			text := rapid.Custom(func(t *rapid.T) string { return drawPolicy(t, name) }).Filter(isAccepted).
				Draw(t, name)
			bundle.Policies = append(bundle.Policies, PolicyText{Name: name, File: name, Text: text})
		}
		bundle.Rules = []Rule{{Set: "d", Kind: policy.FileConduit, Path: "/d/**",
			Policy: Reference{"p0", map[string]string{"owner": rapid.SampledFrom(values).Draw(t, "owner")}}}}
		rules, err := compileBundle(bundle)
		if err != nil {
			t.Fatal(err)
		}
		facts := drawFacts(t, values)
		groups := make(map[string][]string)
		for i := range 6 {
			name := fmt.Sprint("/d/", i)
			found, ok, err := rules.cover(nil, name) // no rule has choices
			if err != nil || !ok {
				t.Fatal(err)
			}
			record, err := rules.classRecordOf(name, found, facts, rules.bind)
			if err != nil {
				t.Fatal(err)
			}
			groups[record.key()] = append(groups[record.key()], name)
		}
		for _, key := range sortedKeys(groups) {
			for _, other := range groups[key][1:] {
				kinds["pairs"]++
				checkAlike(t, rules, facts, values, groups[key][0], other, kinds)
			}
		}
	})
	t.Logf("%v", kinds)
	if kinds["pairs"] == 0 || kinds["allowed"] == 0 || kinds["denied"] == 0 {
		t.Errorf("of %v, one says nothing", kinds)
	}
}

func drawFacts(t *rapid.T, values []string) *policy.FactIndex {
	var list []policy.Fact
	for range rapid.IntRange(0, 8).Draw(t, "facts") {
		value := func() string { return rapid.SampledFrom(values).Draw(t, "value") }
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0, 1:
			list = append(list, fact("list", "t", value()))
		case 2:
			list = append(list, fact("link", "u", value(), value()))
		case 3:
			list = append(list, fact(rapid.SampledFrom([]string{"", "x"}).Draw(t, "x")+value(), "t", value()))
		case 4:
			one := factAt(rapid.Int64Range(0, 1).Draw(t, "offset"), "log", "l", value())
			one.Arguments = append(one.Arguments, policy.Integer(rapid.Int64Range(0, 1).Draw(t, "number")))
			list = append(list, one)
		}
	}
	facts, _, _, err := new(policy.FactIndex).Changed(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// checkAlike makes every decision about two conduits.
func checkAlike(t *rapid.T, rules *ruleset, facts *policy.FactIndex, values []string, one, other string,
	kinds map[string]int) {
	state := policy.StateOf(facts, policy.NewConduitTable())
	bound, err := rules.bind(rules.bundle.Rules[0].Policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p0", "p1", "p2"} {
		for _, who := range slices.Concat(values, []string{"bob"}) {
			taint, err := rules.bind(Reference{name, map[string]string{"owner": "alice"}})
			if err != nil {
				t.Fatal(err)
			}
			decide := func(what policy.Operation, name string) policy.Decision {
				conduit := policy.Conduit{Name: name, Kind: policy.FileConduit, Policy: bound, Directory: true}
				return policy.Decide(what, taint.Label("task w"), conduit, state,
					policy.Environment{Session: &policy.Session{Principal: who}})
			}
			for _, what := range []policy.Operation{policy.Read, policy.Write, policy.Leave} {
				first, second := decide(what, one), decide(what, other)
				if first.Allowed != second.Allowed {
					t.Fatalf("%v of %s by %s with the taint %s: %v; of %s: %v\n%s\n%s", what, one, who, name, first.Allowed,
						other, second.Allowed, first.Reason, second.Reason)
				}
				kinds[map[bool]string{true: "allowed", false: "denied"}[first.Allowed]]++
			}
		}
	}
}

// observing is a bundle with a policy for documents, and another one.
func observing(document, other string) Bundle {
	return Bundle{Hash: "1", Manifest: []byte("m"),
		Policies: []PolicyText{{Name: "document", File: "d.pol", Text: document},
			{Name: "other", File: "o.pol", Text: other}},
		Rules: []Rule{{Set: "p/d", Kind: policy.FileConduit, Path: "/d/**", Policy: Reference{Policy: "document"}},
			{Set: "p/own", Kind: policy.FileConduit, Path: "/own/{name}/**",
				Policy: Reference{"other", map[string]string{"owner": "/own/{name}/x"}}}},
	}
}

const (
	unlisted = `policy document { read :- sRegionIs(L), each in L says t(E) { neq(E, this) }. }`
	anyOwner = `policy other(owner) { read :- sKeyIs(owner). }`
)

// Which facts about a document change its class.
func TestFactsThatPoliciesFindMakeClasses(t *testing.T) {
	taking := `policy other(owner) { read :- "list" says t(D), sRegionIs(L), each in L says t(E) { neq(E, D) }. }`
	for name, test := range map[string]struct {
		bundle Bundle
		fact   policy.Fact
		moves  bool
		own    string // has a class of its own
	}{
		"its policy looks for it":          {observing(unlisted, anyOwner), fact("de", "t", "/d/1"), true, ""},
		"another policy takes it":          {observing(unlisted, taking), fact("list", "u", "/d/1"), false, ""},
		"another relation":                 {observing(unlisted, anyOwner), fact("de", "u", "/d/1"), false, ""},
		"another number of values":         {observing(unlisted, anyOwner), fact("de", "t", "/d/1", "x"), false, ""},
		"a log, which no policy asks":      {observing(unlisted, anyOwner), factAt(7, "log", "access", "eve", "/d/1"), false, ""},
		"a log of which entries are taken": {observing(unlisted, taking), factAt(7, "list", "t", "/d/1"), true, ""},
		"a policy names it": {observing(unlisted, `policy other(owner) { read :- "list" says u("/d/1"). }`),
			fact("list", "u", "/d/1"), false, "/d/1"},
		"its own argument": {observing(unlisted, `policy other(owner) { read :- "list" says u(owner). }`),
			fact("list", "u", "/own/a/x"), false, "/own/a/x"},
		"what it says": {observing(`policy document { read :- this says open(). }`, anyOwner), fact("/d/1", "open"), true, ""},
	} {
		c := open(t, t.TempDir())
		if _, err := c.Apply(test.bundle); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		register(t, c, "/d/1", "/d/2", "/own/a/x")
		change, err := addFacts(c, test.fact)
		s := c.State()
		if test.own != "" && s.Class(classOf(t, s, test.own)).Own != test.own {
			t.Errorf("%s: the class of %s has others", name, test.own)
		}
		for _, one := range []string{"/d/1", "/d/2"} {
			if own := s.Class(classOf(t, s, one)).Own; own != "" && own != test.own {
				t.Errorf("%s: the class of %s is of %q alone", name, one, own)
			}
		}
		if err != nil || (len(change.Moved) == 1) != test.moves || len(change.Moved) > 1 {
			t.Errorf("%s: moved %v, want one: %v (%v)", name, change.Moved, test.moves, err)
		}
	}
}

// A taint can depend on a fact that the document's own policy does not ask for: with the fact
// that the list has the one document, it covers that one and not the other.
func TestOtherPoliciesTellDocumentsApart(t *testing.T) {
	taking := `policy other(owner) { read :- "list" says t(D), sRegionIs(L), each in L says t(E) { neq(E, D) }. }`
	for text, want := range map[string]bool{taking: true, anyOwner: false} {
		rules, err := compileBundle(observing(strings.ReplaceAll(unlisted, " t(E)", " v(E)"), strings.ReplaceAll(text,
			"L says t(E)", "L says v(E)")))
		if err != nil {
			t.Fatal(err)
		}
		facts, _, _, err := new(policy.FactIndex).Changed(nil, []policy.Fact{fact("list", "t", "/d/1")})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		var allowed []bool
		for _, name := range []string{"/d/1", "/d/2"} {
			found, _, err := rules.cover(nil, name)
			if err != nil {
				t.Fatal(err)
			}
			record, err := rules.classRecordOf(name, found, facts, rules.bind)
			if err != nil {
				t.Fatal(err)
			}
			taint, err := rules.bind(Reference{"other", map[string]string{"owner": "x"}})
			if err != nil {
				t.Fatal(err)
			}
			bound, err := rules.bind(Reference{Policy: "document"})
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, record.key())
			allowed = append(allowed, policy.Decide(policy.Read, taint.Label("task w"),
				policy.Conduit{Name: name, Kind: policy.FileConduit, Policy: bound},
				policy.StateOf(facts, policy.NewConduitTable()), policy.Environment{}).Allowed)
		}
		if told := allowed[0] != allowed[1]; told != want || (keys[0] != keys[1]) != want {
			t.Errorf("%s: told apart: %v, other classes: %v, want both: %v", text, told, keys[0] != keys[1], want)
		}
	}
}

// Entries of a log about documents, which no policy asks for, make no classes.
func TestLogOfDocumentsMakesNoClasses(t *testing.T) {
	c := open(t, t.TempDir())
	if _, err := c.Apply(observing(unlisted, anyOwner)); err != nil {
		t.Fatal(err)
	}
	var names []string
	var entries []policy.Fact
	for i := range 2000 {
		names = append(names, fmt.Sprint("/d/", i))
		entries = append(entries, factAt(int64(40*i), "log", "access", "eve", names[i]),
			factAt(int64(40*i+20), "log", "access", "eve", names[0]))
	}
	register(t, c, names...)
	before := c.State().Classes()
	for _, part := range [][]policy.Fact{entries[:1000], entries[1000:2000], entries[2000:]} {
		if change, err := addFacts(c, part...); err != nil || len(change.Added) != len(part) || len(change.Moved) > 0 {
			t.Fatalf("%d added, %d moved, %v", len(change.Added), len(change.Moved), err)
		}
	}
	if after := c.State().Classes(); after != before {
		t.Errorf("%d classes instead of %d", after, before)
	}
}
