// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A change can also give accesses that no result contains yet. The texts of policies show
// roughly for which policies this is possible: a new fact helps only a policy that names
// its relation, and a removed fact only one that names the relation within an `each`. For
// those policies, the candidates of every instance are searched again.
var (
	saysRelation  = regexp.MustCompile(`\b(?:says|willsay)\s+(\w+)\s*\(`)
	eachWord      = regexp.MustCompile(`\beach\b`)
	aboutConduits = regexp.MustCompile(`\b(?:hasPol|cIdExists)\b`)
)

// sensitivity describes the parts of the state that a policy's text refers to.
type sensitivity struct {
	relations map[string]bool
	each      bool // some relation is in an each
	conduits  bool // refers to other conduits by number
}

func sensitivityOf(text string) sensitivity {
	s := sensitivity{relations: make(map[string]bool), each: eachWord.MatchString(text),
		conduits: aboutConduits.MatchString(text)}
	for _, match := range saysRelation.FindAllStringSubmatch(text, -1) {
		s.relations[match[1]] = true
	}
	return s
}

// gains reports whether the change can make a policy allow something that it did not
// allow before.
func (s sensitivity) gains(change *catalog.Change, eachRelations map[string]bool) bool {
	for _, fact := range change.Added {
		if s.relations[fact.Relation] {
			return true
		}
	}
	for _, fact := range change.Removed {
		if eachRelations[fact.Relation] {
			return true
		}
	}
	return s.conduits && len(change.Moved)+len(change.Classes) > 0
}

// eachRelation finds the relations whose absence can matter: those of an each, and those
// within its braces.
var eachRelation = regexp.MustCompile(`\beach\s+in\b[^{}]*\{[^{}]*\}`)

func eachRelations(text string) map[string]bool {
	relations := make(map[string]bool)
	for _, each := range eachRelation.FindAllString(text, -1) {
		for _, match := range saysRelation.FindAllStringSubmatch(each, -1) {
			relations[match[1]] = true
		}
	}
	return relations
}

// gainsFrom reports whether a policy of the bundle can gain by the change. The
// expressions above do not match nested braces; a policy with them is assumed to gain.
func gainsFrom(state *catalog.State, name string, change *catalog.Change) bool {
	text, ok := state.PolicyText(name)
	if !ok {
		return false
	}
	s := sensitivityOf(text)
	removable := eachRelations(text)
	if s.each && len(eachRelation.FindAllString(text, -1)) != len(eachWord.FindAllString(text, -1)) {
		removable = s.relations
	}
	return s.gains(change, removable)
}

// touches reports whether a policy refers to a relation that changed. A taint that does
// may gain by any change: if facts are removed, its data may be for fewer readers.
func touches(state *catalog.State, name string, change *catalog.Change) bool {
	text, ok := state.PolicyText(name)
	if !ok {
		return false
	}
	relations := sensitivityOf(text).relations
	speaks := func(fact policy.Fact) bool { return relations[fact.Relation] }
	return slices.ContainsFunc(change.Added, speaks) || slices.ContainsFunc(change.Removed, speaks)
}

// enabled marks the accesses that the change may give.
func (u *update) enabled(ctx context.Context, change *catalog.Change) error {
	gaining := make(map[string]bool)
	for _, text := range change.After.Bundle().Policies {
		if gainsFrom(change.After, text.Name, change) {
			gaining[text.Name] = true
		}
	}
	for _, task := range u.old.plan.Tasks {
		if touches(change.After, task.Taint.Policy, change) {
			gaining[task.Taint.Policy] = true
		}
	}
	if len(gaining) == 0 {
		return nil
	}
	var mu sync.Mutex
	return parallel(ctx, len(u.instances), u.options, func(i int) {
		if u.fresh[i] {
			return
		}
		found := u.engine.mayGain(u.instances[i], gaining)
		if found == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		u.at(i).merge(found)
	})
}

// mayGain lists the accesses of an instance to decide again, nil for none.
func (e *engine) mayGain(c *Capabilities, gaining map[string]bool) *dirty {
	task := e.plan.task(c.Instance.Task)
	if task == nil {
		return nil
	}
	if gaining[task.Taint.Policy] {
		return &dirty{all: true} // the hypothesis itself depends on the facts
	}
	who, err := newSubject(e.plan, e.state, c.Instance)
	if err != nil {
		return nil
	}
	d := &dirty{}
	for _, name := range task.Reads {
		if set := e.plan.set(name); set != nil {
			e.gainReads(who, set, c, gaining, d)
		}
	}
	for _, name := range task.Writes {
		if set := e.plan.set(name); set != nil {
			e.gainWrites(set, gaining, d)
		}
	}
	if d.reads == nil && d.writes == nil && !d.others {
		return nil
	}
	return d
}

func (e *engine) gainReads(who *subject, set *Set, c *Capabilities, gaining map[string]bool, d *dirty) {
	for _, name := range e.state.Templates(set.Catalog) {
		if !gaining[name] {
			continue
		}
		d.others = d.others || len(set.Paths) > 0 && set.Policy == nil && !set.Ingress
		for _, class := range e.candidatesOf(who, set.Catalog, name) {
			if !slices.Contains(c.Reads, class) {
				d.mark(&d.reads, class)
			}
		}
	}
	d.others = d.others || set.Policy != nil && gaining[set.Policy.Policy]
}

func (e *engine) gainWrites(set *Set, gaining map[string]bool, d *dirty) {
	for _, name := range e.state.Templates(set.Catalog) {
		if gaining[name] {
			d.others = true
			for _, class := range e.state.ClassesOfPolicy(set.Catalog, name) {
				d.mark(&d.writes, class)
			}
		}
	}
	d.others = d.others || set.Policy != nil && gaining[set.Policy.Policy]
}

func (d *dirty) merge(other *dirty) {
	d.all, d.others = d.all || other.all, d.others || other.others
	for class := range other.reads {
		d.mark(&d.reads, class)
	}
	for class := range other.writes {
		d.mark(&d.writes, class)
	}
}
