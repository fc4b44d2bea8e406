// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// ConditionKind says what a [Condition] is about.
type ConditionKind string

// The kinds of state condition.
const (
	FactPresent     ConditionKind = "present"   // Conduit says Relation(Tuple)
	FactAbsent      ConditionKind = "absent"    // nothing in Conduit matches Relation(Tuple); Tuple may hold wildcards
	FactsUnchanged  ConditionKind = "unchanged" // the tuples matching Relation(Tuple) in Conduit have this Digest
	ClockBefore     ConditionKind = "before"    // now < Time
	ClockFrom       ConditionKind = "from"      // now >= Time
	PrincipalIs     ConditionKind = "principal" // prediction: the session is authenticated as Value (name or key)
	RegionIs        ConditionKind = "region"    // prediction: the session comes from region Value
	AddressIs       ConditionKind = "address"   // prediction: the session comes from address Value
	ConduitExists   ConditionKind = "exists"    // a conduit with id Number exists
	ConduitPolicyIs ConditionKind = "policy"    // the conduit with id Number has the policy whose ID is Digest
	ConduitLengthIs ConditionKind = "length"    // Conduit is Number bytes long
)

// Condition is one part of the state that a decision rests on. Conditions are
// comparable with == and usable as map keys; JSON holds only the fields of the
// kind.
type Condition struct {
	Kind     ConditionKind `json:"kind"`
	Conduit  string        `json:"conduit,omitempty"`
	Relation string        `json:"relation,omitempty"`
	Tuple    Tuple         `json:"tuple,omitzero"`
	Value    string        `json:"value,omitempty"`
	Time     Value         `json:"time,omitzero"`
	Number   int64         `json:"number,omitempty"`
	Digest   string        `json:"digest,omitempty"`
}

// Prediction reports whether the condition is about the session rather than
// about the state. Session binding verifies predictions once.
func (c Condition) Prediction() bool {
	return c.Kind == PrincipalIs || c.Kind == RegionIs || c.Kind == AddressIs
}

// Compare orders conditions by kind, then field by field.
func (c Condition) Compare(other Condition) int {
	return cmp.Or(
		strings.Compare(string(c.Kind), string(other.Kind)),
		strings.Compare(c.Conduit, other.Conduit),
		strings.Compare(c.Relation, other.Relation),
		strings.Compare(c.Tuple.packed, other.Tuple.packed),
		strings.Compare(c.Value, other.Value),
		c.Time.Compare(other.Time),
		cmp.Compare(c.Number, other.Number),
		strings.Compare(c.Digest, other.Digest),
	)
}

// sortConditions sorts in place and drops duplicates.
func sortConditions(conditions []Condition) []Condition {
	slices.SortFunc(conditions, Condition.Compare)
	return slices.Compact(conditions)
}

// Until returns the first instant after which one of the conditions fails by the
// passing of time alone; ok is false when none does.
func Until(conditions []Condition) (instant time.Time, ok bool) {
	for _, condition := range conditions {
		if condition.Kind != ClockBefore {
			continue
		}
		if end := condition.Time.Instant(); !ok || end.Before(instant) {
			instant, ok = end, true
		}
	}
	return instant, ok
}
