// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Conduits share a class only if no decision can tell them apart. The class key contains
// the facts with a conduit's name, so a policy that uses `this` only to look its name up
// among facts cannot: two names with the same facts are interchangeable. Any other use
// (concat, a comparison with a constant, the c… predicates on names and numbers) might,
// and then each conduit is a class of its own. The test examines the text, and in doubt
// gives conduits classes of their own: this costs time, but not safety.
var (
	comment    = regexp.MustCompile(`#[^\n]*`)
	quoted     = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	ruleOfThis = regexp.MustCompile(`\bthis\s*\.\s*(read|update|declassify)\b`)
	// each in L says blocked(D) { neq(D, this) }
	absence = regexp.MustCompile(`\beach\s+in\s+\w+\s+says\s+\w+\s*\(([^()]*)\)\s*\{\s*neq\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\}`)
	// L says t(this, X)
	lookup  = regexp.MustCompile(`\bsays\s+\w+\s*\(([^()]*)\)`)
	telling = regexp.MustCompile(`\b(this|cNameIs|cIdIs|cIdExists|hasPol|cCurrLenIs|cNewLenIs|cTypeIs)\b`)
)

func nameSafe(text string) bool {
	// Strings are replaced first, so that neither a # nor the word this inside one
	// counts.
	text = quoted.ReplaceAllString(text, `S`)
	text = comment.ReplaceAllString(text, ``)
	text = ruleOfThis.ReplaceAllString(text, ``)
	text = absence.ReplaceAllStringFunc(text, func(match string) string {
		parts := absence.FindStringSubmatch(match)
		arguments := strings.FieldsFunc(parts[1],
			func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
		variable, other := parts[2], parts[3]
		if variable == "this" {
			variable, other = other, variable
		}
		if other != "this" || !slices.Contains(arguments, variable) || isConstant(variable) ||
			strings.Count(match, "this") > 1 {
			return match
		}
		return strings.ReplaceAll(match, "this", "")
	})
	text = lookup.ReplaceAllStringFunc(text, func(match string) string {
		return strings.ReplaceAll(match, "this", "")
	})
	return !telling.MatchString(text)
}

// isConstant reports whether a word is not a variable, which begins with a capital or an
// underscore.
func isConstant(word string) bool { return word == "" || word[0] < 'A' || word[0] > 'Z' }
