// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/policy"
)

// Class is a set of conduits that no decision can tell apart: they have the same set in
// the pipeline, the same kind, the same canonical policy, and the same facts about them.
type Class struct {
	Number    uint32
	Set       string
	Kind      policy.ConduitKind
	Internal  bool
	Directory bool // tasks get it as a whole
	Reference Reference
	Policy    *policy.Policy // nil: retired, its policy is no longer in the bundle
	// Mentions are the facts that contain the conduit's name, with "this" in its place,
	// for people.
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

// classRecordOf returns the class of a conduit. ok is false if no rule gives the conduit
// a policy.
func (r *ruleset) classRecordOf(name string, facts *policy.FactIndex,
	bind func(Reference) (*policy.Policy, error)) (record classRecord, ok bool, err error) {
	rule, reference, ok := r.ruleFor(name)
	if !ok {
		return classRecord{}, false, nil
	}
	bound, err := bind(reference)
	if err != nil {
		return classRecord{}, false, fmt.Errorf("conduit %s: %w", name, err)
	}
	id := bound.ID()
	record = classRecord{
		Set: rule.Set, Kind: rule.Kind, Internal: rule.Internal, Directory: rule.Directory,
		Reference: reference, PolicyID: id[:], Mentions: mentionsOf(name, facts),
	}
	if !r.nameSafe[reference.Policy] {
		record.Own = name
	}
	return record, true, nil
}

// mentionsOf lists the facts that contain name, sorted, with this in its place.
func mentionsOf(name string, facts *policy.FactIndex) []string {
	var mentions []string
	value := policy.String(name)
	facts.Mentions(value, func(conduit, relation string, arguments int) bool {
		pattern := policy.Pattern{Conduit: conduit, Relation: relation, Arguments: make([]policy.Value, arguments)}
		place := fmt.Sprintf("%q", conduit)
		add := func(fact policy.Fact) bool {
			mentions = append(mentions, place+" says "+relation+mentionTuple(fact.Arguments, value))
			return true
		}
		if conduit == name {
			place = "this"
			facts.Lookup(pattern, add)
			return true
		}
		for i := range pattern.Arguments {
			clear(pattern.Arguments)
			pattern.Arguments[i] = value
			facts.Lookup(pattern, add)
		}
		return true
	})
	slices.Sort(mentions)
	return slices.Compact(mentions)
}

func mentionTuple(tuple []policy.Value, name policy.Value) string {
	texts := make([]string, len(tuple))
	for i, value := range tuple {
		if texts[i] = value.String(); value == name {
			texts[i] = "this"
		}
	}
	return "(" + strings.Join(texts, ", ") + ")"
}
