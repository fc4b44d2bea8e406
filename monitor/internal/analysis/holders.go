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
	class := uint32(0)
	if id, registered := r.state.ID(conduit); registered {
		class = r.state.ClassOf(id)
	}
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
