// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
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
	both, err := c.AtOnce().ChangeFacts([]policy.Fact{fact("friends/alice", "friend", "bob")},
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

// all lists a state's facts.
func all(s *State) []policy.Fact { return indexed(s.facts) }

func compareFacts(a, b policy.Fact) int {
	k, l := a.Group(), b.Group()
	return cmp.Or(k.Compare(&l), slices.CompareFunc(tupleOf(a), tupleOf(b), policy.Value.Compare))
}

func texts(facts []policy.Fact) []string {
	texts := []string{}
	for _, fact := range facts {
		texts = append(texts, fact.String())
	}
	return texts
}

// A sequence of changes leaves the memory, the disk and another set of facts in agreement, and
// what a change says can be reverted.
func TestDiskAgreesWithMemory(t *testing.T) {
	for _, most := range []int{6, 6, 6, 6, 30, 30, 30, 700, 700} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dir := t.TempDir()
		c := open(t, dir)
		random := rand.New(rand.NewPCG(seed, 0))
		draw := func() (facts []policy.Fact) {
			for range random.IntN(most + 1) {
				f := policy.Fact{Conduit: []string{"c", "cc"}[random.IntN(2)],
					Relation: []string{"r", "rr"}[random.IntN(2)]}
				for range random.IntN(3) {
					values := []policy.Value{policy.String(""), policy.Integer(-1),
						policy.String(strconv.Itoa(random.IntN(most))), policy.Integer(random.Int64N(int64(most)))}
					f.Arguments = append(f.Arguments, values[random.IntN(len(values))])
				}
				if random.IntN(3) == 0 {
					f.Positioned, f.Offset = true, random.Int64N(3)<<31
				}
				facts = append(facts, f)
			}
			return facts
		}
		other := policy.NewFactBase()
		for range 3 {
			before, remove, add := c.State(), draw(), draw()
			for _, f := range all(before) {
				if random.IntN(5) == 0 {
					remove = append(remove, f)
				}
			}
			change, err := c.AtOnce().ChangeFacts(remove, add)
			if err != nil {
				t.Fatal(err)
			}
			if random.IntN(3) == 0 {
				if _, err := c.AtOnce().ChangeFacts(change.Added, change.Removed); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(texts(all(before)), texts(all(c.State()))); diff != "" {
					t.Fatalf("reverted: %s", diff)
				}
				continue
			}
			for _, f := range remove {
				other.Remove(f)
			}
			for _, f := range add {
				_, _ = other.Add(f)
			}
		}
		want := texts(all(c.State()))
		if other.Len() != c.State().Facts() {
			t.Fatalf("%d facts, want %d", c.State().Facts(), other.Len())
		}
		for _, f := range all(c.State()) {
			if !other.Has(policy.Pattern{Conduit: f.Conduit, Relation: f.Relation, Arguments: f.Arguments,
				Positioned: f.Positioned, Offset: policy.Integer(f.Offset)}) {
				t.Fatalf("%s stands and should not", f)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, dir)
		if diff := gocmp.Diff(want, texts(all(again.State()))); diff != "" || again.State().Facts() != other.Len() {
			t.Fatalf("%d facts, want %d, after a restart: %s", again.State().Facts(), other.Len(), diff)
		}
		_ = again.Close()
	}
}

func factAt(offset int64, conduit, relation string, values ...string) policy.Fact {
	f := fact(conduit, relation, values...)
	f.Positioned, f.Offset = true, offset
	return f
}

// A tuple that a manifest or a source states is in no place of its conduit.
func TestOnlyContentHasOffsets(t *testing.T) {
	c := opened(t)
	for name, attempt := range map[string]func() error{
		"a bundle": func() error {
			_, err := c.Apply(sourced("2", []policy.Fact{factAt(1, "c", "r")}, nil))
			return err
		},
		"a source": func() error {
			_, err := c.Apply(sourced("3", nil, map[string][]policy.Fact{"s": {factAt(1, "c", "r")}}))
			return err
		},
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "of manifests and of sources") {
			t.Errorf("%s: %v", name, err)
		}
	}
	applied(t, c, sourced("4", nil, map[string][]policy.Fact{"s": nil}))
	if _, err := c.AtOnce().ChangeSource("s", "1", []Step{{StepAdd, factAt(1, "c", "r")}}); err == nil {
		t.Error("a step has an offset")
	}
}
