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

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// shards runs a plan in several shards.
func shards(t testing.TB, plan *Plan, state *catalog.State, of int) [][]byte {
	t.Helper()
	var all [][]byte
	for number := 1; number <= of; number++ {
		stored, err := RunShard(context.Background(), plan, state, "basis", Shard{number, of}, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

// Whatever a run is divided into, and in whichever order its shards arrive, the bytes are
// those of an undivided run.
func TestShardsMergeToTheUndividedRun(t *testing.T) {
	plan, c := village(t)
	small := workload{users: 90, friends: 6, seed: 1}
	crowd := newCatalog(t, small.bundle())
	if _, err := addFacts(crowd, small.facts()...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := crowd.Register(small.documents()); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		plan, state := plan, c.State()
		if rapid.Bool().Draw(rt, "crowd") {
			plan, state = small.plan(), crowd.State()
		}
		whole, err := Run(context.Background(), plan, state, Options{Now: now})
		if err != nil {
			rt.Fatal(err)
		}
		all := rapid.Permutation(shards(t, plan, state, rapid.IntRange(1, 7).Draw(rt, "shards"))).Draw(rt, "order")
		merged, basis, err := Merge(all)
		if err != nil || basis != "basis" || !bytes.Equal(merged, whole.Encode()) {
			rt.Fatalf("merged to %d bytes of %q instead of %d: %v", len(merged), basis, len(whole.Encode()), err)
		}
		imported, err := Import(context.Background(), merged, plan, state, anyOf, Options{Now: now})
		if err != nil || !imported.equal(whole) {
			rt.Fatalf("the imported result differs: %v", err)
		}
	})
}

// Shards that do not make up one run are refused, and the error says which is wrong.
func TestShardsOfNoRun(t *testing.T) {
	plan, c := village(t)
	three, two := shards(t, plan, c.State(), 3), shards(t, plan, c.State(), 2)
	if _, err := addFacts(c, fact("friends/carol", "friend", "dave")); err != nil {
		t.Fatal(err)
	}
	later := shards(t, plan, c.State(), 3)
	elsewhere, err := RunShard(t.Context(), plan, c.State(), "another", Shard{3, 3}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(three[1])
	damaged[len(damaged)/2] ^= 1
	for _, test := range []struct {
		name   string
		shards [][]byte
		want   string
	}{
		{"none", nil, "no shard is given"},
		{"one is missing", three[:2], "shard 3/3 is missing"},
		{"the first is missing", three[1:], "shard 1/3 is missing"},
		{"one is given twice", [][]byte{three[0], three[1], three[1]}, "shard 2/3 is given twice"},
		{"of two divisions", [][]byte{three[0], two[1], three[2]}, "another number of shards"},
		{"of two states", [][]byte{three[0], later[1], three[2]}, "shard 2/3 is of another run"},
		{"of two catalogs", [][]byte{later[0], later[1], elsewhere}, "shard 3/3 is of another run"},
		{"damaged", [][]byte{three[0], damaged, three[2]}, "file 2 of 3: it is no shard"},
		{"cut off", [][]byte{three[0], three[1][:40], three[2]}, "file 2 of 3: it is no shard"},
		{"no shard", [][]byte{[]byte("hello")}, "file 1 of 1: it is no shard"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, _, err := Merge(test.shards); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// anyOf picks the first of many.
func anyOf(int) int { return 0 }

// A result of another state, or without some instance, is not put in force.
func TestImportOfAnotherState(t *testing.T) {
	plan, c := village(t)
	merged, _, err := Merge(shards(t, plan, c.State(), 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), merged, plan, c.State(), anyOf, Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	result, err := Run(t.Context(), plan, c.State(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	fewer := newResult(plan, c.State(), now, result.instances[1:]).Encode()
	wrong := *result.instances[0]
	wrong.Reads = append(slices.Clone(wrong.Reads), c.State().Classes()+1)
	wrong.readsOn = footprints{ends: make([]uint32, len(wrong.Reads))}
	unknown := newResult(plan, c.State(), now, slices.Replace(slices.Clone(result.instances), 0, 1, &wrong)).Encode()
	before := c.State()
	if _, err := addFacts(c, fact("friends/carol", "friend", "dave")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		stored []byte
		state  *catalog.State
	}{{"an instance is missing", fewer, before}, {"a class is unknown", unknown, before},
		{"the facts have changed", merged, c.State()}} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Import(t.Context(), test.stored, plan, test.state, anyOf, Options{Now: now})
			if !errors.Is(err, ErrStale) {
				t.Errorf("%v, want %v", err, ErrStale)
			}
		})
	}
}

// What a result grants is compared with an analysis of some instances, here of all: forged grants,
// and those of another version of the analysis, are not put in force.
func TestImportsAreSampled(t *testing.T) {
	plan, c := village(t)
	result, err := Run(t.Context(), plan, c.State(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(result.instances)
	found := false
	for i, one := range forged {
		for class := uint32(1); class <= c.State().Classes() && !found; class++ {
			if !slices.Contains(one.Reads, class) {
				more := *one
				more.Reads = append(slices.Clone(one.Reads), class)
				slices.Sort(more.Reads)
				more.readsOn = footprints{ends: make([]uint32, len(more.Reads))}
				forged[i], found = &more, true
			}
		}
	}
	if !found || len(forged) > sampled {
		t.Fatalf("of %d instances none can be forged, or not all are compared", len(forged))
	}
	stored := newResult(plan, c.State(), now, forged).Encode()
	if _, err := Import(t.Context(), stored, plan, c.State(), anyOf, Options{Now: now}); !errors.Is(err, ErrWrong) {
		t.Errorf("%v, want %v", err, ErrWrong)
	}
	if _, err := Import(t.Context(), result.Encode(), plan, c.State(), anyOf, Options{Now: now}); err != nil {
		t.Error(err)
	}
}

func TestParseShard(t *testing.T) {
	for _, text := range []string{"1/1", "2/3", "4096/4096"} {
		if s, err := ParseShard(text); err != nil || fmt.Sprint(s) != text {
			t.Errorf("%s is %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "1", "0/2", "3/2", "-1/2", "1/4097", "1/2/3", "01/2", "+1/2", "1/ 2", "a/b"} {
		if _, err := ParseShard(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Shards search for candidates in another way than a whole population. They find the same instants at which time
// may give accesses.
func TestShardsOfPoliciesWithAClock(t *testing.T) {
	var documents []string
	var facts []policy.Fact
	for i := range fewInstances + 20 {
		user := userName(i)
		facts = append(facts, fact("population", "home", user, "de"))
		if i <= fewClasses {
			documents = append(documents, "/d/"+user+"/1")
		}
	}
	plan, c := onePolicy(t, `policy documents(owner) { read :- sKeyIs(owner), timeIs(T), ge(T, 2018-01-01T00:00:00Z). `+exit+` }`,
		documents...)
	if _, err := addFacts(c, facts...); err != nil {
		t.Fatal(err)
	}
	whole, err := Run(t.Context(), plan, c.State(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	merged, _, err := Merge(shards(t, plan, c.State(), 2))
	if err != nil || !bytes.Equal(merged, whole.Encode()) {
		t.Errorf("shards make another result: %v", err)
	}
	at := 0
	pick := func(n int) int { at++; return n - at }
	if _, err := Import(t.Context(), whole.Encode(), plan, c.State(), pick, Options{Now: now}); err != nil {
		t.Errorf("a run's result is refused: %v", err)
	}
}
