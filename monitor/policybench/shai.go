// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"maps"
	"slices"

	"shai.dev/monitor/policy"
)

// blacklistRule is the rule of the last scenario. Those of the others are in the standard library.
const blacklistRule = `read :- sKeyIs(K), each in "blacklist" says user(U) { neq(U, K) }.`

var library = map[string]string{"private": "private", "friends (100)": "friends", "friends (10,000)": "friends",
	"friends of friends": "friends-of-friends"}

// shai answers yes or no. decision also gives the conditions under which the answer lasts,
// as the monitor needs them.
type shai struct {
	evaluator *policy.Evaluator
	state     policy.State
	table     *policy.ConduitTable
	numbers   map[string]int64 // of documents, by which Shai knows them
	decision  bool
}

func newShaiDecision(s *scenario) (engine, error) {
	e, err := shaiOf(s)
	if err != nil {
		return nil, err
	}
	e.decision = true
	return e, nil
}

func newShai(s *scenario) (engine, error) { return shaiOf(s) }

func shaiOf(s *scenario) (*shai, error) {
	template, err := policy.CompileText("blacklist.pol", []byte(blacklistRule))
	if err != nil {
		return nil, fmt.Errorf("compile the blacklist: %w", err)
	}
	if name := library[s.name]; name != "" {
		template, _ = policy.LibraryTemplate(name)
	}
	facts, err := factsOf(s)
	if err != nil {
		return nil, err
	}
	bound := make(map[string]*policy.Policy) // one for all documents of an owner
	conduits := make([]policy.Conduit, 0, len(s.owners))
	numbers := make(map[string]int64, len(s.owners))
	for document, owner := range s.owners {
		arguments := map[string]string{}
		if len(template.Parameters()) > 0 {
			arguments["owner"] = owner
		}
		key := fmt.Sprint(arguments)
		if bound[key] == nil {
			if bound[key], err = template.Bind(arguments); err != nil {
				return nil, fmt.Errorf("bind the policy of %s: %w", s.name, err)
			}
		}
		numbers[document] = int64(len(conduits) + 1)
		conduits = append(conduits, policy.Conduit{ID: numbers[document], Name: document, Kind: policy.FileConduit,
			Policy: bound[key]})
	}
	table := policy.NewConduitTable(conduits...)
	state := policy.StateOf(facts, table)
	return &shai{evaluator: policy.NewEvaluator(state), state: state, table: table, numbers: numbers}, nil
}

func factsOf(s *scenario) (*policy.FactIndex, error) {
	var facts policy.FactBuilder
	say := func(conduit, relation string, names map[string]struct{}) error {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			fact := policy.Fact{Conduit: conduit, Relation: relation, Arguments: []policy.Value{policy.String(name)}}
			if err := facts.Add(fact); err != nil {
				return fmt.Errorf("add a fact of %s: %w", s.name, err)
			}
		}
		return nil
	}
	for owner, list := range s.friends {
		if err := say("friends/"+owner, "friend", list); err != nil {
			return nil, err
		}
	}
	if err := say("blacklist", "user", s.blacklist); err != nil {
		return nil, err
	}
	return facts.Index(), nil
}

func (e *shai) prepare(q question) (func() (bool, error), error) {
	document := e.numbers[q.document]
	environment := policy.Environment{Session: &policy.Session{Principal: q.user}, Bulk: true}
	if e.decision {
		return func() (bool, error) {
			conduit, _ := e.table.ConduitByID(document)
			decision := policy.Decide(policy.Leave, policy.Label{}, conduit, e.state, environment)
			return decision.Allowed, decision.Err
		}, nil
	}
	asker := e.evaluator.Prepare(environment)
	return func() (bool, error) {
		conduit, found := e.table.ConduitByID(document)
		if !found {
			return false, nil
		}
		return e.evaluator.Holds(conduit.Policy.Read(conduit.Name), asker)
	}, nil
}
