// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// tryOthers decides the expected accesses to conduits without a class.
func (e *engine) tryOthers(who *subject, out *Capabilities) {
	type found struct {
		other Other
		f     footprint
	}
	var all []found
	for _, list := range []struct {
		sets []string
		what policy.Operation
	}{{who.task.Reads, read}, {who.task.Writes, write}} {
		for _, name := range list.sets {
			set := e.plan.set(name)
			if set == nil {
				continue
			}
			for _, to := range e.singles(who, set) {
				what := list.what
				if set.Egress && what == write {
					what = leave
				}
				decision := decide(who, what, to, e.state, e.now, e.waive)
				if !validated(decision, e.now) {
					e.follow(who, what, to, decision)
					continue
				}
				all = append(all, found{Other{set.Name, to.conduit.Name, what != read},
					footprintOf(decision.Conditions, "")})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int { return a.other.compare(b.other) })
	for _, one := range all {
		out.Others = append(out.Others, one.other)
		out.othersOn.add(one.f)
	}
	out.othersOn.compact()
}

// singles returns a set's conduits without a class: pipes, channels and connections
// themselves, and those tuples whose name is made of the instance's own parameters. A
// placeholder that is not a parameter gets the instance's user.
func (e *engine) singles(who *subject, set *Set) []*target {
	switch set.Kind {
	case policy.TupleConduit:
		return e.tuples(who, set)
	case policy.FileConduit:
		return nil
	}
	conduit := policy.Conduit{Name: set.Name, Kind: set.Kind, Internal: set.From != "" && set.To != ""}
	if conduit.Internal {
		conduit.Name = set.Catalog + "/0" // the names of a pipe's or channel's slots differ in their last part only
	}
	if set.Policy != nil {
		bound, err := e.state.Bind(*set.Policy)
		if err != nil {
			return nil
		}
		conduit.Policy = bound
	}
	return []*target{newSingle(conduit)}
}

func (e *engine) tuples(who *subject, set *Set) []*target {
	var out []*target
	for _, path := range set.Paths {
		name := fillAny(pattern.Substitute(path, who.values), who.session.Principal)
		conduit, ok := e.state.ConduitNamed(name)
		if ok && conduit.Kind == policy.TupleConduit {
			out = append(out, newSingle(conduit))
		}
	}
	return out
}
