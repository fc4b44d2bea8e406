// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A document with a class of its own stays in it, whatever facts about it change: what they give
// and take is found as for facts about others.
func TestFactsAboutADocumentOfItsOwnClass(t *testing.T) {
	plan, c := onePolicy(t, `read :- sKeyIs(K), concat(N, "list-of", this), N says ok(), "open" says to(K, this).
		update :- sKeyIs(K), concat(_N, "list-of", this), each in "open" says to(K, D) { neq(D, this) }.
		`+exit, "/d/a/1", "/d/a/2")
	if _, err := addFacts(c, fact("list-of/d/a/1", "ok")); err != nil {
		t.Fatal(err)
	}
	opening := fact("open", "to", "a", "/d/a/1")
	r := run(t, plan, c)
	closed := canonical(r)
	for step, change := range []func() (*catalog.Change, error){
		func() (*catalog.Change, error) { return addFacts(c, opening) },
		func() (*catalog.Change, error) { return removeFacts(c, opening) },
	} {
		done, err := change()
		if err != nil || len(done.Moved) > 0 {
			t.Fatalf("step %d: moved %v, %v", step, done.Moved, err)
		}
		r, _ = follow(t, r, done, err)
		full := canonical(run(t, plan, c))
		if canonical(r) != full {
			t.Errorf("step %d: incremental\n%s\nfull\n%s", step, canonical(r), full)
		}
		if (full == closed) != (step == 1) {
			t.Errorf("step %d: the fact changes nothing, or its removal does not undo it:\n%s", step, full)
		}
	}
}

// Conduits of one class have different names, so a decision about the class does not rest on the
// name of one: an exit that asks for the name of what is written is not open there.
func TestExitsDoNotAskForTheNameOfAClass(t *testing.T) {
	for text, isKnown := range map[string]bool{
		`update :- true. ` + exit:                         false,
		`update :- cNameIs(N), neq(N, "/d/b/1"). ` + exit: true,
	} {
		_, c := onePolicy(t, text, "/d/a/1", "/d/b/1", "/d/b/2")
		taint, err := policy.CompileText("taint", []byte(
			`policy taint { read :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until cNameIs(N), neq(N, "/x"). }`))
		if err != nil {
			t.Fatal(err)
		}
		bound, err := taint.Bind(nil)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := c.State().ID("/d/a/1")
		to := newTarget(c.State(), c.State().ClassOf(id))
		got := policy.Decide(write, bound.Label("task w"), to.conduit, c.State(),
			policy.Environment{Session: &policy.Session{Principal: "a"}})
		if got.Allowed != isKnown {
			t.Errorf("%s: allowed %v: %s", text, got.Allowed, got.Reason)
		}
	}
}

// A fact with an empty text is a fact like others: what it opens to a document of its own class, and to a
// conduit without a class, is closed without it.
func TestFactsWithEmptyTexts(t *testing.T) {
	plan, c := onePolicy(t, `read :- sKeyIs(K), concat(N, "list-of", this), neq(N, K), "open" says to(K, "").
		`+exit, "/d/a/1", "/d/a/2")
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit,
		Policy: &catalog.Reference{Policy: "documents"}, From: "indexer", To: "worker"})
	plan.Tasks[1].Reads = append(plan.Tasks[1].Reads, "pipe")
	opening := fact("open", "to", "a", "")
	if _, err := addFacts(c, opening); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	opened := canonical(r)
	change, err := removeFacts(c, opening)
	r, _ = follow(t, r, change, err)
	full := canonical(run(t, plan, c))
	if canonical(r) != full || full == opened {
		t.Errorf("with the fact\n%s\nfollowed\n%s\nfull run without it\n%s", opened, canonical(r), full)
	}
}

// What facts say of the name that stands for a class is about none of its documents. Members of sets that are fetched
// can be any bytes.
func TestFactsAboutNoDocument(t *testing.T) {
	plan, c := onePolicy(t, `read :- sKeyIs(_K), "open" says to(this). `+exit, "/d/a/1", "/d/b/1")
	class := classNamed(t, c, "/d/a/1")
	before := run(t, plan, c)
	change, err := addFacts(c, fact("open", "to", fmt.Sprint(standIn, class)))
	followed, _ := follow(t, before, change, err)
	want := canonical(before)
	if full := canonical(run(t, plan, c)); full != want || canonical(followed) != want {
		t.Errorf("before\n%s\nfollowed\n%s\nfull run\n%s", want, canonical(followed), full)
	}
}
