// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// sysePolicies compiles the example pipeline's policies, by manifest name.
func sysePolicies(t testing.TB) map[string]*Template {
	t.Helper()
	const path = "../../crds/examples/syse/policies.yaml"
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	templates := make(map[string]*Template)
	for decoder := yaml.NewDecoder(file); ; {
		var manifest struct {
			Metadata struct{ Name string }
			Spec     struct{ Text string }
		}
		err := decoder.Decode(&manifest)
		if errors.Is(err, io.EOF) {
			return templates
		}
		if err != nil {
			t.Fatal(err)
		}
		template, err := CompileText(path, []byte(manifest.Spec.Text))
		if err != nil {
			t.Fatal(err)
		}
		templates[manifest.Metadata.Name] = template
	}
}

// syse is the state of the Sys-E tests: alice and bob are friends, carol is a friend
// of bob only, and Germany blocks one document of each kind.
func syse(t testing.TB) State {
	return stateOf(t,
		`friends/alice says friend ["bob"]`, `friends/bob says friend ["alice"]`,
		`friends/bob says friend ["carol"]`, `friends/carol says friend ["bob"]`,
		`population says home ["alice","de"]`, `population says home ["bob","us"]`,
		`blacklist/de says blocked ["/corpus/public/17.txt"]`,
		`blacklist/de says blocked ["/corpus/friends/bob/17.txt"]`,
		`blacklist/de says blocked ["/corpus/private/alice/17.txt"]`)
}

func TestSysEReads(t *testing.T) {
	policies := sysePolicies(t)
	state := syse(t)
	tests := []struct {
		user, region, policy, arguments, conduit string
		allowed                                  bool
		conditions                               []string
	}{
		{"alice", "de", "public", "", "/corpus/public/1.txt", true,
			[]string{`"blacklist/de" does not say blocked("/corpus/public/1.txt")`}},
		{"alice", "de", "public", "", "/corpus/public/17.txt", false, nil},
		{"alice", "us", "public", "", "/corpus/public/17.txt", true,
			[]string{`"blacklist/us" does not say blocked("/corpus/public/17.txt")`}},
		{"alice", "de", "private", "alice", "/corpus/private/alice/1.txt", true,
			[]string{`"blacklist/de" does not say blocked("/corpus/private/alice/1.txt")`}},
		{"alice", "de", "private", "alice", "/corpus/private/alice/17.txt", false, nil},
		{"bob", "de", "private", "alice", "/corpus/private/alice/1.txt", false, nil},
		{"alice", "de", "friends", "bob", "/corpus/friends/bob/1.txt", true,
			[]string{`"blacklist/de" does not say blocked("/corpus/friends/bob/1.txt")`,
				`"friends/bob" says friend("alice")`}},
		{"alice", "de", "friends", "bob", "/corpus/friends/bob/17.txt", false, nil},
		{"alice", "fr", "friends", "bob", "/corpus/friends/bob/17.txt", true,
			[]string{`"blacklist/fr" does not say blocked("/corpus/friends/bob/17.txt")`,
				`"friends/bob" says friend("alice")`}},
		{"alice", "de", "friends", "alice", "/corpus/friends/alice/1.txt", true,
			[]string{`"blacklist/de" does not say blocked("/corpus/friends/alice/1.txt")`}},
		{"carol", "de", "friends", "alice", "/corpus/friends/alice/1.txt", false, nil},
		{"carol", "de", "friends-of-friends", "alice", "/corpus/circles/alice/1.txt", true,
			[]string{`"friends/alice" says friend("bob")`, `"friends/bob" says friend("carol")`}},
		{"dora", "de", "friends-of-friends", "alice", "/corpus/circles/alice/1.txt", false, nil},
		{"alice", "de", "profile", "alice", "profile:alice", true, nil},
		{"alice", "de", "profile", "bob", "profile:bob", false, nil},
		{"alice", "de", "search-history", "alice,de", "history:alice:de", true, nil},
		{"alice", "de", "search-history", "alice,us", "history:alice:us", false, nil},
		{"alice", "de", "search-history", "bob,de", "history:bob:de", false, nil},
		{"alice", "de", "descriptors", "", "results", true, nil},
		{"alice", "de", "index", "", "/index/0/segments_1", false, nil},
		{"alice", "de", "internal", "", "queries", false, nil},
	}
	for _, test := range tests {
		t.Run(test.user+" "+test.region+" "+test.conduit, func(t *testing.T) {
			taint := mustBindTemplate(t, policies["worker"], test.user, test.region).Label("worker")
			arguments := strings.FieldsFunc(test.arguments, func(r rune) bool { return r == ',' })
			label := mustBindTemplate(t, policies[test.policy], arguments...).Label(test.conduit)
			environment := Environment{Now: noon}
			decision := mayRead(taint, label, state, environment)
			if decision.Allowed != test.allowed {
				t.Fatalf("allowed is %v, want %v: %s", decision.Allowed, test.allowed, decision.Reason)
			}
			if diff := cmp.Diff(test.conditions, conditionTexts(decision.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			checkConditions(t, decision, state, environment)
		})
	}
}

// The indexer and the search engine may pass data to nobody, and so may read everything
// that may end as a descriptor.
func TestSysEIndexerReadsEverything(t *testing.T) {
	policies := sysePolicies(t)
	taint := mustBindTemplate(t, policies["index"]).Label("indexer")
	for name, arguments := range map[string][]string{
		"public": {}, "private": {"alice"}, "friends": {"bob"}, "friends-of-friends": {"bob"}, "index": {},
	} {
		decision := mayRead(taint, mustBindTemplate(t, policies[name], arguments...).Label("/corpus/x"), syse(t),
			Environment{})
		if !decision.Allowed || len(decision.Conditions) > 0 {
			t.Errorf("indexer reads %s: %v %v %s, want it to be unconditional", name, decision.Allowed,
				decision.Conditions, decision.Reason)
		}
	}
	// Neither what users have searched for nor what derives from it may reach the index.
	for name, p := range map[string]*Policy{
		"a history":          mustBindTemplate(t, policies["search-history"], "alice", "de"),
		"a history for ever": mustLibrary(t, "search-history", "alice"),
		"a query":            mustBindTemplate(t, policies["internal"]),
	} {
		if decision := mayRead(taint, p.Label("history:alice/de"), syse(t), Environment{}); decision.Allowed {
			t.Errorf("the indexer may read %s", name)
		}
	}
}

func TestSysEWrites(t *testing.T) {
	policies := sysePolicies(t)
	bind := func(name string, arguments ...string) *Policy {
		return mustBindTemplate(t, policies[name], arguments...)
	}
	worker := bind("worker", "alice", "de").Label("worker")
	indexer := bind("index").Label("indexer")
	engine := bind("engine").Label("search")
	queries := Conduit{Name: "syse/queries/3", Kind: PipeConduit, Internal: true, Policy: bind("internal")}
	outside := queries
	outside.Internal = false
	results := Conduit{Name: "syse/results/3", Kind: DescriptorConduit, Internal: true, Policy: bind("descriptors")}
	textual := results
	textual.Kind = PipeConduit
	elsewhere := results
	elsewhere.Name = "syse/suggestions/3"
	index := Conduit{Name: "/index/0/segments_1", Kind: FileConduit, Internal: true, Policy: bind("index")}
	history := func(owner, region string) Conduit {
		return Conduit{Name: "history:" + owner + ":" + region, Kind: TupleConduit,
			Policy: bind("search-history", owner, region)}
	}
	profile := func(owner string) Conduit {
		return Conduit{Name: "profile:" + owner, Kind: TupleConduit, Policy: bind("profile", owner)}
	}
	tests := []struct {
		name    string
		taint   Label
		target  Conduit
		session *Session
		allowed bool
	}{
		{"worker sends a query", worker, queries, session("alice", "de"), true},
		{"worker sends a query outside", worker, outside, session("alice", "de"), false},
		{"engine forwards a query", engine, queries, session("task/search", ""), true},
		{"engine answers with descriptors", engine, results, session("task/search", ""), true},
		{"engine answers with text", engine, textual, session("task/search", ""), false},
		{"engine answers by another channel", engine, elsewhere, session("task/search", ""), false},
		{"what has read queries writes the index", engine, index, session("task/indexer", ""), false},
		{"worker's data becomes descriptors", worker, results, session("alice", "de"), true},
		{"worker's data becomes descriptors elsewhere", worker, elsewhere, session("alice", "de"), false},
		{"indexer writes the index", indexer, index, session("task/indexer", ""), true},
		{"engine writes the index", engine, index, session("task/search", ""), false},
		{"worker writes the index", worker, index, session("alice", "de"), false},
		{"worker writes its user's history", worker, history("alice", "de"), session("alice", "de"), true},
		{"worker writes another region's history", worker, history("alice", "us"), session("alice", "de"), false},
		{"worker writes another's history", worker, history("bob", "de"), session("alice", "de"), false},
		{"worker writes another's profile", worker, profile("bob"), session("alice", "de"), false},
		// profile(alice) lets alice read in any region, the taint only in one.
		{"worker writes its user's profile", worker, profile("alice"), session("alice", "de"), false},
		{"engine writes a profile", engine, profile("alice"), session("alice", "de"), false},
		{"nothing is written without a policy", Label{}, Conduit{Name: "x", Kind: FileConduit}, session("alice", "de"),
			false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			environment := Environment{Session: test.session, Now: noon}
			decision := mayWrite(test.taint, test.target, syse(t), environment)
			if decision.Allowed != test.allowed {
				t.Errorf("allowed is %v, want %v: %s", decision.Allowed, test.allowed, decision.Reason)
			}
			checkConditions(t, decision, syse(t), environment)
		})
	}
}

// A tuple that its owner may read only at home can be written by the owner's worker
// there: the comparison splits into cases over the home facts.
func TestWriteToHomeRegion(t *testing.T) {
	policies := sysePolicies(t)
	const text = `
		read       :- sKeyIs("alice"), sRegionIs(R), "population" says home("alice", R).
		update     :- sKeyIs("alice").
		declassify :- isAsRestrictive(read, this.read)
		              until cKindIs(descriptor), cNameIs(N), concat(N, "syse/results/", _).`
	target := Conduit{Name: "history:alice", Kind: TupleConduit, Policy: mustBind(t, text)}
	for region, allowed := range map[string]bool{"de": true, "us": false} {
		taint := mustBindTemplate(t, policies["worker"], "alice", region).Label("worker")
		environment := Environment{Session: session("alice", region), Now: noon}
		decision := mayWrite(taint, target, syse(t), environment)
		if decision.Allowed != allowed {
			t.Errorf("in %s: allowed is %v, want %v: %s", region, decision.Allowed, allowed, decision.Reason)
		}
		checkConditions(t, decision, syse(t), environment)
	}
	taint := mustBindTemplate(t, policies["worker"], "alice", "de").Label("worker")
	decision := mayWrite(taint, target, syse(t), Environment{Session: session("alice", "de")})
	moved := stateOf(t, `population says home ["alice","de"]`, `population says home ["alice","us"]`)
	if holds := slices.ContainsFunc(decision.Conditions, func(c Condition) bool {
		return !c.Holds(moved, Environment{Session: session("alice", "de")})
	}); !holds {
		t.Errorf("a second home breaks none of %v", decision.Conditions)
	}
}

func TestSysELeaves(t *testing.T) {
	policies := sysePolicies(t)
	web := Conduit{Name: "web", Kind: ConnectionConduit}
	worker := mustBindTemplate(t, policies["worker"], "alice", "de").Label("worker")
	engine := mustBindTemplate(t, policies["engine"]).Label("search")
	document := mustBindTemplate(t, policies["friends"], "bob").Label("/corpus/friends/bob/17.txt")
	tests := []struct {
		name       string
		taint      Label
		egress     Conduit
		session    *Session
		allowed    bool
		conditions []string
	}{
		{"alice at home", worker, web, session("alice", "de"), true,
			[]string{`the session's principal is "alice"`, `the session's region is "de"`}},
		{"alice elsewhere", worker, web, session("alice", "us"), false, nil},
		{"bob", worker, web, session("bob", "de"), false, nil},
		{"nobody", worker, web, nil, false, nil},
		{"not authenticated", worker, web, session("", "de"), false, nil},
		{"the engine's data", engine, web, session("alice", "de"), false, nil},
		{"the engine's data as descriptors", engine, Conduit{Name: "syse/results/3", Kind: DescriptorConduit},
			session("alice", "de"), true, nil},
		{"the engine's data as descriptors elsewhere", engine, Conduit{Name: "d", Kind: DescriptorConduit},
			session("alice", "de"), false, nil},
		{"a friend's blocked document", document, web, session("alice", "de"), false, nil},
		{"a friend's document", document, web, session("alice", "us"), true,
			[]string{`"blacklist/us" does not say blocked("/corpus/friends/bob/17.txt")`,
				`"friends/bob" says friend("alice")`,
				`the session's principal is "alice"`, `the session's region is "us"`}},
		{"public data by a private connection", Label{}, Conduit{Name: "web", Kind: ConnectionConduit,
			Policy: mustLibrary(t, "private", "alice")}, session("bob", "de"), false, nil},
		{"public data", Label{}, web, nil, true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			environment := Environment{Session: test.session, Now: noon}
			decision := mayLeave(test.taint, test.egress, syse(t), environment)
			if decision.Allowed != test.allowed {
				t.Fatalf("allowed is %v, want %v: %s", decision.Allowed, test.allowed, decision.Reason)
			}
			if diff := cmp.Diff(test.conditions, conditionTexts(decision.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			checkConditions(t, decision, syse(t), environment)
		})
	}
}

func TestSysECandidates(t *testing.T) {
	policies := sysePolicies(t)
	taint := mustBindTemplate(t, policies["worker"], "alice", "de").Label("worker")
	tests := map[string][][]string{
		"public":             {{}},
		"private":            {{"alice"}},
		"friends":            {{"alice"}, {"bob"}},
		"friends-of-friends": {{"alice"}, {"bob"}, {"carol"}},
		"profile":            {{"alice"}},
		"worker":             {{"alice", "de"}},
	}
	for name, want := range tests {
		got, complete, _ := policies[name].Candidates(taint, syse(t), Environment{Now: noon})
		if diff := cmp.Diff(want, got); diff != "" || !complete {
			t.Errorf("%s: complete is %v, candidates (-want +got):\n%s", name, complete, diff)
		}
	}
}

func TestDenialNamesWhatIsMissing(t *testing.T) {
	policies := sysePolicies(t)
	taint := mustBindTemplate(t, policies["worker"], "carol", "us").Label("worker")
	label := mustBindTemplate(t, policies["friends"], "alice").Label("/corpus/friends/alice/1.txt")
	decision := mayRead(taint, label, syse(t), Environment{Now: noon, Explain: true})
	for _, part := range []string{`friends(owner: "alice")`, "/corpus/friends/alice/1.txt",
		`"friends/alice" says friend("carol")`, "adding it"} {
		if !strings.Contains(decision.Reason, part) {
			t.Errorf("reason %q does not mention %s", decision.Reason, part)
		}
		if !strings.Contains(decision.Derivation.String(), part) {
			t.Errorf("the derivation does not mention %s:\n%s", part, decision.Derivation)
		}
	}
}
