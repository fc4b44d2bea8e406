// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"slices"

	"shai.dev/monitor/policy"
)

// A population's candidates are found from the classes, where a policy allows this: the list of a
// user's friends names the instances for which the user's documents are candidates. To go from each
// instance to the lists that name it takes many times as long.

// setPolicy is a policy of a set's conduits, by their names.
type setPolicy struct{ set, policy string }

// classesPerInstance is how many classes can be gone through in the time in which candidates are
// searched for one instance.
const classesPerInstance = 64

// fewFound is a number of candidates that takes no memory worth a thought.
const fewFound = 1 << 16

// searchClasses finds candidates from the classes of those policies that allow this, and notes
// which ones these are. It finds them for subjects that are named. It ends early with ctx.
func (c *cohort) searchClasses(ctx context.Context) {
	e := c.engine
	if e.waive != nil {
		return // labels do not tell then what can be read
	}
	c.searched = make(map[setPolicy]bool)
	// With more than wide for each instance, each searches by itself, and is analysed at once: a bound for memory.
	left := max(fewFound, len(c.subjects)*c.wide)
	for i := range e.plan.Sets {
		set := &e.plan.Sets[i]
		taints, count := c.taintsFor(set)
		if count == 0 {
			continue
		}
		askers := policy.NewAskers(e.state, taints)
		if askers == nil {
			return
		}
		for _, name := range e.state.Templates(set.Catalog) {
			classes := e.state.CountOfPolicy(set.Catalog, name)
			template := e.state.Template(name)
			if template == nil || len(template.Parameters()) == 0 || classes <= fewClasses && !e.search ||
				classes > count*classesPerInstance || begins(template.Dependencies()) {
				continue
			}
			found := c.searchClassesOf(ctx, askers, e.classesOfPolicy(set.Catalog, name), left)
			for _, one := range found {
				c.candidates[one.instance] = append(c.candidates[one.instance], one.class)
			}
			left -= len(found)
			c.searched[setPolicy{set.Name, name}] = found != nil
		}
	}
}

// begins reports whether time can give reads. From which instant on it does is found with the candidates of an
// instance, also if it has none of the classes. It has to be the same whichever way they are searched: shards make
// the result of an undivided run.
func begins(uses policy.Dependencies) bool {
	return uses.Read.Clock || uses.Read.Compares || uses.Update.Clock || uses.Update.Compares
}

// taintsFor returns the taints of named subjects that read a set, nil for others, and their number.
func (c *cohort) taintsFor(set *Set) (taints []*policy.Assumed, count int) {
	taints = make([]*policy.Assumed, len(c.subjects))
	for i, who := range c.subjects {
		if who.isNamed() && slices.Contains(who.task.Reads, set.Name) {
			taints[i] = &who.assumed
			count++
		}
	}
	return taints, count
}

// isNamed reports whether nobody but the principal of the subject's sessions may read what is
// derived, so that a label is covered for the sake of that name only.
func (s *subject) isNamed() bool {
	return s != nil && s.assumed.Principal() != "" && s.session.Key == "" &&
		s.session.Principal == s.assumed.Principal()
}

// candidate is a class that an instance may be able to read.
type candidate struct{ instance, class uint32 }

// searchClassesOf returns the classes with those who may be able to read them. It returns nil if one of the
// classes does not tell, if there are more than most, or if ctx has ended.
func (c *cohort) searchClassesOf(ctx context.Context, askers *policy.Askers, classes []uint32, most int) []candidate {
	found := []candidate{}
	for _, class := range classes {
		to := c.engine.targets.get(class)
		if to == nil {
			continue // nobody can have access to it
		}
		told := askers.Of(&to.demanded, func(taint int) {
			found = append(found, candidate{uint32(taint), class}) //nolint:gosec // a cohort's
		})
		if !told || len(found) > most || ctx.Err() != nil {
			return nil
		}
	}
	return found
}
