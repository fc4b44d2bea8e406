// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"testing"

	"shai.dev/monitor/policy"
)

// A case of a write tells the lengths and the type without which it would be none.
func TestComparedCasesAreWhole(t *testing.T) {
	bound := func(text string) *policy.Policy {
		t.Helper()
		template, err := policy.CompileText("t.pol", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		made, err := template.Bind(nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := bound(`update :- cCurrLenIs(3), cNewLenIs(7), cTypeIs("access-log"), cIdIs(5).`)
	compared := compareBoth(first, bound(`update :- sKeyIs("alice").`), "/log", nil)
	if len(compared.Clauses) != 1 || compared.Clauses[0].Case == nil {
		t.Fatalf("%+v", compared)
	}
	const want = "anybody, authenticated or not, to a conduit of type access-log numbered 5 with bytes before: 3 with bytes after: 7"
	if got := compared.Clauses[0].Case.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
