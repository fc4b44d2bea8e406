// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/policy"
)

// Class is a set of conduits that no decision can tell apart: they have the same set in
// the pipeline, the same kind, the same canonical policy, and the same facts about them in all
// places in which a policy can find them.
type Class struct {
	Number    uint32
	Set       string
	Kind      policy.ConduitKind
	Internal  bool
	Directory bool   // tasks get it as a whole
	Type      string // the shape of their content; "": none
	Reference Reference
	Policy    *policy.Policy // nil: retired, its policy is no longer in the bundle
	// Mentions are the facts that have the conduit's name where a policy can find it, with
	// "this" there, for people. A class of one conduit that decisions can depend on has none.
	Mentions []string
	Own      string // the name of the only conduit, if decisions can depend on it
}

// ClassInfo is a class in one state.
type ClassInfo struct {
	*Class
	Members        uint32 // conduits in it
	Representative uint32 // one of them, 0 if there is none
}

// classRecord is a class on disk.
type classRecord struct {
	Set       string             `json:"set"`
	Kind      policy.ConduitKind `json:"kind"`
	Internal  bool               `json:"internal,omitempty"`
	Directory bool               `json:"directory,omitempty"`
	Type      string             `json:"type,omitempty"`
	Reference Reference          `json:"reference"`
	PolicyID  []byte             `json:"policyId"`
	Mentions  []string           `json:"mentions,omitempty"`
	Own       string             `json:"own,omitempty"` // the conduit, if decisions can depend on its name
}

func (r classRecord) key() string {
	text, err := json.Marshal(r)
	if err != nil {
		bug.Found("encode class: %v", err)
	}
	return string(text)
}

// classRecordOf returns the class of a conduit that a rule covers and that has a policy.
func (r *ruleset) classRecordOf(name string, found covered, facts *policy.FactIndex,
	bind func(Reference) (*policy.Policy, error)) (classRecord, error) {
	rule, reference := found.rule, found.reference()
	bound, err := bind(reference)
	if err != nil {
		return classRecord{}, fmt.Errorf("conduit %s: %w", name, err)
	}
	id := bound.ID()
	record := classRecord{
		Set: rule.Set, Kind: rule.Kind, Internal: rule.Internal, Directory: rule.Directory,
		Type: rule.Type, Reference: reference, PolicyID: id[:],
	}
	if r.observed.tells(name, reference, nil) {
		record.Own = name // whatever facts about it change, it stays in this class
	} else {
		record.Mentions = mentionsOf(name, facts, func(conduit, relation string, arguments int) []policy.FactPlace {
			return r.observed.places(reference, conduit, relation, arguments)
		})
	}
	return record, nil
}

// mentionsOf lists the facts that have name in one of the places, sorted, with this there.
func mentionsOf(name string, facts *policy.FactIndex,
	places func(conduit, relation string, arguments int) []policy.FactPlace) []string {
	var mentions []string
	value := policy.String(name)
	facts.Mentions(value, func(conduit, relation string, arguments int) bool {
		for _, place := range places(conduit, relation, arguments) {
			pattern := policy.Pattern{Conduit: conduit, Relation: relation, Arguments: make([]policy.Value, arguments),
				Positioned: place.Positioned}
			if place.Place >= 0 {
				pattern.Arguments[place.Place] = value
			} else if conduit != name {
				continue
			}
			facts.Lookup(pattern, func(fact policy.Fact) bool {
				mentions = append(mentions, mention(fact, place.Place))
				return true
			})
		}
		return true
	})
	slices.Sort(mentions)
	return mentions
}

// mention writes a fact with this in one place.
func mention(fact policy.Fact, place int) string {
	texts := make([]string, len(fact.Arguments))
	for i, value := range fact.Arguments {
		if texts[i] = value.String(); i == place {
			texts[i] = "this"
		}
	}
	conduit := strconv.Quote(fact.Conduit)
	if place == policy.ConduitPlace {
		conduit = "this"
	}
	if fact.Positioned {
		conduit += "@" + strconv.FormatInt(fact.Offset, 10)
	}
	return conduit + " says " + fact.Relation + "(" + strings.Join(texts, ", ") + ")"
}
