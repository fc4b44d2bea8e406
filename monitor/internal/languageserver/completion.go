// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/policy"
)

func (s *Server) completion(_ context.Context, params placeParams) ([]completionItem, error) {
	d, err := s.text(params)
	if err != nil || d == nil {
		return nil, err
	}
	return s.complete(d, d.before(params.Position)), nil
}

// complete lists what may follow the first tokens of a text.
func (s *Server) complete(d *document, before int) []completionItem {
	last := before - 1
	switch {
	case isWord(d.tokens, last, "says") || isWord(d.tokens, last, "willsay"):
		return s.relations(d)
	case isWord(d.tokens, last, "includes") || d.including(before):
		return s.policies(d)
	case isWord(d.tokens, last, "each"):
		return words("in")
	case last < 0, isSymbol(d.tokens, last, "{") && !d.inEach(last), isSymbol(d.tokens, last, ".") && d.endsClause(last):
		if d.inBlock(before) {
			return words(heads...)
		}
		return words("policy", "read", "update", "declassify")
	case isSymbol(d.tokens, last, "}"):
		return words("policy")
	case isSymbol(d.tokens, last, "(") || isSymbol(d.tokens, last, ","):
		if items := argumentWords(d, last); items != nil {
			return items
		}
	}
	return d.literals(before)
}

func words(list ...string) []completionItem {
	items := []completionItem{}
	for _, word := range list {
		items = append(items, completionItem{Label: word, Kind: completesKeyword, Detail: policy.Keywords()[word]})
	}
	return items
}

// including reports whether the next token is in the list after includes.
func (d *document) including(before int) bool {
	for i := before - 1; i >= 0 && !isSymbol(d.tokens, i, "{") && !isSymbol(d.tokens, i, "}"); i-- {
		if isWord(d.tokens, i, "includes") {
			return isSymbol(d.tokens, before-1, ",")
		}
	}
	return false
}

// inEach reports whether a brace opens the condition of an each.
func (d *document) inEach(brace int) bool {
	for i := brace - 1; i >= 0 && !isSymbol(d.tokens, i, "{") && !isSymbol(d.tokens, i, "}"); i-- {
		if isWord(d.tokens, i, "each") {
			return true
		}
		if isHead(d.tokens, i) || isWord(d.tokens, i, "policy") {
			return false
		}
	}
	return false
}

// inBlock reports whether a place is inside the braces of a policy.
func (d *document) inBlock(before int) bool {
	depth := 0
	for i := range before {
		if isSymbol(d.tokens, i, "{") {
			depth++
		}
		if isSymbol(d.tokens, i, "}") {
			depth--
		}
	}
	return depth > 0
}

// endsClause reports whether a full stop ends a clause: the others stand within this.read.
func (d *document) endsClause(stop int) bool {
	return isSymbol(d.tokens, stop-1, ")") || isSymbol(d.tokens, stop-1, "}") || isWord(d.tokens, stop-1, "true")
}

// argumentWords are those that a predicate's argument may be without quotes; nil if it takes
// none.
func argumentWords(d *document, last int) []completionItem {
	depth := 0
	for i := last; i >= 0; i-- {
		if isSymbol(d.tokens, i, ")") {
			depth++
		}
		if !isSymbol(d.tokens, i, "(") {
			continue
		}
		if depth > 0 {
			depth--
			continue
		}
		for _, one := range policy.Predicates() {
			if i > 0 && d.tokens[i-1].Text == one.Name && len(one.Words) > 0 {
				var items []completionItem
				for _, word := range one.Words {
					items = append(items, completionItem{Label: word, Kind: completesConstant})
				}
				return items
			}
		}
		return nil
	}
	return nil
}

// literals lists predicates, and the variables and parameters in reach.
func (d *document) literals(before int) []completionItem {
	items := []completionItem{}
	around := d.declarationOf(max(before-1, 0))
	if around != nil {
		for _, at := range around.parameters {
			items = append(items, completionItem{Label: d.tokens[at].Text, Kind: completesVariable,
				Detail: "parameter, " + d.typeOf(at)})
		}
		if clause, ok := around.clauseOf(max(before-1, 0)); ok {
			for _, name := range d.variables(clause) {
				items = append(items, completionItem{Label: name, Kind: completesVariable,
					Detail: "variable of this clause"})
			}
		}
	}
	for _, one := range policy.Predicates() {
		if strings.Contains(one.Name, " ") || one.Name == "says" || one.Name == "willsay" {
			continue // the keywords complete these
		}
		about := markup{Kind: "markdown", Value: aboutPredicate(one)}
		items = append(items, completionItem{Label: one.Name, Kind: completesFunction, Detail: one.Form,
			Documentation: &about})
	}
	return append(items, words("each", "says", "willsay", "this", "true", "until")...)
}

// variables lists the names of a clause's variables.
func (d *document) variables(clause span) []string {
	names := map[string]bool{}
	for i := clause.from; i < clause.to; i++ {
		if d.tokens[i].Kind == policy.TokenVariable && d.tokens[i].Text != "_" {
			names[d.tokens[i].Text] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// relations lists those that FactSources declare, and those that texts use.
func (s *Server) relations(d *document) []completionItem {
	details := map[string]string{}
	for _, one := range s.beside(d) {
		for i, token := range one.tokens {
			if token.Kind == policy.TokenName && one.symbolAt(i).kind == relation {
				details[token.Text] = "used in " + filepath.Base(one.path)
			}
		}
	}
	for name, declared := range s.surroundings(filepath.Dir(d.path)).Relations {
		details[name] = declared.String() + ", declared by " + declared.Source
	}
	items := []completionItem{}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		items = append(items, completionItem{Label: name, Kind: completesFunction, Detail: details[name]})
	}
	return items
}

// policies lists those that may be included.
func (s *Server) policies(d *document) []completionItem {
	items := []completionItem{}
	for _, one := range s.beside(d) {
		for _, name := range one.policies() {
			items = append(items, completionItem{Label: name, Kind: completesModule, Detail: filepath.Base(one.path)})
		}
	}
	for _, template := range policy.Library() {
		items = append(items, completionItem{Label: policy.LibraryPrefix + template.Name(), Kind: completesModule,
			Detail: "(" + strings.Join(template.Parameters(), ", ") + ")"})
	}
	return items
}
