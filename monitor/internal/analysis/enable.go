// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A change can also give accesses that no result contains yet. What the policies of a plan ask
// for (policy.Dependencies) tells for which policies this is possible, and a search from the
// changed fact (policy.Reach) for which instances and arguments.

// sensitivity is what the accesses of a plan depend on. It is immutable.
type sensitivity struct {
	parts []part
	about map[shape][]int // parts whose policy asks for such facts
	tasks []taskTaint
}

// shape is what all facts of a relation have in common.
type shape struct {
	relation string
	arity    int
}

// part are the conduits of a set that have one policy.
type part struct {
	set              *Set
	policy           string
	template         *policy.Template
	uses             policy.Dependencies
	readers, writers []string // tasks
}

// taskTaint is a task, and what its taint depends on.
type taskTaint struct {
	name string
	uses policy.Dependencies
}

func newSensitivity(plan *Plan, state *catalog.State) *sensitivity {
	s := &sensitivity{about: make(map[shape][]int)}
	for i := range plan.Sets {
		set := &plan.Sets[i]
		readers, writers := plan.usersOf(set.Name)
		if len(readers)+len(writers) == 0 {
			continue
		}
		names := state.Templates(set.Catalog)
		if set.Policy != nil {
			names = append(names, set.Policy.Policy)
		}
		for _, name := range names {
			if template := state.Template(name); template != nil {
				s.add(part{set: set, policy: name, template: template, uses: template.Dependencies(),
					readers: readers, writers: writers})
			}
		}
	}
	for _, task := range plan.Tasks {
		if template := state.Template(task.Taint.Policy); template != nil {
			s.tasks = append(s.tasks, taskTaint{task.Name, template.Dependencies()})
		}
	}
	return s
}

// usersOf lists the tasks that read and write a set.
func (p *Plan) usersOf(set string) (readers, writers []string) {
	for _, task := range p.Tasks {
		if slices.Contains(task.Reads, set) {
			readers = append(readers, task.Name)
		}
		if slices.Contains(task.Writes, set) {
			writers = append(writers, task.Name)
		}
	}
	return readers, writers
}

func (s *sensitivity) add(p part) {
	s.parts = append(s.parts, p)
	for _, uses := range []policy.Uses{p.uses.Read, p.uses.Update, p.uses.Exits} {
		for _, use := range uses.Facts {
			at := shape{use.Relation, use.Arity}
			if list := s.about[at]; len(list) == 0 || list[len(list)-1] != len(s.parts)-1 {
				s.about[at] = append(list, len(s.parts)-1)
			}
		}
	}
}

// concern reports whether a policy asks for facts such as this one.
func concern(uses policy.Dependencies, fact policy.Fact) bool {
	return uses.Read.Concern(fact) || uses.Update.Concern(fact) || uses.Exits.Concern(fact)
}

func compares(uses policy.Dependencies) bool {
	return uses.Read.Compares || uses.Update.Compares || uses.Exits.Compares
}

// enabled asks about the accesses that the change may give.
func (u *update) enabled(change *catalog.Change) {
	sense := u.old.sensitivity(u.engine.state)
	for _, fact := range change.Removed {
		u.fact(sense, fact, false)
	}
	for _, fact := range change.Added {
		u.fact(sense, fact, true)
	}
	for i := range sense.parts {
		if p := &sense.parts[i]; p.uses.SpeaksOfConduits() && len(change.Moved)+len(change.Classes) > 0 {
			u.askAll(p)
		}
	}
	for _, task := range sense.tasks {
		if task.uses.SpeaksOfConduits() && len(change.Moved)+len(change.Classes) > 0 {
			u.ask(question{tasks: []string{task.name}, all: true, what: askEverything})
		}
	}
}

// fact asks about what one fact more or less may give.
func (u *update) fact(sense *sensitivity, fact policy.Fact, added bool) {
	concerned := sense.about[shape{fact.Relation, len(fact.Arguments)}]
	for _, task := range sense.tasks {
		// Of what a taint asks for, a fact less can give accesses as well as a fact more: its data
		// may then be for fewer readers. An isAsRestrictive among its conditions may be about any
		// of the policies.
		if concern(task.uses, fact) || compares(task.uses) && len(concerned) > 0 {
			u.ask(question{tasks: []string{task.name}, all: true, what: askEverything})
		}
	}
	for i := range sense.parts {
		// A comparison with the policy of any conduit can depend on any fact.
		if p := &sense.parts[i]; compares(p.uses) && p.uses.SpeaksOfConduits() {
			u.askAll(p)
		}
	}
	for _, i := range concerned {
		p := &sense.parts[i]
		if len(p.readers) > 0 {
			_, open := u.old.sessions.beyond()
			u.ask(question{tasks: p.readers, only: open, what: askCandidates, part: p})
			u.ask(question{tasks: p.readers, only: open, what: askOthers})
			for _, reach := range p.template.ReadsReached(fact, added, u.engine.state) {
				u.reads(p, reach, fact)
			}
		}
		if len(p.writers) > 0 {
			u.factWrites(p, fact, added)
		}
	}
}

// factWrites asks about writes. The update rule has to hold for the instance. The other rules
// are premises there: what they ask for are cases, of which there may be fewer or more.
func (u *update) factWrites(p *part, fact policy.Fact, added bool) {
	premise := func(uses policy.Uses) bool {
		return uses.Compares || slices.ContainsFunc(uses.Facts, func(use policy.FactUse) bool {
			return !use.Each && use.Concerns(fact)
		})
	}
	if premise(p.uses.Read) || premise(p.uses.Exits) {
		u.askWrites(p)
		return
	}
	for _, reach := range p.template.UpdatesReached(fact, added, u.engine.state) {
		instances, narrowed := u.old.sessions.among(reach)
		ask := question{tasks: p.writers, only: instances, all: !narrowed, what: askOthers}
		u.ask(ask)
		ask.what = askWrites
		var known bool
		if ask.classes, known = u.classesIn(p, reach, fact); !known {
			ask.classes = u.engine.classesOfPolicy(p.set.Catalog, p.policy)
		}
		u.ask(ask)
	}
}

// reads asks about the reads in a reach.
func (u *update) reads(p *part, reach policy.Reach, fact policy.Fact) {
	instances, narrowed := u.old.sessions.among(reach)
	ask := question{tasks: p.readers, only: instances, all: !narrowed}
	if p.set.Policy != nil || p.set.Kind == policy.TupleConduit {
		ask.what = askOthers
		u.ask(ask)
	}
	if classes, known := u.classesIn(p, reach, fact); known {
		ask.what, ask.classes = askReads, classes
	} else {
		ask.what, ask.part = askCandidates, p
	}
	u.ask(ask)
}

// classesIn returns the classes of a part that a reach of a fact is about. known is false if
// these can be any.
func (u *update) classesIn(p *part, reach policy.Reach, fact policy.Fact) (classes []uint32, known bool) {
	if name := reach.This.Text(); name != "" {
		id, _ := u.engine.state.ID(name)
		class := u.engine.state.Class(u.engine.state.ClassOf(id))
		if class.Class == nil || class.Set != p.set.Catalog {
			return nil, true
		}
		if class.Own == "" && (fact.Conduit == name || slices.Contains(fact.Arguments, reach.This)) {
			return nil, true // the conduit has moved to another class, which is asked about as a whole
		}
		return []uint32{class.Number}, true
	}
	arguments := make([]string, len(reach.Arguments))
	indexed := true // by texts: an integer or a time can be written in several ways
	for i, value := range reach.Arguments {
		arguments[i] = value.Text()
		indexed = indexed && value.Kind() == policy.StringValue
		known = known || value.Kind() != policy.Wildcard
	}
	if indexed {
		return u.engine.state.ClassesWith(p.set.Catalog, p.policy, arguments), true
	}
	if !known {
		return nil, false
	}
	for _, class := range u.engine.classesOfPolicy(p.set.Catalog, p.policy) {
		if matches(u.engine.state.Class(class).Policy, reach.Arguments) {
			classes = append(classes, class)
		}
	}
	return classes, true
}

// matches reports whether a policy's arguments are those of a reach.
func matches(bound *policy.Policy, arguments []policy.Value) bool {
	for i, argument := range bound.Values() {
		if wanted := arguments[i]; wanted.Kind() != policy.Wildcard && wanted != argument {
			return false
		}
	}
	return true
}

// askWrites asks about every write to the conduits of a part.
func (u *update) askWrites(p *part) {
	u.ask(question{tasks: p.writers, all: true, what: askOthers})
	u.ask(question{tasks: p.writers, all: true, what: askWrites,
		classes: u.engine.classesOfPolicy(p.set.Catalog, p.policy)})
}

// askAll asks about every access to the conduits of a part.
func (u *update) askAll(p *part) {
	if len(p.readers) > 0 {
		u.ask(question{tasks: p.readers, all: true, what: askOthers})
		u.ask(question{tasks: p.readers, all: true, what: askCandidates, part: p})
	}
	if len(p.writers) > 0 {
		u.askWrites(p)
	}
}
