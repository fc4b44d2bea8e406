// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"slices"
	"strings"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// Conduits share a class only if no decision can tell them apart. The class contains the facts
// with a conduit's name in the places in which a policy can find it ([policy.NameUse]): in which
// the conduit's own policy looks for it, or in which some policy of the bundle takes what it finds.
// Other facts, such as a log's that no policy asks for a name, make no class.

// observation says which facts about conduits their classes contain.
type observation struct {
	uses      map[string]policy.NameUse // by the policy's name
	open      []policy.FactPlace        // of all policies
	constants map[string]bool           // of all policies
}

func newObservation() *observation {
	return &observation{uses: make(map[string]policy.NameUse), constants: make(map[string]bool)}
}

// add adds a policy of the bundle.
func (o *observation) add(name string, template *policy.Template) {
	use := template.NameUse()
	o.uses[name] = use
	o.open = append(o.open, use.Open...)
	for _, constant := range use.Constants {
		o.constants[constant] = true
	}
}

// addValues adds what a rule gives to a policy's parameters.
func (o *observation) addValues(reference Reference) {
	for _, value := range reference.Arguments {
		o.constants[value] = true
	}
}

// tells reports whether a policy or its arguments can tell a conduit from all others, so that
// it needs a class of its own. Holes in the reference stand for what the conduit's name has there.
func (o *observation) tells(name string, reference Reference, holes map[string]string) bool {
	if o.uses[reference.Policy].Tells || o.constants[name] {
		return true
	}
	for _, value := range reference.Arguments {
		if filled, isHole := holes[strings.Trim(value, "{}")]; isHole && len(value) > 1 && value[0] == '{' {
			value = filled // as Substitute does, without a copy
		}
		if pattern.Substitute(value, holes) == name {
			return true
		}
	}
	return false
}

// places returns the places of a relation in which a conduit's name counts.
func (o *observation) places(reference Reference, conduit, relation string, arguments int) (places []policy.FactPlace) {
	for _, list := range [][]policy.FactPlace{o.uses[reference.Policy].Own, o.open} {
		for _, place := range list {
			if place.Relation == relation && place.Arguments == arguments &&
				(place.Conduit == "" || place.Conduit == conduit) {
				place.Conduit = conduit
				places = append(places, place)
			}
		}
	}
	slices.SortFunc(places, policy.FactPlace.Compare)
	return slices.Compact(places)
}
