// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestRegisterAndClasses(t *testing.T) {
	c := opened(t)
	ids := register(t, c, "/corpus/public/1", "/corpus/public/2", "/elsewhere/x", "/corpus/private/alice/1",
		"/corpus/private/bob/1", "/corpus/public/1")
	if want := []uint32{1, 2, 0, 3, 4, 1}; !slices.Equal(ids, want) {
		t.Fatalf("numbers %v, want %v", ids, want)
	}
	s := c.State()
	if classOf(t, s, "/corpus/public/1") != classOf(t, s, "/corpus/public/2") {
		t.Error("two public documents are in two classes")
	}
	alice, bob := classOf(t, s, "/corpus/private/alice/1"), classOf(t, s, "/corpus/private/bob/1")
	if alice == bob || alice == 0 {
		t.Errorf("classes of alice and bob: %d, %d", alice, bob)
	}
	if got := s.ClassesWith("p/documents", "private", []string{"alice"}); !slices.Equal(got, []uint32{alice}) {
		t.Errorf("private(alice): %v, want %d", got, alice)
	}
	if info := s.Class(alice); info.Members != 1 || info.Representative != 3 ||
		info.Policy.String() != `private(owner: "alice")` {
		t.Errorf("class of alice: %+v", info)
	}
	if _, ok := s.ConduitByName("/elsewhere/x"); ok {
		t.Error("a conduit without a policy is known")
	}
	if conduit, ok := s.ConduitByID(3); !ok || conduit.Name != "/corpus/private/alice/1" ||
		conduit.Kind != policy.FileConduit {
		t.Errorf("conduit 3: %+v, %v", conduit, ok)
	}
	if conduit, ok := s.ConduitNamed("/corpus/private/carol/9"); !ok || conduit.ID != 0 || conduit.Policy == nil {
		t.Errorf("an unregistered document: %+v, %v", conduit, ok)
	}
}

func TestNameDependentPoliciesShareNoClass(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/named/1", "/corpus/named/2")
	if s := c.State(); classOf(t, s, "/corpus/named/1") == classOf(t, s, "/corpus/named/2") {
		t.Error("a policy that looks at the name in its own way has one class for two names")
	}
}

func TestNameSafe(t *testing.T) {
	for text, want := range map[string]bool{
		publicText: true, privateText: true, namedText: false,
		`policy a { read :- true. declassify :- isAsRestrictive(read, this . read) until cKindIs(descriptor). }`: true,
		`policy a { read :- cNameIs("/x"). }`:                                                 false,
		`policy a { read :- eq(this, "/x"). }`:                                                false,
		`policy a { read :- eq(X, "this"). }`:                                                 true,
		`policy a { read :- true. # this` + "\n }":                                            true,
		`policy a { read :- "a#b" says t(X), neq(X, this). }`:                                 false,
		`policy a { read :- "log" says t(this, K), sKeyIs(K). }`:                              true,
		`policy a { read :- each in "log" says t(D) { neq("/x", this) }. }`:                   false,
		`policy a { read :- each in "log" says t(D) { neq(E, this) }. }`:                      false,
		`policy a { read :- each in "log" says t(D, X) { neq(this, D) }. }`:                   true,
		`policy a { read :- each in "log" says t(D) { lt(D, this) }. }`:                       false,
		`policy a { read :- each in this says t(D) { neq(D, this) }. }`:                       false,
		`policy a { read :- this says t(D). }`:                                                false,
		`policy a { update :- hasPol(I, P), "x" willsay t(I). }`:                              false,
		`policy a { read :- concat(L, "this", "/x"), L says t(). }`:                           true,
		`policy a(this_owner) { read :- sKeyIs(this_owner). }`:                                true,
		`policy a { read :- each in "l" says t(D) { neq(D, this), "m" says u(D) }. }`:         false,
		`policy a { read :- "l" says t(f(this)). }`:                                           false,
		`policy a { read :- "quote\" this" says t(X), lt(X, this). update :- sKeyIs("\\"). }`: false,
	} {
		if got := nameSafe(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestChangeFacts(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/public/1", "/corpus/public/2", "/corpus/private/alice/1")
	before := c.State()
	change, err := addFacts(c, fact("friends/alice", "friend", "bob"), fact("friends/alice", "friend", "bob"),
		fact("friends/bob", "friend", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	if len(change.Added) != 2 || len(change.Removed) != 0 || len(change.Moved) != 0 {
		t.Errorf("added %v, removed %v, moved %v", change.Added, change.Removed, change.Moved)
	}
	if before.Has(policy.Pattern{Conduit: "friends/alice", Relation: "friend",
		Arguments: []policy.Value{policy.String("bob")}}) {
		t.Error("an old state shows a new fact")
	}
	again, err := addFacts(c, fact("friends/alice", "friend", "bob"))
	if err != nil || len(again.Added) != 0 || again.After.FactsVersion() != change.After.FactsVersion() {
		t.Errorf("a fact that stands: %v, %v", again, err)
	}
	both, err := c.ChangeFacts([]policy.Fact{fact("friends/alice", "friend", "bob")},
		[]policy.Fact{fact("friends/alice", "friend", "bob")})
	if err != nil || len(both.Added)+len(both.Removed) != 0 {
		t.Errorf("removed and added: %v, %v", both, err)
	}
	gone, err := removeFacts(c, fact("friends/alice", "friend", "bob"), fact("friends/alice", "friend", "nobody"))
	if err != nil || len(gone.Removed) != 1 {
		t.Errorf("removal: %v, %v", gone, err)
	}
}

func TestFactsMoveConduitsBetweenClasses(t *testing.T) {
	c := opened(t)
	ids := register(t, c, "/corpus/public/1", "/corpus/public/2")
	old := classOf(t, c.State(), "/corpus/public/1")
	change, err := addFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1"))
	if err != nil {
		t.Fatal(err)
	}
	now := classOf(t, change.After, "/corpus/public/1")
	if want := []Move{{ids[0], old, now}}; !slices.Equal(change.Moved, want) || now == old {
		t.Fatalf("moved %v, want %v", change.Moved, want)
	}
	if !slices.Contains(change.Classes, now) {
		t.Errorf("classes to analyse %v lack the new %d", change.Classes, now)
	}
	if info := change.After.Class(old); info.Members != 1 || info.Representative != ids[1] {
		t.Errorf("the old class has %d members, represented by %d", info.Members, info.Representative)
	}
	if got := change.After.Class(now).Mentions; !slices.Equal(got, []string{`"blacklist/de" says blocked(this)`}) {
		t.Errorf("mentions %q", got)
	}
	if c.ClassTable().Entry(ids[0]) != now {
		t.Error("the class table did not follow")
	}
	back, err := removeFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1"))
	if err != nil || classOf(t, back.After, "/corpus/public/1") != old {
		t.Errorf("it did not return to class %d: %v", old, err)
	}
}

func TestBadFactsChangeNothing(t *testing.T) {
	c := opened(t)
	version := c.State().FactsVersion()
	long := strings.Repeat("x", policy.MaxString+1)
	for name, bad := range map[string]policy.Fact{
		"no conduit": fact("", "friend", "x"), "no relation": fact("c", "", "x"), "long value": fact("c", "r", long),
		"wildcard":  {Conduit: "c", Relation: "r", Arguments: []policy.Value{{}}},
		"offset":    {Conduit: "c", Relation: "r", Positioned: true},
		"too wide":  fact("c", "r", make([]string, policy.MaxArguments+1)...),
		"long name": fact(long, "r"),
	} {
		if _, err := addFacts(c, fact("good", "r", "x"), bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if s := c.State(); s.FactsVersion() != version ||
		s.Has(policy.Pattern{Conduit: "good", Relation: "r", Arguments: make([]policy.Value, 1)}) {
		t.Error("a refused change left something behind")
	}
}

func TestApplyIsAllOrNothing(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/public/1")
	before := c.State()
	breaks := map[string]func(*Bundle){
		"syntax":      func(b *Bundle) { b.Policies[0].Text = "policy public { read :- }" },
		"no policy":   func(b *Bundle) { b.Rules[0].Policy.Policy = "pubic" },
		"argument":    func(b *Bundle) { b.Rules[1].Policy.Arguments = nil },
		"hole":        func(b *Bundle) { b.Rules[1].Policy.Arguments = map[string]string{"owner": "{onwer}"} },
		"ambiguity":   func(b *Bundle) { b.Rules[0].Path = "/corpus/{kind}/alice/**" },
		"key":         func(b *Bundle) { b.Principals[0].PublicKey = "00" },
		"fact":        func(b *Bundle) { b.Facts = append(b.Facts, fact("", "r")) },
		"given twice": func(b *Bundle) { b.Policies = append(b.Policies, b.Policies[0]) },
		"not live":    func(b *Bundle) { b.Policies[0].Text = "policy public { read :- cCurrLenIs(0). }" },
	}
	for name, damage := range breaks {
		bundle := testBundle("2")
		damage(&bundle)
		if _, err := c.Apply(bundle); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if c.State() != before {
		t.Error("a refused bundle changed the state")
	}
}

func TestApplyMovesConduitsAndReplacesItsFacts(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/public/1", "/corpus/private/alice/1")
	old := classOf(t, c.State(), "/corpus/public/1")
	if _, err := removeFacts(c, fact("regions", "prefix", "127.0.0.0/8", "us")); err != nil {
		t.Fatal(err)
	}
	next := testBundle("2")
	next.Policies[0].Text = `policy public { read :- true. }`
	next.Facts = append(next.Facts, fact("regions", "prefix", "10.0.0.0/8", "de"))
	change, err := c.Apply(next)
	if err != nil {
		t.Fatal(err)
	}
	s := change.After
	if now := classOf(t, s, "/corpus/public/1"); now == old || len(change.Moved) != 1 {
		t.Errorf("class %d, moved %v", now, change.Moved)
	}
	if s.Class(old).Policy != nil || slices.Contains(s.ClassesOf("p/documents"), old) {
		t.Error("the old policy's class is still in use")
	}
	if s.tuples() != 1 {
		t.Errorf("%d facts: what was removed by hand came back, or the new one is missing", s.tuples())
	}
	if s.Bundle().Version != 2 || s.BundleHash() != "2" {
		t.Errorf("bundle %d %s", s.Bundle().Version, s.BundleHash())
	}
	same, err := c.Apply(next)
	if err != nil || same.Bundle || same.After.Bundle().Version != 2 {
		t.Errorf("the same bundle again: %v", err)
	}
	back, err := c.Apply(testBundle("1"))
	if err != nil || classOf(t, back.After, "/corpus/public/1") != old {
		t.Errorf("the old policy does not bring the old class back: %v", err)
	}
}

func TestPrincipalKey(t *testing.T) {
	c := opened(t)
	key := strings.Repeat("cd", 32)
	if _, err := addFacts(c, fact("population", "key", "bob", key), fact("population", "key", "eve", key),
		fact("population", "key", "eve", strings.Repeat("ef", 32)), fact("population", "key", "mal", "x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"alice": strings.Repeat("ab", 32), "bob": key, "eve": "", "mal": "",
		"nobody": ""} {
		got, ok := c.State().PrincipalKey(name)
		if fmt.Sprintf("%x", []byte(got)) != want && ok || ok != (want != "") {
			t.Errorf("%s: %x, %v", name, []byte(got), ok)
		}
	}
}

func TestRestartFindsEverything(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	register(t, c, "/corpus/public/1", "/corpus/public/2", "/corpus/named/1")
	if _, err := addFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1"),
		policy.Fact{Conduit: "c", Relation: "r", Arguments: []policy.Value{policy.Integer(-5), policy.String("")}},
		fact("flag", "up")); err != nil {
		t.Fatal(err)
	}
	if err := c.AddPredictions(Prediction{"worker", map[string]string{"user": "eve"}},
		Prediction{Task: "worker"}); err != nil {
		t.Fatal(err)
	}
	before := dump(c.State())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if diff := cmp.Diff(before, dump(again.State())); diff != "" {
		t.Error(diff)
	}
	predictions, err := again.Predictions()
	if err != nil || len(predictions) != 2 {
		t.Errorf("predictions %v, %v", predictions, err)
	}
}

// dump is everything a state says, for comparison.
func dump(s *State) []string {
	lines := []string{fmt.Sprintf("bundle %s %d, version %d", s.BundleHash(), s.Bundle().Version, s.FactsVersion())}
	s.all(func(f policy.Fact) bool {
		lines = append(lines, fmt.Sprintf("%s says %s%v", f.Conduit, f.Relation, f.Arguments))
		return true
	})
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

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second open: %v", err)
	}
}

// A sequence of changes leaves the memory, the disk and a plain set in agreement.
func TestFactsAgreeWithAPlainSet(t *testing.T) {
	values := []policy.Value{policy.String(""), policy.String("a"), policy.String("b"), policy.Integer(1),
		policy.Integer(-1), policy.String("c0")}
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		c := open(t, dir)
		if _, err := c.Apply(testBundle("1")); err != nil {
			rt.Fatal(err)
		}
		plain := make(map[string]policy.Fact)
		for _, f := range testBundle("1").Facts {
			plain[factKey(f)] = f
		}
		draw := func(label string) []policy.Fact {
			var facts []policy.Fact
			for range rapid.IntRange(0, 40).Draw(rt, label) {
				f := policy.Fact{Conduit: rapid.SampledFrom([]string{"c0", "c1"}).Draw(rt, "conduit"),
					Relation: rapid.SampledFrom([]string{"r", "s"}).Draw(rt, "relation")}
				for range rapid.IntRange(0, 2).Draw(rt, "arity") {
					if rapid.Bool().Draw(rt, "few") {
						f.Arguments = append(f.Arguments, rapid.SampledFrom(values).Draw(rt, "value"))
					} else {
						f.Arguments = append(f.Arguments, policy.Integer(rapid.Int64Range(0, 300).Draw(rt, "number")))
					}
				}
				facts = append(facts, f)
			}
			return facts
		}
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			remove, add := draw("remove"), draw("add")
			for _, f := range plain {
				if rapid.IntRange(0, 5).Draw(rt, "take") == 0 {
					remove = append(remove, f)
				}
			}
			if _, err := c.ChangeFacts(remove, add); err != nil {
				rt.Fatal(err)
			}
			for _, f := range remove {
				delete(plain, factKey(f))
			}
			for _, f := range add {
				plain[factKey(f)] = f
			}
			checkFacts(rt, c.State().factIndex, plain)
		}
		if err := c.Close(); err != nil {
			rt.Fatal(err)
		}
		again := open(t, dir)
		checkFacts(rt, again.State().factIndex, plain)
		_ = again.Close()
	})
}

func checkFacts(rt *rapid.T, x *factIndex, plain map[string]policy.Fact) {
	count := 0
	x.all(func(f policy.Fact) bool {
		count++
		if _, ok := plain[factKey(f)]; !ok {
			rt.Fatalf("%v stands and should not", f)
		}
		return true
	})
	if count != len(plain) {
		rt.Fatalf("%d facts, want %d", count, len(plain))
	}
	for _, f := range plain {
		for mask := range 1 << len(f.Arguments) {
			pattern := policy.Pattern{Conduit: f.Conduit, Relation: f.Relation, Arguments: slices.Clone(f.Arguments)}
			for i := range pattern.Arguments {
				if mask&(1<<i) != 0 {
					pattern.Arguments[i] = policy.Value{}
				}
			}
			for _, conduit := range []string{f.Conduit, ""} {
				pattern.Conduit = conduit
				checkLookup(rt, x, pattern, plain)
			}
		}
		for _, value := range append(slices.Clone(f.Arguments), policy.String(f.Conduit)) {
			if len(x.mentioning(value)) == 0 {
				rt.Fatalf("%v is not found as a mention", value)
			}
		}
	}
}

func checkLookup(rt *rapid.T, x *factIndex, pattern policy.Pattern, plain map[string]policy.Fact) {
	want := 0
	for _, f := range plain {
		if (pattern.Conduit == "" || f.Conduit == pattern.Conduit) && f.Relation == pattern.Relation &&
			len(f.Arguments) == len(pattern.Arguments) && selects(pattern.Arguments, f.Arguments) {
			want++
		}
	}
	var last *policy.Fact
	got := 0
	x.Lookup(pattern, func(f policy.Fact) bool {
		got++
		if last != nil && (f.Conduit < last.Conduit || f.Conduit == last.Conduit &&
			compareTuples(f.Arguments, last.Arguments) <= 0) {
			rt.Fatalf("lookup of %v is out of order", pattern)
		}
		copied := f
		last = &copied
		return true
	})
	if got != want || x.Has(pattern) != (want > 0) {
		rt.Fatalf("lookup of %v found %d, want %d", pattern, got, want)
	}
}

func addFacts(c *Catalog, facts ...policy.Fact) (*Change, error) { return c.ChangeFacts(nil, facts) }

func removeFacts(c *Catalog, facts ...policy.Fact) (*Change, error) {
	return c.ChangeFacts(facts, nil)
}

// all yields every fact, by conduit, relation, arity and tuple.
func (x *factIndex) all(yield func(policy.Fact) bool) {
	var groups []*group
	for _, shard := range x.groups {
		for _, g := range shard {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return a.key.compare(b.key) })
	for _, g := range groups {
		for i := range g.count {
			if !yield(policy.Fact{Conduit: g.key.conduit, Relation: g.key.relation, Arguments: g.tuple(i)}) {
				return
			}
		}
	}
}

// tuples is how many facts stand.
func (x *factIndex) tuples() int {
	count := 0
	x.all(func(policy.Fact) bool { count++; return true })
	return count
}
