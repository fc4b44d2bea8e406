// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ConditionKind is the subject of a [Condition].
type ConditionKind string

// The kinds of state condition.
const (
	FactPresent ConditionKind = "present" // Conduit says Relation(Tuple)
	// nothing in Conduit matches Relation(Tuple); Tuple may hold wildcards
	FactAbsent       ConditionKind = "absent"
	FactPresentAt    ConditionKind = "present-at"   // Conduit@Number says Relation(Tuple)
	FactsUnchanged   ConditionKind = "unchanged"    // the tuples matching Relation(Tuple) in Conduit have this Digest
	FactsUnchangedAt ConditionKind = "unchanged-at" // the same for tuples with an offset
	ClockBefore      ConditionKind = "before"       // now < Time
	ClockFrom        ConditionKind = "from"         // now >= Time
	PrincipalIs      ConditionKind = "principal"    // prediction: the session is authenticated as Value (name or key)
	RegionIs         ConditionKind = "region"       // prediction: the session comes from region Value
	AddressIs        ConditionKind = "address"      // prediction: the session comes from address Value
	ConduitExists    ConditionKind = "exists"       // a conduit with id Number exists
	ConduitPolicyIs  ConditionKind = "policy"       // the conduit with id Number has the policy whose ID is Digest
	ConduitLengthIs  ConditionKind = "length"       // Conduit is Number bytes long
)

// Condition is one part of the state on which a decision depends. Conditions are
// comparable with == and usable as map keys. The JSON form has only the fields that
// the condition's kind uses.
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

// Until returns the first instant after which one of the conditions fails only because
// time has passed. ok is false if there is none.
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

// Holds reports whether the condition is true now. Predictions are checked against
// environment.Session, clock conditions against environment.Now. A condition of an
// unknown kind does not hold.
func (c Condition) Holds(state State, environment Environment) bool {
	switch c.Kind {
	case FactPresent, FactAbsent:
		pattern := Pattern{Conduit: c.Conduit, Relation: c.Relation, Arguments: c.Tuple.Values()}
		return c.Conduit != "" && state.Has(pattern) == (c.Kind == FactPresent)
	case FactPresentAt:
		return c.Conduit != "" && state.Has(Pattern{Conduit: c.Conduit, Relation: c.Relation,
			Arguments:  c.Tuple.Values(),
			Positioned: true, Offset: Integer(c.Number)})
	case FactsUnchanged, FactsUnchangedAt:
		return c.unchanged(state)
	case ClockBefore:
		return c.Time.kind == TimeValue && !environment.Now.IsZero() && Time(environment.Now).number < c.Time.number
	case ClockFrom:
		return c.Time.kind == TimeValue && !environment.Now.IsZero() && Time(environment.Now).number >= c.Time.number
	case PrincipalIs, RegionIs, AddressIs:
		return c.predicted(environment.Session)
	case ConduitExists, ConduitPolicyIs:
		conduit, found := state.ConduitByID(c.Number)
		return found && (c.Kind == ConduitExists || c.policyIs(conduit.Policy))
	case ConduitLengthIs:
		conduit, found := state.ConduitByName(c.Conduit)
		return found && conduit.Measured && conduit.Length == c.Number
	}
	return false
}

func (c Condition) unchanged(state State) bool {
	digest := newDigest()
	state.Lookup(Pattern{Conduit: c.Conduit, Relation: c.Relation, Arguments: c.Tuple.Values(),
		Positioned: c.Kind == FactsUnchangedAt}, func(fact Fact) bool {
		digest.add(fact)
		return true
	})
	return c.Conduit != "" && digest.String() == c.Digest
}

func (c Condition) predicted(session *Session) bool {
	switch {
	case session == nil || c.Value == "":
		return false
	case c.Kind == PrincipalIs:
		return session.Principal == c.Value || session.Key == c.Value
	case c.Kind == RegionIs:
		return session.Region == c.Value
	default:
		return session.IP.IsValid() && session.IP.Unmap().WithZone("").String() == c.Value
	}
}

func (c Condition) policyIs(p *Policy) bool {
	if p == nil {
		p = nobody
	}
	return p.id.String() == c.Digest
}

// String writes the condition for people.
func (c Condition) String() string {
	switch c.Kind {
	case FactPresent:
		return strconv.Quote(c.Conduit) + " says " + c.Relation + c.Tuple.String()
	case FactAbsent:
		return strconv.Quote(c.Conduit) + " does not say " + c.Relation + c.Tuple.String()
	case FactPresentAt:
		return Fact{Conduit: c.Conduit, Relation: c.Relation, Arguments: c.Tuple.Values(), Offset: c.Number,
			Positioned: true}.String()
	case FactsUnchanged, FactsUnchangedAt:
		return "what " + strconv.Quote(c.Conduit) + " says of " + c.Relation + c.Tuple.String() + " is unchanged"
	case ClockBefore:
		return "before " + c.Time.String()
	case ClockFrom:
		return "from " + c.Time.String()
	case ConduitExists:
		return fmt.Sprintf("conduit %d exists", c.Number)
	case ConduitPolicyIs:
		return fmt.Sprintf("conduit %d has policy %s", c.Number, c.Digest)
	case ConduitLengthIs:
		return fmt.Sprintf("%q is %d bytes long", c.Conduit, c.Number)
	}
	return "the session's " + string(c.Kind) + " is " + strconv.Quote(c.Value)
}
