// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

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
		"offset":    factAt(-1, "c", "r"),
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
			if !yield(g.key.fact(g.tuple(i))) {
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
