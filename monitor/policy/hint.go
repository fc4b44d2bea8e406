// SPDX-License-Identifier: BSD-2-Clause

package policy

import "strings"

// foreignHints say how this language says what operators and words of other languages mean.
var foreignHints = map[string]string{
	"=":   "write eq(X, Y), or use one variable in both places",
	"==":  "write eq(X, Y), or use one variable in both places",
	"!=":  "write neq(X, Y)",
	"<>":  "write neq(X, Y)",
	"<":   "write lt(X, Y)",
	"<=":  "write le(X, Y)",
	">":   "write gt(X, Y)",
	">=":  "write ge(X, Y)",
	"+":   "write add(X, Y, Z): X is Y plus Z",
	"*":   "write mul(X, Y, Z): X is Y times Z",
	"&&":  "a comma is \"and\"",
	"&":   "a comma is \"and\"",
	"and": "a comma is \"and\"",
	"||":  "\"or\" is another clause with the same head",
	"|":   "\"or\" is another clause with the same head",
	"or":  "\"or\" is another clause with the same head",
	";":   "a comma is \"and\", another clause with the same head is \"or\", and a full stop ends a clause",
	"!":   negationHint,
	"not": negationHint,
	"\\+": negationHint,
}

const negationHint = "nothing is negated: write neq(X, Y), or each in C says t(X) { neq(X, Y) } if a list must not have it"

// headHints say the same of words that begin a rule elsewhere.
var headHints = map[string]string{
	"write":  "who may write says update",
	"allow":  "read says who may read, update who may write",
	"permit": "read says who may read, update who may write",
	"deny":   nothingDenies,
	"forbid": nothingDenies,
}

const nothingDenies = "what no clause allows is denied: add conditions to the clauses that allow too much"

// foreignOperators are those of foreignHints that are no words, the longest first.
var foreignOperators = []string{"==", "!=", "<>", "<=", ">=", "&&", "||", "\\+",
	"=", "<", ">", "+", "*", "&", "|", ";", "!"}

// nearest returns the candidate that word probably means: the one with the fewest edits,
// at most two and fewer than half the word, ignoring case. It returns "" if there is
// none. Of equally near ones, the first is returned.
func nearest(word string, candidates []string) string {
	best, fewest := "", 3
	for _, candidate := range candidates {
		edits := distance(strings.ToLower(word), strings.ToLower(candidate))
		if edits < fewest && edits*2 < len(word) {
			best, fewest = candidate, edits
		}
	}
	return best
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours that turn one word into the other.
func distance(from, to string) int {
	if len(from) > 64 || len(to) > 64 {
		return max(len(from), len(to))
	}
	rows := [3][]int{make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)}
	for j := range rows[0] {
		rows[1][j] = j
	}
	before, previous, current := rows[0], rows[1], rows[2]
	for i := 1; i <= len(from); i++ {
		current[0] = i
		for j := 1; j <= len(to); j++ {
			cost := 1
			if from[i-1] == to[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(to)]
}
