// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"strings"
	"testing"
)

func TestSameButForNames(t *testing.T) {
	const first = `policy p(owner, end: time) {
  read :- sKeyIs(owner).
  read :- sKeyIs(Kay), "friends" says pair(Kay, _), timeIs(T), lt(T, end).
  update :- each in "l" says b(X, Y) { neq(X, Y) }.
  declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
}`
	template := func(text string) *Template {
		t.Helper()
		compiled, err := CompileAccepted("a.pol", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	for _, change := range []struct {
		from, to string
		same     bool
	}{
		{"Kay", "Reader", true}, {"p(", "q(", true}, {"owner", "holder", true}, {"X", "Z", true}, {"_", "_Other", true},
		{"_", "Used", true}, // once
		{"Kay", "_Kay", false}, {"_", "Kay", false}, {"Y", "X", false}, {"X, Y) {", "Y, X) {", false},
		{"end: time", "end", false}, {"friends", "foes", false}, {"pair", "pear", false}, {"(owner).", "(end).", false},
		{"descriptor", "file", false}, {"this.read", "this.update", false}, {"update :-", "read :-", false},
	} {
		text := strings.ReplaceAll(first, change.from, change.to)
		if same := SameButForNames(template(first), template(text)); same != change.same || text == first {
			t.Errorf("%s for %s: %v", change.to, change.from, same)
		}
	}
}
