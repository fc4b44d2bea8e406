// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// world is a pipeline under random policies.
type world struct {
	rt     *rapid.T
	plan   *Plan
	bundle catalog.Bundle
	c      *catalog.Catalog
	now    time.Time
	r      *Result
	files  *catalog.View // nil: documents have no files, and so neither change nor go
	data   string        // where the files are
	log    []policy.Fact // the entries that the log has
}

// worldNames are those of which facts speak: of documents, and of tuples.
var worldNames = append(slices.Clone(worldDocuments), "note:a", "note:b")

var worldDocuments = []string{"/one/a/1", "/one/a/2", "/one/b/1", "/two/a/1", "/two/b/1",
	`/two/c/says # is-blocked(D) { neq(D, "x") }.`}

// newWorld has documents under two policies, a pipe, a tuple of each user, and a connection.
// Workers have a common taint or a random one.
func newWorld(t testing.TB, rt *rapid.T) *world {
	w := &world{rt: rt, now: now}
	arguments := map[string]string{"owner": "{owner}"}
	documents := func(name string) catalog.Rule {
		return catalog.Rule{Set: "world/" + name, Kind: policy.FileConduit, Ingress: true, Path: "/" + name + "/{owner}/**",
			Policy: catalog.Reference{Policy: name, Arguments: arguments}}
	}
	log := catalog.Rule{Set: "world/log", Kind: policy.FileConduit, Path: "/log", Type: "access-log",
		Policy: catalog.Reference{Policy: "closed"}}
	notes := catalog.Rule{Set: "world/notes", Kind: policy.TupleConduit, Path: "note:{owner}",
		Policy: catalog.Reference{Policy: "notes", Arguments: arguments}}
	w.bundle.Rules = []catalog.Rule{documents("one"), documents("two"), log, notes}
	taint := rapid.SampledFrom([]string{
		`policy p(owner, region) { read :- sKeyIs(owner), sRegionIs(region). ` + exit + ` }`,
		`policy p(owner, region) { read :- sKeyIs(owner). ` + exit + ` }`,
		`policy p(owner, region) { ` + exit + ` }`,
		`policy p(owner, region) { declassify :- true. }`,
		"",
	}).Draw(rt, "taint")
	if taint == "" {
		taint = strings.Replace(anyPolicy(rt), "p(owner)", "p(owner, region)", 1)
	}
	for _, one := range []struct{ name, text string }{
		{"closed", `policy p { ` + exit + ` }`}, {"notes", anyPolicy(rt)}, {"one", anyPolicy(rt)},
		{"pipe", anyPolicy(rt)}, {"two", anyPolicy(rt)}, {"worker", taint},
	} {
		w.bundle.Policies = append(w.bundle.Policies, catalog.PolicyText{Name: one.name, File: one.name,
			Text: one.text})
	}
	w.bundle.Hash = "0"
	reference := catalog.Reference{Policy: "pipe", Arguments: map[string]string{"owner": "a"}}
	all := []string{"one", "two", "notes", "pipe"}
	w.plan = &Plan{
		Pipeline: "world",
		Tasks: []Task{
			{Name: "indexer", Taint: catalog.Reference{Policy: "closed"}, Reads: all, Writes: all},
			{
				Name: "worker", Parameters: []string{"user", "region"}, Reads: all, Writes: append(all, "web"),
				Taint: catalog.Reference{Policy: "worker",
					Arguments: map[string]string{"owner": "{user}", "region": "{region}"}},
				Expect: []Expectation{
					{Conduit: "population", Says: "home", Parameters: []string{"user", "region"}},
					{Conduit: "population", Says: "travels", Parameters: []string{"region", "user"}},
				},
			},
		},
		Sets: []Set{
			{Name: "one", Catalog: "world/one", Kind: policy.FileConduit, Ingress: true},
			{Name: "two", Catalog: "world/two", Kind: policy.FileConduit, Ingress: true},
			{Name: "notes", Catalog: "world/notes", Kind: policy.TupleConduit, Paths: []string{"note:{owner}"}},
			{Name: "pipe", Catalog: "world/pipe", Kind: policy.PipeConduit, Policy: &reference, From: "indexer", To: "worker"},
			{Name: "web", Catalog: "world/web", Kind: policy.ConnectionConduit, Egress: true, Policy: &reference},
		},
	}
	if rapid.Bool().Draw(rt, "derived") {
		w.derive()
	}
	for i := range 2 { // a document's owner may close and open it, and c may do so with all
		for _, name := range []string{"one", "two"} {
			reference := catalog.Reference{Policy: name, Arguments: arguments}
			for _, by := range []string{"{owner}", "c"} {
				w.bundle.Rules[i].Choices = append(w.bundle.Rules[i].Choices, catalog.Choice{By: by, Policy: reference})
			}
		}
	}
	w.c = newCatalog(t, w.bundle)
	if rapid.Bool().Draw(rt, "files") {
		w.keepFiles(t)
	}
	return w
}

// keepFiles gives documents files.
func (w *world) keepFiles(t testing.TB) {
	root, err := os.MkdirTemp(t.TempDir(), "files")
	if err == nil {
		w.data = filepath.Join(root, "data")
		for _, name := range worldDocuments {
			err = errors.Join(err, w.write(name))
		}
		var failed error
		w.files, failed = w.c.AttachView(w.data, filepath.Join(root, "view"))
		err = errors.Join(err, failed)
	}
	if err != nil {
		w.rt.Fatal(err)
	}
}

// write puts a new file in the place of a document's.
func (w *world) write(name string) error {
	file := filepath.Join(w.data, name)
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file+".new", nil, 0o600),
		os.Rename(file+".new", file))
}

// close ends the catalog.
func (w *world) close() {
	if w.files != nil {
		_ = w.files.Close()
	}
	_ = w.c.Close()
}

// derive gives workers a role and a shift.
func (w *world) derive() {
	w.plan.Declared = []Parameter{
		{Name: "role", Conduit: "club", Says: "member-of"},
		{Name: "shift", Start: now.Add(-time.Hour), Every: 24 * time.Hour},
	}
	worker := &w.plan.Tasks[1]
	worker.Parameters = rapid.SampledFrom([][]string{
		{"user", "region", "role", "shift"}, {"shift", "region", "user"}, {"role", "user", "region"},
	}).Draw(w.rt, "parameters")
	if slices.Contains(worker.Parameters, "role") {
		worker.Taint.Arguments["owner"] = rapid.SampledFrom([]string{"{user}", "{role}"}).Draw(w.rt, "taint's owner")
	}
	if rapid.Bool().Draw(w.rt, "seen") {
		w.plan.Remember([]Instance{worker.instanceOf(map[string]string{"user": "a", "region": "us"})})
	}
}

func (w *world) fact() policy.Fact {
	person := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.rt, "person") }
	region := func() string { return rapid.SampledFrom(regions).Draw(w.rt, "region") }
	document := func() string { return rapid.SampledFrom(worldNames).Draw(w.rt, "document") }
	instant := func() policy.Value {
		return policy.Time(now.Add(time.Duration(rapid.IntRange(0, 9).Draw(w.rt, "hours")) * 12 * time.Hour))
	}
	switch rapid.IntRange(0, 11).Draw(w.rt, "fact") {
	case 0, 1, 2:
		return fact("friends-of/"+person(), "close-friend", person())
	case 3:
		return fact("black-list/"+region(), "is-blocked", document())
	case 4:
		return fact("club", "member-of", person(), rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(w.rt, "of"))
	case 5:
		return fact("club", "member-of", person(), document())
	case 6:
		return fact("deny", "none-of", person())
	case 7:
		return fact(rapid.SampledFrom([]string{"", "list/"}).Draw(w.rt, "prefix")+document(), "close-friend", person())
	case 8:
		return policy.Fact{Conduit: "when", Relation: "starts-at", Arguments: []policy.Value{instant()}}
	case 9:
		return policy.Fact{Conduit: "when", Relation: "ends-at", Arguments: []policy.Value{policy.String(person()), instant()}}
	case 10:
		return fact("population", "travels", region(), person())
	default:
		return fact("population", "home", person(), region())
	}
}

func (w *world) facts(label string, most int) (facts []policy.Fact) {
	for range rapid.IntRange(0, most).Draw(w.rt, label) {
		facts = append(facts, w.fact())
	}
	return facts
}

func (w *world) must(change *catalog.Change, err error) *catalog.Change {
	if err != nil {
		w.rt.Fatal(err)
	}
	return change
}

// options are those of a step. The runs in it may be in cohorts.
func (w *world) options() Options {
	return Options{Now: w.now, Limit: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(w.rt, "limit"), search: true,
		cohort: rapid.IntRange(0, 3).Draw(w.rt, "cohort"), wide: rapid.IntRange(0, 2).Draw(w.rt, "wide")}
}

// step makes a change of any kind, and follows it.
func (w *world) step() (what string) {
	options, before, affected := w.options(), w.r, []Affected(nil)
	var err error
	switch rapid.IntRange(0, 12).Draw(w.rt, "step") {
	case 0:
		_, change, failed := w.c.Register([]string{rapid.SampledFrom(worldDocuments).Draw(w.rt, "document")})
		w.r, affected, err = w.r.Update(w.rt.Context(), w.must(change, failed), options)
		what = fmt.Sprintf("moved %v, classes %v", change.Moved, change.Classes)
	case 1:
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(w.rt, "hours")) * time.Hour)
		options.Now = w.now
		what = fmt.Sprintf("now %v", w.now)
		if at, ok := w.r.NextExpiry(); ok && !at.After(w.now) { // else nothing expires or begins
			w.r, affected, err = w.r.Expire(w.rt.Context(), options)
			what += ", expired"
		}
	case 2:
		at := rapid.IntRange(0, len(w.bundle.Policies)-1).Draw(w.rt, "policy")
		if name := w.bundle.Policies[at].Name; name != "closed" && name != "worker" {
			w.bundle.Policies[at].Text = anyPolicy(w.rt)
		}
		w.bundle.Hash += "+"
		change := w.must(w.c.Apply(w.bundle))
		w.r, affected, err = w.r.Update(w.rt.Context(), change, options)
		what = "policy " + w.bundle.Policies[at].Name
	case 3: // of a task that only writes what it has written
		choices := [][]string{{"one"}, {"two", "notes"}, {"one", "two", "notes", "pipe"}}
		plan := *w.plan
		plan.Tasks = slices.Clone(plan.Tasks)
		task := &plan.Tasks[rapid.IntRange(0, 1).Draw(w.rt, "task")]
		task.Reads = rapid.SampledFrom(choices).Draw(w.rt, "reads")
		w.plan = &plan
		w.r, err = Run(w.rt.Context(), w.plan, w.c.State(), options)
		before, what = w.r, "task "+task.Name
	case 4:
		change, chosen := w.choose()
		w.r, affected, err = w.r.Update(w.rt.Context(), change, options)
		what = chosen
	case 5:
		change := w.logged()
		w.r, affected, err = w.r.Update(w.rt.Context(), change, options)
		what = fmt.Sprintf("log: added %v, removed %v", change.Added, change.Removed)
	case 6:
		if w.files != nil {
			change, ingested := w.ingest()
			w.r, affected, err = w.r.Update(w.rt.Context(), change, options)
			what = ingested
		}
	default:
		removed := append(w.facts("removed", 6), someOf(w.rt, w.c.State())...)
		change := w.must(w.c.AtOnce().ChangeFacts(removed, w.facts("added", 3)))
		w.r, affected, err = w.r.Update(w.rt.Context(), change, options)
		what = fmt.Sprintf("added %v, removed %v", change.Added, change.Removed)
	}
	if err != nil {
		w.rt.Fatal(err)
	}
	w.checkTold(before, affected, what)
	return what + fmt.Sprintf(" (limit %d, cohorts of %d)", options.Limit, options.cohort)
}

// checkTold fails if an instance has other accesses than before a step, and the step does not say so.
func (w *world) checkTold(before *Result, affected []Affected, what string) {
	was, is := accessesOfAll(before), accessesOfAll(w.r)
	for _, one := range affected {
		delete(was, one.Instance.Name())
		delete(is, one.Instance.Name())
	}
	if diff := cmp.Diff(was, is); diff != "" {
		w.rt.Fatalf("%s: nobody is told of\n%s", what, diff)
	}
}

func accessesOfAll(r *Result) map[string]string {
	all := map[string]string{}
	for _, c := range r.instances {
		if len(c.Reads)+len(c.Writes)+len(c.Others) > 0 {
			all[c.Instance.Name()] = fmt.Sprint(c.Reads, c.Writes, c.Others)
		}
	}
	return all
}

// choose gives a document the policy that somebody has chosen who may.
func (w *world) choose() (change *catalog.Change, what string) {
	name := rapid.SampledFrom(worldDocuments).Draw(w.rt, "chosen")
	item, ok := w.c.Item(name)
	if !ok {
		return &catalog.Change{Before: w.c.State(), After: w.c.State()}, "no choice"
	}
	choice := rapid.SampledFrom(item.Choices).Draw(w.rt, "choice")
	return w.must(w.c.Choose(name, choice.By, choice.Policy, item.Nonce)), fmt.Sprintf("%s has %s", name, choice.Policy)
}

// logged adds entries to the log, or cuts off its last ones.
func (w *world) logged() *catalog.Change {
	kept := rapid.IntRange(0, len(w.log)).Draw(w.rt, "kept")
	removed := slices.Clone(w.log[kept:])
	w.log = w.log[:kept]
	var added []policy.Fact
	for range rapid.IntRange(0, 3).Draw(w.rt, "entries") {
		when := now.Add(time.Duration(rapid.IntRange(0, 9).Draw(w.rt, "hours")) * 12 * time.Hour)
		added = append(added, policy.Fact{Conduit: "/log", Relation: "access", Positioned: true,
			Offset: int64(40 * (len(w.log) + len(added))), Arguments: []policy.Value{
				policy.String(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.rt, "person")),
				policy.String(rapid.SampledFrom(worldDocuments).Draw(w.rt, "document")), policy.Time(when)}})
	}
	w.log = append(w.log, added...)
	return w.must(w.c.AtOnce().ChangeLog(removed, added))
}

// ingest catalogues documents of which some are new, some have changed and some are gone.
func (w *world) ingest() (change *catalog.Change, what string) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(worldDocuments), 1, 3, rapid.ID).Draw(w.rt, "ingested")
	for _, name := range names {
		err := os.Remove(filepath.Join(w.data, name))
		if rapid.Bool().Draw(w.rt, "there") {
			err = w.write(name)
		}
		if err != nil && !os.IsNotExist(err) {
			w.rt.Fatal(err)
		}
	}
	done, err := w.files.Ingest(names)
	if err != nil {
		w.rt.Fatal(err)
	}
	if change = done.Change; change == nil {
		change = &catalog.Change{Before: w.c.State(), After: w.c.State()}
	}
	return change, fmt.Sprintf("ingested: new %v, other content %v, gone %v", done.Added, done.Renewed, done.Removed)
}

// finish answers what the limits have left.
func (w *world) finish() {
	for w.r.Pending() {
		before := w.r
		next, affected, err := before.Continue(w.rt.Context(), Options{Now: w.now, Limit: 2})
		if err != nil {
			w.rt.Fatal(err)
		}
		w.r = next
		w.checkTold(before, affected, "continued")
	}
}
