// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"shai.dev/monitor/policy"
)

func (s *Server) hover(_ context.Context, params placeParams) (*hover, error) {
	d, err := s.text(params)
	if err != nil || d == nil {
		return nil, err
	}
	number, ok := d.tokenAt(params.Position)
	if !ok {
		return nil, nil
	}
	text := s.about(d, d.symbolAt(number))
	if text == "" {
		return nil, nil
	}
	return &hover{Contents: markup{Kind: "markdown", Value: text}, Range: d.rangeOf(d.tokens[number].Range)}, nil
}

// about describes a symbol in Markdown; "" if there is nothing to say.
func (s *Server) about(d *document, of symbol) string {
	switch of.kind {
	case predicate:
		for _, one := range policy.Predicates() {
			if one.Name == of.name {
				return aboutPredicate(one)
			}
		}
	case keyword:
		return policy.Keywords()[of.name]
	case variable:
		return fmt.Sprintf("Variable `%s` of this clause, used %d times.", of.name, len(of.among))
	case parameter:
		return fmt.Sprintf("Parameter `%s`, %s.", of.name, d.typeOf(of.among[0]))
	case relation:
		known := s.surroundings(filepath.Dir(d.path)).Relations
		if declared, ok := known[of.name]; ok {
			return fmt.Sprintf("```\n%s\n```\nDeclared by %s.", declared, declared.Source)
		}
		return fmt.Sprintf("Relation `%s`, which no FactSource in this directory declares.", of.name)
	case policyName:
		return s.aboutPolicy(d, of.name)
	}
	return ""
}

func aboutPredicate(one policy.Predicate) string {
	text := fmt.Sprintf("```shai\n%s\n```\n%s", one.Form, one.About)
	if len(one.Words) > 0 {
		text += "\n\nOne of: `" + strings.Join(one.Words, "`, `") + "`."
	}
	if one.By != "" {
		text += "\n\nSupplied by: " + one.By + "."
	}
	if one.Missing != "" {
		text += "\n\nRefused: " + one.Missing + "."
	}
	return text
}

// typeOf returns the type of the parameter that is declared at a token.
func (d *document) typeOf(number int) string {
	if isSymbol(d.tokens, number+1, ":") && number+2 < len(d.tokens) {
		return "of type " + d.tokens[number+2].Text
	}
	return "of type string"
}

// aboutPolicy shows the text of a policy, with its includes in place.
func (s *Server) aboutPolicy(d *document, name string) string {
	if ofLibrary, is := strings.CutPrefix(name, policy.LibraryPrefix); is {
		if template, known := policy.LibraryTemplate(ofLibrary); known {
			return "```shai\n" + template.Text() + "```\nOf the standard library."
		}
		return ""
	}
	var files []*policy.File
	for _, one := range s.beside(d) {
		if file, err := one.parse(one.text); err == nil {
			files = append(files, file)
		}
	}
	for _, one := range policy.Check(policy.Surroundings{}, files...) {
		if one.Name == name && one.Template != nil {
			return fmt.Sprintf("```shai\n%s```\n%s", one.Template.Text(), filepath.Base(one.File))
		}
	}
	return ""
}
