// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"regexp"
	"slices"

	"github.com/creachadair/jrpc2"

	"shai.dev/monitor/policy"
)

func (s *Server) definition(_ context.Context, params placeParams) ([]location, error) {
	d, of, err := s.symbol(params)
	if err != nil {
		return nil, err
	}
	found := []location{}
	switch of.kind {
	case variable, parameter:
		found = append(found, location{d.uri, d.rangeOf(d.tokens[of.among[0]].Range)})
	case policyName:
		for _, one := range s.beside(d) {
			for _, place := range one.declared(of.name) {
				found = append(found, location{one.uri, place})
			}
		}
	}
	return found, nil
}

func (s *Server) references(_ context.Context, params placeParams) ([]location, error) {
	d, of, err := s.symbol(params)
	if err != nil {
		return nil, err
	}
	found := []location{}
	for _, one := range s.occurrences(d, of) {
		for _, at := range one.at {
			found = append(found, location{one.in.uri, one.in.rangeOf(one.in.tokens[at].Range)})
		}
	}
	return found, nil
}

// symbol returns what stands at a place; no symbol if nothing does.
func (s *Server) symbol(params placeParams) (*document, symbol, error) {
	d, err := s.text(params)
	if err != nil || d == nil {
		return nil, symbol{}, err
	}
	number, ok := d.tokenAt(params.Position)
	if !ok {
		return d, symbol{}, nil
	}
	return d, d.symbolAt(number), nil
}

// occurrence is where one document has a symbol.
type occurrence struct {
	in *document
	at []int
}

// occurrences lists where a symbol stands, in all files beside the document.
func (s *Server) occurrences(d *document, of symbol) []occurrence {
	switch of.kind {
	case variable, parameter:
		return []occurrence{{d, of.among}}
	case policyName:
		var all []occurrence
		for _, one := range s.beside(d) {
			declared, included := one.policyUses(of.name)
			if at := slices.Sorted(slices.Values(append(declared, included...))); len(at) > 0 {
				all = append(all, occurrence{one, at})
			}
		}
		return all
	}
	return nil
}

func (s *Server) prepareRename(_ context.Context, params placeParams) (*textRange, error) {
	d, of, err := s.symbol(params)
	if err != nil {
		return nil, err
	}
	if err := s.renamable(d, of); err != nil {
		return nil, err
	}
	place := d.rangeOf(d.tokens[of.at].Range)
	return &place, nil
}

// renamable reports why a symbol cannot get another name.
func (s *Server) renamable(d *document, of symbol) error {
	if of.kind == parameter && d.part != nil {
		return refused("parameter %s is named by the manifests that refer to the policy, too: rename it there as well",
			of.name)
	}
	if of.kind == policyName && d.part != nil {
		return refused("policy %s is an object that other manifests name: rename it there as well", of.name)
	}
	switch of.kind {
	case variable, parameter:
		return nil
	case policyName:
		for _, one := range s.beside(d) {
			if declared, _ := one.policyUses(of.name); len(declared) > 0 {
				return nil
			}
		}
		return refused("policy %s is not declared in this directory", of.name)
	case relation:
		return refused("relation %s is the name of facts, too: rename it in their source", of.name)
	}
	return refused("only variables, parameters and policies can be renamed")
}

func refused(format string, arguments ...any) error {
	return jrpc2.Errorf(jrpc2.InvalidParams, format, arguments...)
}

var (
	variableForm = regexp.MustCompile(`^(?:[A-Z]|_[A-Za-z0-9])[A-Za-z0-9_]*$`)
	nameForm     = regexp.MustCompile(`^[a-z][a-z0-9_A-Z]*(?:-[a-z0-9_A-Z]+)*$`)
)

func (s *Server) rename(_ context.Context, params renameParams) (*workspaceEdit, error) {
	d, of, err := s.symbol(placeParams{params.TextDocument, params.Position})
	if err != nil {
		return nil, err
	}
	if err := s.renamable(d, of); err != nil {
		return nil, err
	}
	if err := s.free(d, of, params.NewName); err != nil {
		return nil, err
	}
	changed := s.occurrences(d, of)
	if err := s.keepsMeaning(d, changed, params.NewName); err != nil {
		return nil, err
	}
	edit := &workspaceEdit{Changes: map[string][]textEdit{}}
	for _, one := range changed {
		for _, at := range one.at {
			edit.Changes[one.in.uri] = append(edit.Changes[one.in.uri],
				textEdit{one.in.rangeOf(one.in.tokens[at].Range), params.NewName})
		}
	}
	return edit, nil
}

// free reports why a symbol cannot have a name: it has another form, or means something else.
func (s *Server) free(d *document, of symbol, name string) error {
	around := d.declarationOf(of.at)
	switch {
	case of.kind == variable && !variableForm.MatchString(name):
		return refused("%q is no variable: it begins with a capital, or with _ if it is used once", name)
	case of.kind != variable && (!nameForm.MatchString(name) || policy.IsReserved(name)):
		return refused("%q is no name: it begins with a lower-case letter, and is no word of the language", name)
	case of.kind == variable && isAnonymous(name) && len(of.among) > 1:
		return refused("%s would be another variable in each of the %d places: a name with _ is for one place", name,
			len(of.among))
	case of.kind == variable:
		if clause, _ := around.clauseOf(of.at); slices.Contains(d.variables(clause), name) {
			return refused("the clause has a variable %s already", name)
		}
	case of.kind == parameter:
		for i := around.from; i < around.to; i++ {
			if d.tokens[i].Kind == policy.TokenName && d.tokens[i].Text == name {
				return refused("the policy has the word %s already", name)
			}
		}
	default:
		for _, one := range s.beside(d) {
			if declared, _ := one.policyUses(name); len(declared) > 0 {
				return refused("there is a policy %s already", name)
			}
		}
	}
	return nil
}

// formatting replaces a text by its standard form; a text with mistakes stays.
func (s *Server) formatting(_ context.Context, params documentParams) ([]textEdit, error) {
	d, err := s.document(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if !isPolicyFile(d.path) {
		return []textEdit{}, nil
	}
	file, err := policy.Parse(d.path, []byte(d.text))
	if err != nil {
		return []textEdit{}, nil //nolint:nilerr // its mistakes are shown already
	}
	formatted := string(file.Format())
	if formatted == d.text {
		return []textEdit{}, nil
	}
	return []textEdit{{d.whole(), formatted}}, nil
}
