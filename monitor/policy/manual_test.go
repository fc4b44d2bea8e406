// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The manual page has an entry for every predicate, and names the kinds and types that
// predicates know.
func TestManualHasEveryPredicate(t *testing.T) {
	page, err := os.ReadFile("../man/shai-policy.5")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	words := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		macro, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if macro == ".It" {
			entries[entry(rest)] = true
		}
		if macro == ".Cm" {
			words[strings.Fields(rest)[0]] = true
		}
	}
	for op := opInvalid + 1; op < operations; op++ {
		if name := signatures[op].name; !entries[name] {
			t.Errorf("shai-policy.5 has no entry for %s; it has %d entries", name, len(entries))
		}
		for _, word := range signatures[op].words {
			if !words[word] {
				t.Errorf("shai-policy.5 does not name %s, which %s knows", word, signatures[op].name)
			}
		}
	}
}

// entry returns the predicate that an entry is about, as its signature has it.
func entry(text string) string {
	fields := strings.Fields(text)
	if fields[0] == "Fn" {
		return fields[1]
	}
	for _, verb := range []string{"says", "willsay"} {
		switch at := slices.Index(fields, verb); {
		case at > 0 && fields[1] == "each":
			return "each … " + verb
		case at > 0:
			return verb
		}
	}
	return text
}
