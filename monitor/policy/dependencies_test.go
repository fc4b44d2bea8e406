// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDependencies(t *testing.T) {
	template, err := CompileText("test", []byte(`policy p(owner) {
		# each in "comment" says nothing(X) { neq(X, this) }
		read :- sKeyIs(K), concat(F, "friends/", owner), F says close-friend(K, _), neq(K, "x says y(Z)").
		read :- each in "deny" says blocked(D) { "club" says member-of(D), each in "deny" says inner(E) { eq(E, D) } }.
		update :- timeIs(T), gt(T, 2020-01-01T00:00:00Z), isAsRestrictive(this.read, this.update).
		declassify :- isAsRestrictive(read, this.read) until hasPol(1, _P), "switch" says on(owner).
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Dependencies{
		Read: Uses{Facts: []FactUse{
			{Relation: "close-friend", Arity: 2},
			{Conduit: "deny", Relation: "blocked", Arity: 1, Each: true},
			{Conduit: "club", Relation: "member-of", Arity: 1},
			{Conduit: "deny", Relation: "inner", Arity: 1, Each: true},
		}},
		Update: Uses{Compares: true, Clock: true},
		Exits:  Uses{Facts: []FactUse{{Conduit: "switch", Relation: "on", Arity: 1}}, Conduits: true},
	}
	if diff := cmp.Diff(want, template.Dependencies()); diff != "" {
		t.Error(diff)
	}
	if !template.Dependencies().SpeaksOfConduits() {
		t.Error("hasPol is not found")
	}
}

// A fact reaches those sessions and arguments for which a clause may hold because of it.
func TestReaches(t *testing.T) {
	state := stateOf(t, `friends/alice says friend ["bob"]`, `friends/bob says friend ["carol"]`,
		`friends/bob says friend ["dave"]`)
	reach := func(principal, region, this string, arguments ...string) Reach {
		known := func(text string) Value {
			if text == "" {
				return Value{}
			}
			return String(text)
		}
		r := Reach{Asks: principal != "", Region: known(region), This: known(this), Arguments: []Value{}}
		if principal != "*" {
			r.Principal = known(principal)
		}
		for _, argument := range arguments {
			r.Arguments = append(r.Arguments, known(argument))
		}
		return r
	}
	const friends = `read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).`
	for name, test := range map[string]struct {
		text, fact string
		removed    bool
		want       []Reach
	}{
		"a friend":        {friends, `friends/alice says friend ["bob"]`, false, []Reach{reach("bob", "", "", "alice")}},
		"another conduit": {friends, `enemies/alice says friend ["bob"]`, false, nil},
		"a friend less":   {friends, `friends/alice says friend ["bob"]`, true, nil},
		"a friend of a friend": {`read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(M), concat(G, "friends/", M),
			G says friend(K).`, `friends/alice says friend ["bob"]`, false,
			[]Reach{reach("carol", "", "", "alice"), reach("dave", "", "", "alice")}},
		"a document less on a list": {`read :- sRegionIs(R), concat(L, "list/", R), each in L says no(D) { neq(D, this) }.`,
			`list/de says no ["x"]`, true, []Reach{reach("", "de", "x", "")}},
		"a name less on a list": {`read :- sKeyIs(K), each in "list" says no(D) { neq(D, "a"), neq(D, K) }.`,
			`list says no ["x"]`, true, []Reach{reach("x", "", "", "")}},
		"a name that was not the obstacle": {`read :- sKeyIs("b"), each in "list" says no(D) { neq(D, "a") }.`,
			`list says no ["x"]`, true, nil},
		"a list that comparisons cannot look into": {`read :- sKeyIs(K), each in "list" says no(K, D) { neq(D, "a") }.`,
			`list says no ["b", "x"]`, true, []Reach{reach("b", "", "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := CompileText("test", []byte("policy p(owner) { "+test.text+" }"))
			if err != nil {
				t.Fatal(err)
			}
			got := template.ReadsReached(mustFact(t, test.fact), !test.removed, state)
			if !slices.EqualFunc(got, test.want, func(a, b Reach) bool { return a.compare(b) == 0 }) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	// A search that takes too long reaches everything.
	large := mustFacts(t, `x says y ["k"]`)
	for i := range 300 {
		for j := range 300 {
			if _, err := large.Add(Fact{Conduit: "big", Relation: "r", Arguments: []Value{Integer(int64(i)), Integer(int64(j))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	template, err := CompileText("test", []byte(`policy p(owner) { read :- "big" says r(A, _), "big" says r(_, B), sKeyIs(K),
		"x" says y(K), neq(A, B), neq(A, "z"), neq(B, owner). }`))
	if err != nil {
		t.Fatal(err)
	}
	got := template.ReadsReached(mustFact(t, `x says y ["k"]`), true, StateOf(large, NewConduitTable()))
	if len(got) != 1 || got[0].Asks || got[0].Arguments[0].Kind() != Wildcard {
		t.Errorf("a search that was cut off reaches %+v", got)
	}
}

func TestPredictedSession(t *testing.T) {
	for text, want := range map[string]string{
		`read :- sKeyIs(owner), sRegionIs("de").`:                        "known",
		`declassify :- isAsRestrictive(read, this.read).`:                "nobody",
		`read :- sKeyIs(_K).`:                                            "open",
		`read :- sKeyIs(owner), "list" says ok(owner).`:                  "open",
		`read :- sKeyIs(owner), eq(owner, "x").`:                         "open", // for another owner it is for nobody
		`read :- sRegionIs(owner), sRegionIs("de").`:                     "open",
		`read :- sKeyIs(owner). declassify :- true.`:                     "open",
		`read :- sKeyIs(owner), timeIs(T), lt(T, 2020-01-01T00:00:00Z).`: "known",
	} {
		template, err := CompileText("test", []byte("policy p(owner) { "+text+" }"))
		if err != nil {
			t.Fatal(err)
		}
		predicted, ok := template.PredictedSession()
		got := "open"
		switch {
		case ok && predicted.Nobody:
			got = "nobody"
		case ok:
			got = "known"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	file, err := Parse("test", []byte(`policy p { # a brace: }
		read :- "a. b" says c(X), sKeyIs(X). # the end.
	}`))
	if err != nil {
		t.Fatal(err)
	}
	adding, err := Adding(`update :- sKeyIs("}").`)
	if err != nil {
		t.Fatal(err)
	}
	narrowing, err := Narrowing(`sRegionIs("de")`)
	if err != nil {
		t.Fatal(err)
	}
	before := string(file.Format())
	edited, ok := file.Edited(adding, narrowing)
	const want = `policy p {
  # a brace: }
  read   :- "a. b" says c(X), sKeyIs(X), sRegionIs("de").
  update :- sKeyIs("}").
  # the end.
}
`
	if !ok || string(edited.Format()) != want || string(file.Format()) != before {
		t.Errorf("%v\n%s\nwant\n%s\nand the original unchanged:\n%s", ok, edited.Format(), want, file.Format())
	}
	if closed, ok := file.Edited(Closing); !ok || len(closed.Policies[0].clauses) != 0 {
		t.Error("read clauses are left")
	}
	if _, ok := file.Edited(Closing, Closing); ok {
		t.Error("there was nothing to remove")
	}
}
