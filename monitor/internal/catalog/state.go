// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"crypto/ed25519"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/policy"
)

// State is the catalog at one moment: facts, conduits with their classes, and the
// bundle. It is immutable, implements [policy.State], and is safe for concurrent
// use for as long as the catalog is open.
type State struct {
	facts        *policy.FactIndex
	catalog      *Catalog
	rules        *ruleset
	index        *classIndex
	conduits     *conduitTable
	classes      []ClassInfo // by number; the first is unused
	factsVersion uint64
}

// Facts returns the number of facts. A tuple at several offsets of a conduit counts once.
func (s *State) Facts() int { return s.facts.Facts() }

// FactIndex returns what the facts are in, for [policy.Evaluator].
func (s *State) FactIndex() *policy.FactIndex { return s.facts }

// Has implements [policy.Facts].
func (s *State) Has(pattern policy.Pattern) bool { return s.facts.Has(pattern) }

// Lookup implements [policy.Facts].
func (s *State) Lookup(pattern policy.Pattern, yield func(policy.Fact) bool) {
	s.facts.Lookup(pattern, yield)
}

// Bundle returns the bundle in force. Its Version is 0 before the first Apply.
func (s *State) Bundle() Bundle { return s.rules.bundle.clone() }

// BundleHash returns the hash of the bundle in force.
func (s *State) BundleHash() string { return s.rules.bundle.Hash }

// FactsVersion counts the changes of facts and of classes. Decisions on two states of one
// catalog with the same version and bundle are the same.
func (s *State) FactsVersion() uint64 { return s.factsVersion }

// Conduits returns the highest conduit number.
func (s *State) Conduits() uint32 { return s.conduits.last }

// ClassOf returns the class of a conduit, 0 if it has none: then nobody has access.
func (s *State) ClassOf(id uint32) uint32 { return s.conduits.class(id) }

// Classes returns the number of classes ever made. Class numbers begin at 1.
func (s *State) Classes() uint32 { return uint32(len(s.classes) - 1) } //nolint:gosec // numbers are uint32

// Class returns a class by number; its *Class is nil when there is none.
func (s *State) Class(number uint32) ClassInfo {
	if number == 0 || int(number) >= len(s.classes) {
		return ClassInfo{}
	}
	return s.classes[number]
}

// ClassesOf lists the classes of a set in ascending order, without retired ones.
func (s *State) ClassesOf(set string) []uint32 {
	return s.live(slices.Clone(s.index.bySet(set)))
}

// ClassesWith lists the classes of a set whose policy has this name and one of the lists of
// arguments, each in the order of the template's parameters.
func (s *State) ClassesWith(set, name string, arguments ...[]string) []uint32 {
	return s.live(s.index.byPolicy(make([]uint32, 0, len(arguments)), set, name, arguments))
}

// ClassesOfPolicy lists the classes of a set whose policy has this name, with any
// arguments.
func (s *State) ClassesOfPolicy(set, name string) []uint32 {
	return s.live(slices.Clone(s.index.byName(set, name)))
}

// CountOfPolicy returns about how many they are: newer ones are counted, too.
func (s *State) CountOfPolicy(set, name string) int { return len(s.index.byName(set, name)) }

// PolicyText returns the text of a policy of the bundle by name.
func (s *State) PolicyText(name string) (string, bool) {
	for _, text := range s.rules.bundle.Policies {
		if text.Name == name {
			return text.Text, true
		}
	}
	return "", false
}

// ModeOf returns a policy's mode. A policy that the bundle does not have is enforced.
func (s *State) ModeOf(p *policy.Policy) Mode {
	if mode, relaxed := s.rules.modes[p.Template().File()]; relaxed {
		return mode
	}
	return Enforce
}

// Waive returns the function for policy.Environment.Waive that leaves out the policies
// in modes Audit and Warn; nil when every policy is enforced.
func (s *State) Waive() func(*policy.Policy) bool {
	if len(s.rules.modes) == 0 {
		return nil
	}
	return func(p *policy.Policy) bool { return s.ModeOf(p) != Enforce }
}

// live leaves out the classes that are newer than this state. The index lists no retired
// ones. It alters the list.
func (s *State) live(numbers []uint32) []uint32 {
	return slices.DeleteFunc(numbers, func(number uint32) bool { return int(number) >= len(s.classes) })
}

// Place is a place in which tasks make conduits: a rule for files without placeholders
// that do not come from outside.
type Place struct {
	Path  string
	Class uint32 // of every conduit there; 0 if the rule's policy cannot be bound
}

// Places lists the places of all pipelines in the order of the bundle's rules.
func (s *State) Places() []Place {
	var places []Place
	for _, rule := range s.rules.bundle.Rules {
		if rule.Kind != policy.FileConduit || rule.Ingress || rule.hasHoles() {
			continue
		}
		place := Place{Path: rule.Path}
		if bound, err := s.rules.bind(rule.Policy); err == nil {
			place.Class, _ = s.index.number(rule.record(bound).key())
		}
		places = append(places, place)
	}
	return places
}

// Template returns a policy of the bundle by name, nil if there is none.
func (s *State) Template(name string) *policy.Template { return s.rules.templates[name] }

// Templates lists the names of the policies that a set's rules refer to, sorted.
func (s *State) Templates(set string) []string {
	var names []string
	for _, rule := range s.rules.bundle.Rules {
		if rule.Set == set {
			names = append(names, rule.Policy.Policy)
			for _, choice := range rule.Choices {
				names = append(names, choice.Policy.Policy)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Bind returns the policy that a reference names.
func (s *State) Bind(reference Reference) (*policy.Policy, error) { return s.rules.bind(reference) }

// Name returns a conduit's name; ok is false for a number that has none.
func (s *State) Name(id uint32) (name string, ok bool) {
	if id == 0 || id > s.conduits.last {
		return "", false
	}
	return s.catalog.nameOf(id)
}

// ID returns a conduit's number; ok is false for a name that is not registered.
func (s *State) ID(name string) (id uint32, ok bool) {
	id, ok = s.catalog.idOf(name)
	return id, ok && id <= s.conduits.last
}

// ConduitByName implements [policy.Conduits].
func (s *State) ConduitByName(name string) (policy.Conduit, bool) {
	id, ok := s.ID(name)
	if !ok {
		return policy.Conduit{}, false
	}
	return s.conduit(id, name), true
}

// ConduitByID implements [policy.Conduits]. A number without a class is that of a document that
// has gone, or that no rule covers any more.
func (s *State) ConduitByID(id int64) (policy.Conduit, bool) {
	if id <= 0 || id > int64(s.conduits.last) || s.ClassOf(uint32(id)) == 0 { //nolint:gosec // within its range
		return policy.Conduit{}, false
	}
	name, ok := s.Name(uint32(id)) //nolint:gosec // bounded above
	if !ok {
		return policy.Conduit{}, false
	}
	return s.conduit(uint32(id), name), true //nolint:gosec // bounded above
}

// ConduitNamed returns the conduit that this name has, or would have if it was registered;
// ok is false when no rule covers it.
func (s *State) ConduitNamed(name string) (conduit policy.Conduit, ok bool) {
	if conduit, ok = s.ConduitByName(name); ok {
		return conduit, conduit.Policy != nil
	}
	var found covered
	err := s.catalog.database.View(func(tx *bbolt.Tx) (err error) {
		found, ok, err = s.rules.cover(tx, name)
		return err
	})
	if !ok || err != nil {
		return policy.Conduit{}, false
	}
	rule := found.rule
	bound, err := s.rules.bind(found.reference())
	if err != nil {
		return policy.Conduit{}, false
	}
	return policy.Conduit{Name: name, Kind: rule.Kind, Internal: rule.Internal, Directory: rule.Directory,
		Type: rule.Type, Policy: bound}, true
}

// SetOf returns the set that a file or tuple belongs to, or would belong to if it was registered;
// "" if no rule covers it.
func (s *State) SetOf(conduit policy.Conduit) string {
	if id := conduit.ID; id > 0 && id <= int64(s.conduits.last) {
		if class := s.Class(s.ClassOf(uint32(id))); class.Class != nil { //nolint:gosec // bounded above
			return class.Set
		}
	}
	rule, _, _ := s.rules.ruleFor(conduit.Name)
	return rule.Set
}

// conduit returns the properties of a class's member that decisions depend on. The length
// is not known here: a caller that decides on cCurrLenIs must fill it in.
func (s *State) conduit(id uint32, name string) policy.Conduit {
	class := s.Class(s.ClassOf(id))
	if class.Class == nil {
		return policy.Conduit{ID: int64(id), Name: name}
	}
	return policy.Conduit{ID: int64(id), Name: name, Kind: class.Kind, Internal: class.Internal,
		Directory: class.Directory, Type: class.Type, Policy: class.Policy}
}

// Members lists the conduits of a class in ascending order. Callers must not alter
// the list.
func (s *State) Members(class uint32) []uint32 { return s.conduits.members(class) }

// Principals lists all that may have a key, sorted.
func (s *State) Principals() []string {
	names := slices.Collect(maps.Keys(s.rules.principals))
	s.Lookup(policy.Pattern{Conduit: knownfacts.Population, Relation: knownfacts.Key,
		Arguments: []policy.Value{{}, {}}},
		func(fact policy.Fact) bool {
			names = append(names, fact.Arguments[0].Text())
			return true
		})
	slices.Sort(names)
	return slices.Compact(names)
}

// PrincipalKey returns the key that a principal authenticates with: from the bundle, else
// from the fact "population" says key(Principal, Hex). A principal with two
// different keys has none.
func (s *State) PrincipalKey(name string) (ed25519.PublicKey, bool) {
	if key, ok := s.rules.principals[name]; ok {
		return key, true
	}
	var found ed25519.PublicKey
	count := 0
	s.Lookup(policy.Pattern{Conduit: knownfacts.Population, Relation: knownfacts.Key,
		Arguments: []policy.Value{policy.String(name), {}}},
		func(fact policy.Fact) bool {
			count++
			key, err := knownfacts.PublicKey(fact.Arguments[1].Text())
			if err == nil {
				found = key
			}
			return true
		})
	return found, count == 1 && found != nil
}
