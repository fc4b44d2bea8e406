// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"os"
	"strings"
	"testing"
)

// Every predicate is described, in a form that parses, and in docs/policies.md.
func TestVocabularyIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range Predicates() {
		if one.Form == "" || !strings.HasSuffix(one.About, ".") || one.By == "" && one.Missing == "" {
			t.Errorf("predicate %s: %+v", one.Name, one)
		}
		if word, _, _ := strings.Cut(one.Name, " "); !strings.Contains(string(page), word) {
			t.Errorf("docs/policies.md does not name %s", one.Name)
		}
	}
	for word := range Keywords() {
		if word != "includes" && !IsReserved(word) {
			t.Errorf("%s is no keyword", word)
		}
	}
}

// Tokens are those that the parser reads, and their ranges are where they stand.
func TestTokensStandWhereTheySay(t *testing.T) {
	text := "policy p(a) {\n  read :- sKeyIs(a), \"x\" says f(_Q, 1). # end\n} ' broken"
	lines := strings.Split(text, "\n")
	tokens := Tokens([]byte(text))
	if len(tokens) < 20 {
		t.Fatalf("%d tokens", len(tokens))
	}
	for _, token := range tokens {
		line := lines[token.Range.From.Line-1]
		if got := line[token.Range.From.Column-1 : token.Range.To.Column-1]; got != token.Text {
			t.Errorf("%q stands at %v, where %q is", token.Text, token.Range, got)
		}
	}
}
