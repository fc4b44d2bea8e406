// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A stored result is read back with all that it has: what is compared here is not what was encoded.
func TestStoredResultsAreReadBackWhole(t *testing.T) {
	plan, c := timed(t)
	if _, err := addFacts(c, instants()[:6]...); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	change, err := addFacts(c, instants()[6:]...)
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err = r.Update(t.Context(), change, Options{Now: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(r.Encode(), plan, c.State())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.instances, decoded.instances, cmpopts.EquateEmpty(),
		cmp.AllowUnexported(Capabilities{}, footprints{}, expiry{})); diff != "" {
		t.Error(diff)
	}
	if decoded.followed != r.followed || decoded.next != r.next || !decoded.Analyzed.Equal(r.Analyzed) {
		t.Errorf("followed until %d, next %d, at %v; want %d, %d, %v", decoded.followed, decoded.next, decoded.Analyzed,
			r.followed, r.next, r.Analyzed)
	}
	kinds := map[string]bool{}
	for _, one := range r.instances {
		kinds["begins"] = kinds["begins"] || one.begins > 0
		for name, f := range map[string]*footprints{"read": &one.readsOn, "write": &one.writesOn,
			"other": &one.othersOn} {
			kinds[name] = kinds[name] || len(f.expires) > 0
		}
		for _, other := range one.Others {
			kinds["written"], kinds["read other"] = kinds["written"] || other.Write, kinds["read other"] || !other.Write
		}
	}
	if len(kinds) != 6 || slices.Contains(slices.Collect(maps.Values(kinds)), false) {
		t.Errorf("the result does not have all kinds of accesses: %v", kinds)
	}
}

// Whatever differs between two plans, a stored result of one is not taken for one of the other.
func TestStoredResultsAreOfTheirPlan(t *testing.T) {
	plan, c := timed(t)
	plan.Declared = []Parameter{{Name: "shift", Start: now, Every: time.Hour}}
	stored := run(t, plan, c).Encode()
	for name, alter := range map[string]func(*Plan){
		"pipeline":           func(p *Plan) { p.Pipeline = "other" },
		"name of a task":     func(p *Plan) { p.Tasks[0].Name = "other" },
		"parameters":         func(p *Plan) { p.Tasks[1].Parameters = []string{"region", "user"} },
		"taint":              func(p *Plan) { p.Tasks[1].Taint.Policy = "closed" },
		"arguments of taint": func(p *Plan) { p.Tasks[1].Taint.Arguments = nil },
		"reads":              func(p *Plan) { p.Tasks[1].Reads = nil },
		"writes":             func(p *Plan) { p.Tasks[1].Writes = nil },
		"expectations":       func(p *Plan) { p.Tasks[1].Expect = nil },
		"name of a set":      func(p *Plan) { p.Sets[0].Name = "other" },
		"set of the catalog": func(p *Plan) { p.Sets[0].Catalog = "other" },
		"kind":               func(p *Plan) { p.Sets[1].Kind = policy.DescriptorConduit },
		"ingress":            func(p *Plan) { p.Sets[0].Ingress = false },
		"egress":             func(p *Plan) { p.Sets[0].Egress = true },
		"paths":              func(p *Plan) { p.Sets[0].Paths = []string{"/e"} },
		"policy of a pipe":   func(p *Plan) { p.Sets[1].Policy = &catalog.Reference{Policy: "closed"} },
		"begin of a pipe":    func(p *Plan) { p.Sets[1].From = "worker" },
		"end of a pipe":      func(p *Plan) { p.Sets[1].To = "indexer" },
		"parameter":          func(p *Plan) { p.Declared[0].Every = time.Minute },
	} {
		other := *plan
		other.Tasks, other.Sets = slices.Clone(plan.Tasks), slices.Clone(plan.Sets)
		other.Declared = slices.Clone(plan.Declared)
		if alter(&other); other.digest() == plan.digest() {
			t.Errorf("plans that differ in %s have one digest", name)
		}
		if _, err := Decode(stored, &other, c.State()); !errors.Is(err, ErrStale) {
			t.Errorf("a plan that differs in %s: %v", name, err)
		}
	}
}

// An imported result is not put in force with a class that does not exist among what is written either, keeps what
// was learnt, and is compared with an analysis at its own time, of the instances that are picked.
func TestWhatIsImported(t *testing.T) {
	plan, c := unexpecting(t)
	r := run(t, plan, c)
	wrong := *r.instances[0]
	wrong.Writes = append(slices.Clone(wrong.Writes), c.State().Classes()+1)
	wrong.writesOn = footprints{ends: make([]uint32, len(wrong.Writes))}
	unknown := newResult(plan, c.State(), now, slices.Replace(slices.Clone(r.instances), 0, 1, &wrong)).Encode()
	if _, err := Import(t.Context(), unknown, plan, c.State(), anyOf, Options{Now: now}); !errors.Is(err, ErrStale) {
		t.Errorf("a class that does not exist is written: %v", err)
	}
	learnt, _ := extend(t, r, c, Access{aliceAtHome, classNamed(t, c, "/corpus/friends/bob/1.txt")})
	imported, err := Import(t.Context(), r.Encode(), plan, c.State(), anyOf, Options{Now: now, Earlier: learnt})
	if err != nil || !imported.equal(learnt) {
		t.Errorf("what was learnt is not kept: %v", err)
	}
	timedPlan, timedCatalog := timed(t)
	if _, err := addFacts(timedCatalog, instants()...); err != nil {
		t.Fatal(err)
	}
	stored := run(t, timedPlan, timedCatalog).Encode()
	for _, later := range []time.Duration{0, 36 * time.Hour} {
		options := Options{Now: now.Add(later)}
		imported, err := Import(t.Context(), stored, timedPlan, timedCatalog.State(), anyOf, options)
		if err != nil || !bytes.Equal(imported.Encode(), stored) {
			t.Errorf("after %v: %v", later, err)
		}
	}
}

// Of many instances, those are compared that are picked.
func TestImportsAreSampledAtRandom(t *testing.T) {
	small := workload{users: 2 * sampled, friends: 2, seed: 1}
	plan, c := small.plan(), newCatalog(t, small.bundle())
	if _, err := addFacts(c, small.facts()...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Register(small.documents()); err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(run(t, plan, c).instances)
	last := len(forged) - 1
	less := *forged[last]
	less.Reads, less.readsOn = nil, footprints{}
	forged[last] = &less
	stored := newResult(plan, c.State(), now, forged).Encode()
	for picked, want := range map[int]error{0: nil, last: ErrWrong} {
		pick := func(int) int { return picked }
		if _, err := Import(t.Context(), stored, plan, c.State(), pick, Options{Now: now}); !errors.Is(err, want) {
			t.Errorf("of %d instances, the last one forged and number %d picked: %v", len(forged), picked, err)
		}
	}
	picks := 0
	pickAtLast := func(int) int {
		if picks++; picks == sampled {
			return last
		}
		return 0
	}
	_, err := Import(t.Context(), stored, plan, c.State(), pickAtLast, Options{Now: now})
	if !errors.Is(err, ErrWrong) {
		t.Errorf("the forged one is picked at last: %v", err)
	}
}
