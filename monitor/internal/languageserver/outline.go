// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"slices"

	"shai.dev/monitor/policy"
)

// declaration is one policy of a text, as far as its tokens show it: the text may have
// mistakes. Numbers are those of tokens.
type declaration struct {
	name       int   // -1: bare clauses
	parameters []int // their names, where they are declared
	includes   []int // names of policies
	from, to   int   // its tokens
	clauses    []span
}

// span is a range of tokens: up to, not including, to.
type span struct{ from, to int }

func (s span) has(number int) bool { return s.from <= number && number < s.to }

// outlineOf finds the policies of a text.
func outlineOf(tokens []policy.Token) []declaration {
	var starts []int
	for i := range tokens {
		if isWord(tokens, i, "policy") {
			starts = append(starts, i)
		}
	}
	if len(starts) == 0 || starts[0] > 0 {
		starts = append([]int{0}, starts...)
	}
	var all []declaration
	for n, start := range starts {
		end := len(tokens)
		if n+1 < len(starts) {
			end = starts[n+1]
		}
		if start < end {
			all = append(all, declarationOf(tokens, start, end))
		}
	}
	return all
}

func isWord(tokens []policy.Token, at int, word string) bool {
	return at >= 0 && at < len(tokens) && tokens[at].Kind == policy.TokenName && tokens[at].Text == word
}

func isSymbol(tokens []policy.Token, at int, symbol string) bool {
	return at >= 0 && at < len(tokens) && tokens[at].Kind == policy.TokenSymbol && tokens[at].Text == symbol
}

var heads = []string{"read", "update", "declassify"}

// isHead reports whether a clause begins at a token.
func isHead(tokens []policy.Token, at int) bool {
	return tokens[at].Kind == policy.TokenName && slices.Contains(heads, tokens[at].Text) &&
		isSymbol(tokens, at+1, ":-")
}

func declarationOf(tokens []policy.Token, from, to int) declaration {
	d := declaration{name: -1, from: from, to: to}
	at := from
	if isWord(tokens, at, "policy") {
		at = d.header(tokens, at+1)
	}
	for i := at; i < to; i++ {
		if !isHead(tokens, i) {
			continue
		}
		if n := len(d.clauses); n > 0 {
			d.clauses[n-1].to = i
		}
		d.clauses = append(d.clauses, span{i, to})
	}
	return d
}

// header reads name, parameters and includes, up to the brace.
func (d *declaration) header(tokens []policy.Token, at int) int {
	if at < d.to && tokens[at].Kind == policy.TokenName {
		d.name = at
		at++
	}
	including := false
	for ; at < d.to && !isSymbol(tokens, at, "{") && !isHead(tokens, at); at++ {
		switch {
		case isWord(tokens, at, "includes"):
			including = true
		case tokens[at].Kind != policy.TokenName:
		case including && (isWord(tokens, at-1, "includes") || isSymbol(tokens, at-1, ",") && d.outside(tokens, at)):
			d.includes = append(d.includes, at)
		case !including && (isSymbol(tokens, at-1, "(") || isSymbol(tokens, at-1, ",")):
			d.parameters = append(d.parameters, at)
		}
	}
	return at
}

// outside reports whether a token is outside parentheses.
func (d *declaration) outside(tokens []policy.Token, at int) bool {
	depth := 0
	for i := d.from; i < at; i++ {
		if isSymbol(tokens, i, "(") {
			depth++
		}
		if isSymbol(tokens, i, ")") {
			depth--
		}
	}
	return depth == 0
}

// clauseOf returns the clause that a token is in.
func (d *declaration) clauseOf(number int) (span, bool) {
	for _, clause := range d.clauses {
		if clause.has(number) {
			return clause, true
		}
	}
	return span{}, false
}

// declarationOf returns the policy that a token is in.
func (d *document) declarationOf(number int) *declaration {
	for i := range d.outline {
		if d.outline[i].from <= number && number < d.outline[i].to {
			return &d.outline[i]
		}
	}
	return nil
}
