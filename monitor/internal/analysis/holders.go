// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"iter"
	"slices"

	"shai.dev/monitor/policy"
)

// Holder is an instance, and the values of its task's parameters by name.
type Holder struct {
	Task   string
	Values map[string]string
}

// Holders yields the instances that may access a conduit as the result has it, by task, then
// arguments.
func (r *Result) Holders(what policy.Operation, conduit string) iter.Seq[Holder] {
	class := r.classOf(conduit)
	return func(yield func(Holder) bool) {
		for _, c := range r.instances {
			if !c.holds(what, class, conduit) {
				continue
			}
			holder := Holder{Task: c.Instance.Task}
			if task := r.plan.task(holder.Task); task != nil {
				holder.Values = task.values(c.Instance)
			}
			if !yield(holder) {
				return
			}
		}
	}
}

// classOf returns the class of a conduit, or 0. A file that is not registered, such as one that a
// task has written, counts as of the class that it would be in.
func (r *Result) classOf(name string) uint32 {
	if id, registered := r.state.ID(name); registered {
		return r.state.ClassOf(id)
	}
	conduit, covered := r.state.ConduitNamed(name)
	if !covered || conduit.Kind != policy.FileConduit {
		return 0
	}
	for _, class := range r.state.ClassesOf(r.state.SetOf(conduit)) {
		if r.state.Class(class).Policy.ID() == conduit.Policy.ID() {
			return class
		}
	}
	return 0
}

// holds reports whether the set contains a conduit's class or, of a conduit without one (0),
// its name.
func (c *Capabilities) holds(what policy.Operation, class uint32, conduit string) bool {
	if class == 0 {
		return slices.ContainsFunc(c.Others, func(o Other) bool {
			return o.Conduit == conduit && o.Write == (what == policy.Write)
		})
	}
	classes := c.Reads
	if what == policy.Write {
		classes = c.Writes
	}
	_, found := slices.BinarySearch(classes, class)
	return found
}
