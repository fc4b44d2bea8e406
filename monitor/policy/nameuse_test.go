// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNameUse(t *testing.T) {
	anyone := func(relation string, arguments, place int) FactPlace {
		return FactPlace{Relation: relation, Arguments: arguments, Place: place}
	}
	in := func(conduit, relation string, arguments, place int) FactPlace {
		return FactPlace{Conduit: conduit, Relation: relation, Arguments: arguments, Place: place}
	}
	for text, want := range map[string]NameUse{
		`read :- true.`: {},
		`read :- true. declassify :- isAsRestrictive(read, this . read) until cKindIs(descriptor).`: {
			Constants: []string{"descriptor"}},
		`read :- cNameIs("/x").`:                     {Tells: true, Constants: []string{"/x"}},
		`read :- eq(this, "/x").`:                    {Tells: true, Constants: []string{"/x"}},
		`read :- eq(_X, "this").`:                    {Constants: []string{"this"}},
		"read :- true. # this\n":                     {},
		`read :- concat(_X, "/x", this).`:            {Tells: true, Constants: []string{"/x"}},
		`read :- sKeyIs(this).`:                      {Tells: true},
		`update :- hasPol(I, _P), "x" willsay t(I).`: {Tells: true, Constants: []string{"x"}},
		`update :- "x" willsay t(this).`:             {Tells: true, Constants: []string{"x"}},
		`update :- this willsay t("y").`:             {Constants: []string{"y"}},
		`declassify :- isAsRestrictive(read, this.read) until cNameIs(N), "log" says t(N).`: {
			Constants: []string{"log"}, Open: []FactPlace{in("log", "t", 1, 0)}},
		`declassify :- isAsRestrictive(read, this.read) until cNameIs(this).`: {Tells: true},
		`read :- "log" says t(this, K), sKeyIs(K).`: {Constants: []string{"log"},
			Own: []FactPlace{in("log", "t", 2, 0)}, Open: []FactPlace{in("log", "t", 2, 1)}},
		`read :- "log" says t("a", this).`: {Constants: []string{"a", "log"}, Own: []FactPlace{in("log", "t", 2, 1)}},
		`read :- "log"@3 says t(this).`: {Constants: []string{"log"},
			Own: []FactPlace{{Conduit: "log", Relation: "t", Arguments: 1, Positioned: true}}},
		`read :- this says t().`: {Own: []FactPlace{anyone("t", 0, ConduitPlace)}},
		`read :- sKeyIs(L), L says t(this).`: {Own: []FactPlace{anyone("t", 1, 0)},
			Open: []FactPlace{anyone("t", 1, ConduitPlace)}},
		`read :- each in "log" says t(_D) { neq("/x", this) }.`: {Tells: true, Constants: []string{"/x", "log"},
			Open: []FactPlace{in("log", "t", 1, 0)}},
		`read :- sKeyIs(E), each in "log" says t(_D) { neq(E, this) }.`: {Tells: true, Constants: []string{"log"},
			Open: []FactPlace{in("log", "t", 1, 0)}},
		`read :- each in "log" says t(D, X) { neq(this, D), sKeyIs(X) }.`: {Constants: []string{"log"},
			Own:  []FactPlace{in("log", "t", 2, 0)},
			Open: []FactPlace{in("log", "t", 2, 0), in("log", "t", 2, 1)}},
		`read :- each in "log" says t(D) { lt(D, this) }.`: {Tells: true, Constants: []string{"log"},
			Open: []FactPlace{in("log", "t", 1, 0)}},
		`read :- each in "log" says t(D) { each in "l" says u(_E) { neq(D, this) } }.`: {Tells: true,
			Constants: []string{"l", "log"}, Open: []FactPlace{in("l", "u", 1, 0), in("log", "t", 1, 0)}},
		`read :- "log" says t(D), neq(D, this).`: {Tells: true, Constants: []string{"log"},
			Open: []FactPlace{in("log", "t", 1, 0)}},
		`read :- each in "log" says t(_) { "m" says u(this) }.`: {Constants: []string{"log", "m"},
			Own: []FactPlace{in("m", "u", 1, 0)}, Open: []FactPlace{in("log", "t", 1, 0)}},
	} {
		template, err := CompileText("t.pol", []byte("policy p { "+text+" }"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, template.NameUse()); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
