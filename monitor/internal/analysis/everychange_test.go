// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Random policies for TestEveryChangeEqualsAFullRun are conjunctions of these. They hold what a
// reader of texts would stumble over: hyphens, comments, and strings that look like syntax.
var pieces = []string{
	`sKeyIs(owner)`, `sKeyIs("a")`, `sKeyIs(_K)`, `sRegionIs("de")`, `sKeyIs(K), neq(K, "each in x says y(D) {")`,
	`sKeyIs(K), concat(F, "friends-of/", owner), F says close-friend(K)`,
	`sKeyIs(K), concat(F, "friends-of/", owner), F says close-friend(M), concat(G, "friends-of/", M),
		G says # a comment: each in "x" says y(D) { neq(D, K) }
		close-friend(K)`,
	`sKeyIs(K), concat(F, "friends-of/", K), F says close-friend(owner)`,
	`sRegionIs(R), concat(L, "black-list/", R), each in L says is-blocked(D) { neq(D, this) }`,
	`sKeyIs(K), "club" says member-of(K, owner)`, `"club" says member-of(owner, _)`, `"club" says member-of(K, owner), sKeyIs(K)`,
	`sKeyIs(K), each in "deny" says none-of(D) { neq(D, K) }`, `each in "deny" says none-of(D) { neq(D, "}"), neq(D, owner) }`,
	`each in "deny" says none-of(D) { "club" says member-of(D, owner) }`,
	`each in "club" says member-of(D, _E) { each in "deny" says none-of(X) { neq(X, D) } }`,
	`sKeyIs(K), concat(N, "list/", this), N says close-friend(K)`, `sKeyIs(K), this says close-friend(K)`,
	`sKeyIs(K), "club" says member-of(K, this)`, `sKeyIs(K), "club" says member-of(K, "")`,
	`timeIs(T), lt(T, 2017-06-03T00:00:00Z)`,
	`timeIs(T), ge(T, 2017-06-02T00:00:00Z)`, `"when" says starts-at(S), timeIs(T), gt(T, S)`,
	`"when" says ends-at(owner, E), timeIs(T), le(T, E)`,
	`timeIs(T), add(U, T, 86400), "when" says starts-at(V), lt(V, U)`, `isAsRestrictive(this.read, this.update)`,
	`cIdExists(1)`, `hasPol(1, P), isAsRestrictive(P.read, this.read)`, `cKindIs(file)`,
	`each in "deny" says none-of(_D) { true }`,
	`sKeyIs(K), "/log" says access(K, this, _)`, `"/log"@_ says access(owner, _, T), timeIs(N), le(T, N)`,
	`"/log"@O says access(_, this, _), ge(O, 80)`, `sKeyIs(K), each in "/log" says access(D, _, _) { neq(D, K) }`,
}

// A piece that does not compile would never be drawn.
func TestPiecesAreClauses(t *testing.T) {
	for _, piece := range pieces {
		if _, err := policy.CompileText("piece", []byte("policy p(owner) { read :- "+piece+". }")); err != nil {
			t.Error(err)
		}
	}
}

func body(rt *rapid.T) string {
	chosen := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 3).Draw(rt, "pieces")
	for ; len(chosen) > 0; chosen = chosen[:len(chosen)-1] {
		text := strings.Join(chosen, ",\n  ")
		if _, err := policy.CompileText("body", []byte("policy p(owner) { read :- "+text+". }")); err == nil {
			return text
		}
	}
	return rapid.SampledFrom([]string{"true", "sKeyIs(owner)", `sKeyIs("b"), sRegionIs("us")`}).Draw(rt, "body")
}

// anyPolicy draws a policy whose data may go to documents, or has exits of its own.
func anyPolicy(rt *rapid.T) string {
	var text strings.Builder
	text.WriteString("policy p(owner) {\n")
	for range rapid.IntRange(0, 2).Draw(rt, "read clauses") {
		text.WriteString("read :- " + body(rt) + ".\n")
	}
	for range rapid.IntRange(0, 2).Draw(rt, "update clauses") {
		text.WriteString("update :- " + body(rt) + ".\n")
	}
	switch rapid.IntRange(0, 5).Draw(rt, "declassify") {
	case 0:
		text.WriteString("declassify :- isAsRestrictive(read, this.read) until " + body(rt) + ".\n")
	case 1:
		text.WriteString("declassify :- isAsRestrictive(read, this.update) until cKindIs(descriptor).\n")
	case 2:
		text.WriteString("declassify :- true.\n")
	default:
		text.WriteString(exit + "\n")
	}
	return text.String() + "}"
}

// After each change of facts, entries of a log, policies, documents, choices, tasks or the clock, the
// accesses that were followed are those of a full run, and whoever has others than before is named. So they
// are before the instant at which something expires or begins next. What a limit has left is never an access too many.
func TestEveryChangeEqualsAFullRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt)
		defer w.close()
		if _, _, err := w.c.Register(rapid.SliceOfDistinct(rapid.SampledFrom(worldDocuments), rapid.ID).Draw(rt,
			"documents")); err != nil {
			rt.Fatal(err)
		}
		w.must(w.c.AtOnce().ChangeFacts(nil, w.facts("facts", 20)))
		var err error
		if w.r, err = Run(rt.Context(), w.plan, w.c.State(), w.options()); err != nil {
			rt.Fatal(err)
		}
		w.check(w.run(), "")
		history := ""
		for range rapid.IntRange(2, 12).Draw(rt, "steps") {
			history += w.step() + "\n"
			full := w.run()
			w.checkWithin(full, history)
			if rapid.Bool().Draw(rt, "finish") {
				w.finish()
			}
			w.check(full, history)
		}
	})
}

func (w *world) run() *Result {
	result, err := Run(w.rt.Context(), w.plan, w.c.State(), Options{Now: w.now, search: true})
	if err != nil {
		w.rt.Fatal(err)
	}
	return result
}

// check fails if the result is complete and not that of a full run.
func (w *world) check(full *Result, history string) {
	if got, want := canonical(w.r), canonical(full); !w.r.Pending() && got != want {
		w.rt.Fatalf("%s%s\nafter\n%s\nincremental:\n%s\nfull run:\n%s", policiesOf(w.bundle), w.plan.Tasks[0].Reads,
			history, got, want)
	}
}

// checkWithin fails if the result has an access that a full run has not.
func (w *world) checkWithin(full *Result, history string) {
	for _, c := range w.r.instances {
		held, found := full.Instance(c.Instance)
		if !found {
			w.rt.Fatalf("%s is not expected after\n%s", c.Instance.Name(), history)
		}
		if lost := compare(c, held); lost != nil && hasMore(c, held) {
			for _, class := range append(minus(c.Reads, held.Reads), minus(c.Writes, held.Writes)...) {
				if w.c.State().Class(class).Members > 0 || w.c.State().Class(class).Policy == nil {
					w.rt.Fatalf("%s\n%s has class %d too many after\n%s\nhas:\n%s\nfull run:\n%s", policiesOf(w.bundle),
						c.Instance.Name(), class, history, canonical(w.r), canonical(full))
				}
			}
		}
	}
}

func hasMore(c, than *Capabilities) bool {
	return len(minus(c.Reads, than.Reads))+len(minus(c.Writes, than.Writes)) > 0
}

func policiesOf(bundle catalog.Bundle) string {
	var out strings.Builder
	for _, one := range bundle.Policies {
		fmt.Fprintf(&out, "%s: %s\n", one.Name, one.Text)
	}
	return out.String()
}
