// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// flow is one expected access of one instance to one conduit.
type flow struct {
	task, instance, user string
	what                 policy.Operation
	conduit              uint32
}

// decided are the flows that are allowed, conduit by conduit: without classes, without
// candidates, with nothing but the policy engine.
func decided(rt *rapid.T, plan *Plan, state *catalog.State, waive func(*policy.Policy) bool) map[flow]bool {
	flows := map[flow]bool{}
	for _, instance := range plan.Instances(state, now) {
		who, err := newSubject(plan, state, instance)
		if err != nil {
			continue // no taint, no access
		}
		for id := uint32(1); id <= state.Conduits(); id++ {
			conduit, _ := state.ConduitByID(int64(id))
			if conduit.Policy == nil {
				continue
			}
			environment := policy.Environment{Session: who.session, Now: now, Waive: waive}
			one := flow{who.task.Name, instance.Name(), who.values["user"], read, id}
			if policy.Decide(policy.Read, who.taint, conduit, state, environment).Allowed {
				flows[one] = true
			}
			if one.what = write; policy.Decide(policy.Write, who.taint, conduit, state, environment).Allowed {
				flows[one] = true
			}
		}
	}
	return flows
}

// variant is the zoo with some policies exchanged, gone or not enforced, and some facts.
func variant(rt *rapid.T, zoo catalog.Bundle, hash string) catalog.Bundle {
	b := zoo
	b.Hash = hash
	b.Policies, b.Rules = slices.Clone(zoo.Policies), slices.Clone(zoo.Rules)
	for range rapid.IntRange(0, 3).Draw(rt, "modes") {
		i := rapid.IntRange(0, len(b.Policies)-1).Draw(rt, "relaxed")
		b.Policies[i].Mode = rapid.SampledFrom([]catalog.Mode{catalog.Audit, catalog.Warn}).Draw(rt, "mode")
	}
	for range rapid.IntRange(0, 4).Draw(rt, "edits") {
		i := rapid.IntRange(0, len(b.Rules)-1).Draw(rt, "rule")
		j := rapid.IntRange(0, len(zoo.Rules)-1).Draw(rt, "policy of")
		b.Rules[i].Policy = zoo.Rules[j].Policy
	}
	if rapid.Bool().Draw(rt, "drop") {
		i := rapid.IntRange(0, len(b.Rules)-1).Draw(rt, "dropped")
		b.Rules = slices.Delete(b.Rules, i, i+1)
	}
	for range rapid.IntRange(0, 5).Draw(rt, "facts") {
		b.Facts = append(b.Facts, randomFact(rt))
	}
	return b
}

// side runs what a comparison looks at.
func side(rt *rapid.T, plan *Plan, state *catalog.State) *Side {
	held, err := Run(context.Background(), plan, state, Options{Now: now, search: true})
	if err != nil {
		rt.Fatal(err)
	}
	open := held
	if state.Waive() != nil {
		if open, err = Run(context.Background(), plan, state, Options{Now: now, Open: true, search: true}); err != nil {
			rt.Fatal(err)
		}
	}
	return &Side{Open: open, Held: held}
}

// chosen makes the choices of a bundle, one after the other.
func chosen(rt *rapid.T, c *catalog.Catalog, bundle catalog.Bundle) []*catalog.Change {
	var changes []*catalog.Change
	for number := 0; ; number++ {
		made, ok := bundle.Choosing(number)
		if !ok {
			return changes
		}
		change, err := c.Shadow(made)
		if err != nil {
			rt.Fatal(err)
		}
		changes = append(changes, change)
	}
}

func openAfter(rt *rapid.T, plan *Plan, changes []*catalog.Change) []Chosen {
	var all []Chosen
	for _, change := range changes {
		all = append(all, Chosen{change, side(rt, plan, change.After).Open})
	}
	return all
}

// withChoices lets somebody choose other policies for some of the paths.
func withChoices(rt *rapid.T, b, zoo catalog.Bundle) catalog.Bundle {
	for i := range b.Rules {
		b.Rules[i].Choices = nil
		if !b.Rules[i].Ingress {
			continue
		}
		for range rapid.IntRange(0, 2).Draw(rt, "choices") {
			of := zoo.Rules[rapid.IntRange(0, len(zoo.Rules)-1).Draw(rt, "choice of")]
			b.Rules[i].Choices = append(b.Rules[i].Choices, catalog.Choice{By: "{owner}", Policy: of.Policy})
		}
	}
	return b
}

// What a comparison says that choices would open is exactly what is allowed once one of the candidate's is
// made, and is allowed neither by the candidate alone, nor before, nor once one of the choices of before is made.
func TestChoicesThatWouldOpen(t *testing.T) {
	plan, zoo := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := withChoices(rt, variant(rt, zoo, "a"), zoo)
		c := newCatalog(t, before)
		defer c.Close()
		populate(rt, c)
		candidate := withChoices(rt, variant(rt, zoo, "b"), zoo)
		shadow, err := c.Shadow(candidate)
		if err != nil {
			rt.Skip(err)
		}
		was, may := chosen(rt, c, before), chosen(rt, c, candidate)
		p := Choosing{Before: side(rt, plan, shadow.Before), After: side(rt, plan, shadow.After)}
		p.BeforeBy, p.AfterBy = openAfter(rt, plan, was), openAfter(rt, plan, may)
		comparison := NewComparison(shadow)
		comparison.Add(p.Before, p.After)
		comparison.AddChoices(p)
		want := map[flow]bool{}
		for _, change := range may {
			maps.Copy(want, decided(rt, plan, change.After, change.After.Waive()))
		}
		shut := []*catalog.State{shadow.Before, shadow.After}
		for _, change := range was {
			shut = append(shut, change.After)
		}
		for _, state := range shut {
			for f := range decided(rt, plan, state, state.Waive()) {
				delete(want, f)
			}
		}
		got := comparison.Changes()
		checkRows(rt, "would open", got.WouldOpen, rowsOf(want))
	})
}

// rowsOf counts flows by task and access.
func rowsOf(flows map[flow]bool) map[string]uint64 {
	rows := map[string]uint64{}
	for f := range flows {
		rows[f.task+" "+f.what.String()]++
	}
	return rows
}

// Comparing with a candidate and then putting it in force differ in nothing: what the
// comparison says opens and closes is exactly the difference of the decisions.
func TestComparisonIsTheDifferenceOfDecisions(t *testing.T) {
	plan, zoo := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t, variant(rt, zoo, "a"))
		defer c.Close()
		populate(rt, c)
		candidate := variant(rt, zoo, "b")
		after := *plan
		if rapid.Bool().Draw(rt, "fewer tasks") {
			after.Tasks = plan.Tasks[1:]
		}
		shadow, err := c.Shadow(candidate)
		if err != nil {
			rt.Skip(err)
		}
		comparison := NewComparison(shadow)
		comparison.Add(side(rt, plan, shadow.Before), side(rt, &after, shadow.After))
		got := comparison.Changes()
		was, wasHeld := decided(rt, plan, c.State(), c.State().Waive()), decided(rt, plan, c.State(), nil)
		if _, err := c.Apply(candidate); err != nil {
			rt.Fatal(err)
		}
		is, isHeld := decided(rt, &after, c.State(), c.State().Waive()), decided(rt, &after, c.State(), nil)
		checkChanges(rt, got, was, is, wasHeld, isHeld)
	})
}

func checkChanges(rt *rapid.T, got *Changes, was, is, wasHeld, isHeld map[flow]bool) {
	if got.Before != uint64(len(was)) || got.After != uint64(len(is)) {
		rt.Errorf("%d flows before and %d after, want %d and %d", got.Before, got.After, len(was), len(is))
	}
	opened, closed, wouldClose := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	users, documents := map[string]bool{}, map[uint32]bool{}
	note := func(f flow, rows map[string]uint64) {
		rows[f.task+" "+f.what.String()]++
		if f.user != "" {
			users[f.user] = true
		}
		documents[f.conduit] = true
	}
	for f := range is {
		if !was[f] {
			note(f, opened)
		}
	}
	for f := range was {
		switch {
		case !is[f]:
			note(f, closed)
		case wasHeld[f] && !isHeld[f]:
			wouldClose[f.task+" "+f.what.String()]++
		}
	}
	for _, list := range []struct {
		name string
		want map[string]uint64
		got  []FlowChange
	}{{"opened", opened, got.Opened}, {"closed", closed, got.Closed}, {"would close", wouldClose, got.WouldClose}} {
		checkRows(rt, list.name, list.got, list.want)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(users)), got.Users); diff != "" && len(users)+len(got.Users) > 0 {
		rt.Errorf("users: %s", diff)
	}
	if got.DocumentsTotal != uint64(len(documents)) {
		rt.Errorf("%d documents, want %d", got.DocumentsTotal, len(documents))
	}
	for _, id := range got.Documents {
		if !documents[id] {
			rt.Errorf("conduit %d is listed, and none of its flows changes", id)
		}
	}
}

func checkRows(rt *rapid.T, name string, got []FlowChange, want map[string]uint64) {
	sums := map[string]uint64{}
	for _, row := range got {
		sums[row.Task+" "+row.Access] += row.Flows
		if row.Flows < row.Documents || row.Flows < row.Instances || row.Flows > row.Documents*row.Instances ||
			row.Conduit == "" || row.Classes == 0 || row.Classes > row.Documents && name == "would open" {
			rt.Errorf("%s: a row that adds nothing up: %+v", name, row)
		}
	}
	if diff := cmp.Diff(want, sums); diff != "" {
		rt.Errorf("%s: %s", name, diff)
	}
}

// A mode takes nothing away and gives only what its own policy forbids: whatever
// another policy forbids stays forbidden, whatever is allowed stays allowed.
func TestAModeTouchesNothingElse(t *testing.T) {
	plan, zoo := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t, zoo)
		defer c.Close()
		populate(rt, c)
		name := zoo.Policies[rapid.IntRange(0, len(zoo.Policies)-1).Draw(rt, "policy")].Name
		relaxed := func(p *policy.Policy) bool { return p.Template().File() == name }
		before, after := decided(rt, plan, c.State(), nil), decided(rt, plan, c.State(), relaxed)
		for f := range before {
			if !after[f] {
				rt.Errorf("%+v was allowed, and is denied with %s in mode Audit", f, name)
			}
		}
		for f := range after {
			if before[f] {
				continue
			}
			task := plan.task(f.task)
			conduit, _ := c.State().ConduitByID(int64(f.conduit))
			if conduit.Policy.Template().File() != name && task.Taint.Policy != name {
				rt.Errorf("%+v is allowed with %s in mode Audit, which has no part in it", f, name)
			}
		}
	})
}

// Accesses that only a relaxed policy forbids are in no capability set, and reported.
func TestRelaxedPoliciesAreInNoCapabilitySet(t *testing.T) {
	plan, zoo := zooBundle(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCatalog(t, zoo)
		defer c.Close()
		if _, _, err := c.Register(rapid.SliceOfNDistinct(rapid.SampledFrom(documents()), 5, 12, rapid.ID).Draw(rt,
			"documents")); err != nil {
			rt.Fatal(err)
		}
		if _, err := addFacts(c, randomFact(rt), homeFact); err != nil {
			rt.Fatal(err)
		}
		want := run(t, plan, c)
		audited := zoo
		audited.Hash, audited.Policies = "audited", slices.Clone(zoo.Policies)
		for i := range audited.Policies {
			audited.Policies[i].Mode = rapid.SampledFrom([]catalog.Mode{catalog.Enforce, catalog.Audit,
				catalog.Warn}).Draw(rt, "mode")
		}
		if _, err := c.Apply(audited); err != nil {
			rt.Fatal(err)
		}
		got := run(t, plan, c)
		if !want.equal(got) {
			rt.Fatal("capability sets depend on the modes of policies")
		}
		open := decided(rt, plan, c.State(), c.State().Waive())
		for _, accesses := range got.Report(now).Accesses {
			what := read
			if accesses.Access == "write" {
				what = write
			}
			for _, refused := range accesses.RefusedBecause {
				id, _ := c.State().ID(refused.Conduit)
				at := slices.IndexFunc(got.Instances(),
					func(c *Capabilities) bool { return c.Instance.Name() == refused.Instance })
				instance := got.Instances()[at].Instance
				user := plan.task(instance.Task).values(instance)["user"]
				if allowed := open[flow{instance.Task, refused.Instance, user, what,
					id}]; allowed != (refused.Mode != "") {
					rt.Errorf("%s %s %s: mode %q, allowed %v", refused.Instance, accesses.Access, refused.Conduit,
						refused.Mode, allowed)
				}
			}
		}
	})
}

var homeFact = fact("population", "home", "a", "de")

// Only what is active is analysed again; what an earlier result says of the others is
// kept for the same state and dropped for another.
func TestRunActive(t *testing.T) {
	plan, c := village(t)
	alice := Instance{"worker", []string{"alice", "de"}}
	full := run(t, plan, c)
	names := func(r *Result) string {
		list := ""
		for _, one := range r.Instances() {
			list += one.Instance.Name() + " "
		}
		return list
	}
	again, err := RunActive(context.Background(), plan, c.State(), []Instance{alice}, full, Options{Now: now})
	if err != nil || !again.equal(full) {
		t.Errorf("on the same state: %s, want %s (%v)", names(again), names(full), err)
	}
	fresh, _ := again.Instance(alice)
	kept, _ := again.Instance(Instance{"worker", []string{"bob", "us"}})
	oldFresh, _ := full.Instance(alice)
	oldKept, _ := full.Instance(Instance{"worker", []string{"bob", "us"}})
	if fresh == oldFresh || kept != oldKept {
		t.Error("the wrong instances were analysed again")
	}
	if _, err := addFacts(c, fact("friends/carol", "friend", "alice")); err != nil {
		t.Fatal(err)
	}
	stale, err := RunActive(context.Background(), plan, c.State(), []Instance{alice}, full, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	want := "worker(alice, de) "
	for _, task := range plan.Tasks {
		if len(task.Parameters) == 0 {
			if _, found := stale.Instance(Instance{Task: task.Name}); !found {
				t.Errorf("task %s is not analysed", task.Name)
			}
			want = task.Name + " " + want
		}
	}
	if len(names(stale)) != len(want) || !readable(t, stale, c, alice)["/corpus/friends/carol/1.txt"] {
		t.Errorf("on another state: %s, want %s", names(stale), want)
	}
	if stale.Covers(plan, c.State()) || !run(t, plan, c).Covers(plan, c.State()) || full.Covers(plan, c.State()) {
		t.Error("Covers does not tell a full, current result from others")
	}
}
