// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

func TestSysE(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	worker := func(user, region string) Instance { return Instance{"worker", []string{user, region}} }
	cases := []struct {
		instance Instance
		document string
		want     bool
	}{
		{worker("alice", "de"), "/corpus/private/alice/1.txt", true},
		{worker("alice", "de"), "/corpus/private/bob/1.txt", false},
		{worker("alice", "de"), "/corpus/friends/bob/1.txt", true},
		{worker("alice", "de"), "/corpus/friends/carol/1.txt", false},
		{worker("alice", "de"), "/corpus/friends/dave/1.txt", false},
		{worker("alice", "de"), "/corpus/circles/dave/1.txt", true}, // a friend's friend
		{worker("alice", "de"), "/corpus/circles/carol/1.txt", false},
		{worker("alice", "de"), "/corpus/public/1.txt", false}, // blocked there
		{worker("alice", "de"), "/corpus/public/2.txt", true},
		{worker("bob", "us"), "/corpus/public/1.txt", true},
		{worker("bob", "us"), "/corpus/friends/dave/1.txt", true},
		{worker("carol", "de"), "/corpus/private/carol/2.txt", true},
		{worker("carol", "de"), "/corpus/friends/alice/1.txt", false},
		{Instance{Task: "indexer"}, "/corpus/private/alice/1.txt", true},
		{Instance{Task: "indexer"}, "/corpus/friends/dave/2.txt", true},
		{Instance{Task: "indexer"}, "/corpus/public/1.txt", true},
	}
	for _, c2 := range cases {
		if got := readable(t, r, c, c2.instance)[c2.document]; got != c2.want {
			t.Errorf("%s reads %s: %v, want %v", c2.instance.Name(), c2.document, got, c2.want)
		}
	}
	alice, _ := r.Instance(worker("alice", "de"))
	held := make(map[string]bool)
	for _, other := range alice.Others {
		held[fmt.Sprintf("%s %v", other.Set, other.Write)] = true
		if other.Set == "profiles" && !strings.HasPrefix(other.Conduit, "profile:alice") {
			t.Errorf("%s may use %s", alice.Instance.Name(), other.Conduit)
		}
	}
	for _, want := range []string{"histories false", "profiles false", "results false", "queries true", "web true"} {
		if !held[want] {
			t.Errorf("%s lacks %s: %+v", alice.Instance.Name(), want, alice.Others)
		}
	}
	indexer, _ := r.Instance(Instance{Task: "indexer"})
	if len(indexer.Writes) != 1 || c.State().Class(indexer.Writes[0]).Set != "syse/index" {
		t.Errorf("the indexer writes %v", indexer.Writes)
	}
}

func TestOutputIsDeterministic(t *testing.T) {
	plan, c := village(t)
	first := run(t, plan, c).Encode()
	for _, parallel := range []int{1, 2, 7} {
		again, err := Run(context.Background(), plan, c.State(), Options{Now: now, Parallel: parallel})
		if err != nil || !bytes.Equal(first, again.Encode()) {
			t.Errorf("with %d goroutines the bytes differ, %v", parallel, err)
		}
	}
}

func TestStoredResult(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	text := r.Encode()
	decoded, err := Decode(text, plan, c.State())
	if err != nil || !decoded.equal(r) || !bytes.Equal(decoded.Encode(), text) {
		t.Fatalf("another result was decoded, %v", err)
	}
	for at := 0; at < len(text); at += 7 {
		damaged := slices.Clone(text)
		damaged[at] ^= 1
		if _, err := Decode(damaged, plan, c.State()); err == nil {
			t.Fatalf("byte %d altered and not noticed", at)
		}
	}
	for _, begin := range magicBefore {
		former := slices.Concat([]byte(begin), text[len(magic):])
		if _, err := Decode(former, plan, c.State()); !errors.Is(err, ErrStale) {
			t.Errorf("a result of an earlier version: %v", err)
		}
	}
	other := *plan
	other.Tasks = plan.Tasks[1:]
	if _, err := Decode(text, &other, c.State()); !errors.Is(err, ErrStale) {
		t.Errorf("another plan: %v", err)
	}
	if _, err := addFacts(c, fact("friends/alice", "friend", "carol")); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(text, plan, c.State()); !errors.Is(err, ErrStale) || r.Current(c.State()) {
		t.Errorf("other facts: %v", err)
	}
}

// exit is allowed by the taints as well: without it nothing could be read.
const exit = `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`

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
	for _, name := range slices.Sorted(keys(zoo)) {
		for _, owner := range people[:3] {
			names = append(names, "/d/"+name+"/"+owner+"/1")
		}
		names = append(names, "/d/"+name+"/a/2")
	}
	return names
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// zooBundle has one rule for each policy, and tasks with different taints.
func zooBundle(t testing.TB) (*Plan, catalog.Bundle) {
	t.Helper()
	bundle := catalog.Bundle{Hash: "zoo"}
	for _, name := range slices.Sorted(keys(zoo)) {
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

// Progress only grows, to the number of instances, whatever cohorts they are analysed in.
func TestProgressOfCohorts(t *testing.T) {
	plan, c := village(t)
	expected := uint64(len(plan.Instances(c.State(), now)))
	for cohort := range int(expected) + 2 {
		var last uint64
		progress := func(done, total uint64) {
			if done < last || total != expected {
				t.Errorf("cohorts of %d: %d of %d after %d", cohort, done, total, last)
			}
			last = done
		}
		_, err := Run(t.Context(), plan, c.State(), Options{Now: now, cohort: cohort, Progress: progress})
		if err != nil || last != expected {
			t.Errorf("cohorts of %d: ended at %d of %d: %v", cohort, last, expected, err)
		}
	}
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

func TestUnfriendingAffectsTwo(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	change, err := removeFacts(c, fact("friends/bob", "friend", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	next, affected, err := r.Update(context.Background(), change, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	// alice loses bob's posts, and those of bob's friends-of-friends circle; dave
	// stays bob's friend, and alice no longer is a friend's friend of dave.
	if len(affected) != 1 || affected[0].Instance.Name() != "worker(alice, de)" || len(affected[0].Lost) == 0 ||
		len(affected[0].Gained) != 0 {
		t.Errorf("affected: %+v", affected)
	}
	if readable(t, next, c, Instance{"worker", []string{"alice", "de"}})["/corpus/friends/bob/1.txt"] {
		t.Error("alice still reads bob's posts")
	}
	if !readable(t, next, c, Instance{"worker", []string{"bob", "us"}})["/corpus/friends/alice/1.txt"] {
		t.Error("bob lost alice's posts, who did not unfriend him")
	}
}

func TestTimeEndsAccess(t *testing.T) {
	plan, bundle := zooBundle(t)
	c := newCatalog(t, bundle)
	if _, _, err := c.Register([]string{"/d/until/a/1", "/d/mine/a/1"}); err != nil {
		t.Fatal(err)
	}
	// The taint's own clause has no time: what it reads must hold whenever it is
	// read, which the comparison shows only under the condition on the clock.
	if _, err := addFacts(c, fact("population", "home", "a", "de")); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	at, ok := r.NextExpiry()
	end := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
	if !ok || !at.Equal(end) {
		t.Fatalf("next expiry %v, %v; want %v", at, ok, end)
	}
	next, affected, err := r.Expire(context.Background(), Options{Now: end})
	if err != nil || len(affected) != 1 || len(affected[0].Lost) != 1 {
		t.Fatalf("affected %+v, %v", affected, err)
	}
	if _, ok := next.NextExpiry(); ok {
		t.Error("something still expires")
	}
	full, err := Run(context.Background(), plan, c.State(), Options{Now: end})
	if err != nil || !full.equal(next) {
		t.Errorf("a full run at that time differs, %v", err)
	}
}

func TestStopsWhenAsked(t *testing.T) {
	plan, c := village(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, plan, c.State(), Options{Now: now}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestUnknownInstance(t *testing.T) {
	plan, c := village(t)
	for _, instance := range []Instance{{Task: "nothing"}, {Task: "worker"}, {"indexer", []string{"x"}}} {
		if _, err := RunInstance(plan, c.State(), instance, now); err == nil {
			t.Errorf("%s was analysed", instance.Name())
		}
	}
	// A user that no fact expects has what a stranger has.
	stranger, err := RunInstance(plan, c.State(), Instance{"worker", []string{"eve", "us"}}, now)
	if err != nil || len(stranger.Reads) == 0 {
		t.Fatalf("%+v, %v", stranger, err)
	}
	for _, class := range stranger.Reads {
		if name := c.State().Class(class).Reference.Policy; name != "public" {
			t.Errorf("a stranger reads %s", name)
		}
	}
}
