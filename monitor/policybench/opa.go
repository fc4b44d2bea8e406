// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// regoRules are the rules of each scenario. Lists are objects, so that a name is found by
// its hash and not by a walk.
var regoRules = map[string]string{
	"private": `allow if input.user == data.owners[input.document]`,
	"friends (100)": `allow if input.user == data.owners[input.document]
allow if data.friends[data.owners[input.document]][input.user]`,
	"friends of friends": `allow if input.user == data.owners[input.document]
allow if data.friends[data.owners[input.document]][input.user]
allow if {
	some friend
	data.friends[data.owners[input.document]][friend]
	data.friends[friend][input.user]
}`,
	"blacklist (2,250)": `allow if not data.blacklist[input.user]`,
}

func init() { regoRules["friends (10,000)"] = regoRules["friends (100)"] }

type opa struct{ query rego.PreparedEvalQuery }

func newOPA(s *scenario) (engine, error) {
	set := func(names map[string]struct{}) map[string]any {
		object := make(map[string]any, len(names))
		for name := range names {
			object[name] = true
		}
		return object
	}
	owners := make(map[string]any, len(s.owners))
	for document, owner := range s.owners {
		owners[document] = owner
	}
	friends := make(map[string]any, len(s.friends))
	for owner, list := range s.friends {
		friends[owner] = set(list)
	}
	data := map[string]any{"owners": owners, "friends": friends, "blacklist": set(s.blacklist)}
	module := "package documents\n\ndefault allow := false\n" + regoRules[s.name] + "\n"
	query, err := rego.New(
		rego.Query("data.documents.allow"),
		rego.Module("documents.rego", module),
		rego.Store(inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))),
	).PrepareForEval(context.Background())
	if err != nil {
		return nil, fmt.Errorf("prepare the query of %s: %w", s.name, err)
	}
	return &opa{query}, nil
}

func (o *opa) prepare(q question) (func() (bool, error), error) {
	input, err := ast.InterfaceToValue(map[string]any{"user": q.user, "document": q.document})
	if err != nil {
		return nil, fmt.Errorf("parse the input: %w", err)
	}
	parsed := rego.EvalParsedInput(input)
	return func() (bool, error) {
		results, err := o.query.Eval(context.Background(), parsed)
		return results.Allowed(), err
	}, nil
}
