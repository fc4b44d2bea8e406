// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// asksEach is why accesses of a task without parameters to tuples of users are undecided if the
// policies allow the example.
const asksEach = "the task's instance does not say which of these tuples it means, so each access is decided when it happens"

// examples returns tuples of a set that stand for those which an instance without parameters may ask
// for: one for each path, of the first expected instance of another task that has a value for each
// of the path's placeholders.
func (p *Plan) examples(state *catalog.State, instance Instance, set *Set, now time.Time) []*target {
	if set.Kind != policy.TupleConduit || len(instance.Arguments) > 0 {
		return nil
	}
	var out []*target
	for _, path := range set.Paths {
		if !strings.Contains(path, "{") {
			continue // named by itself
		}
		for _, other := range p.Instances(state, now) {
			task := p.task(other.Task)
			if task == nil || len(other.Arguments) == 0 {
				continue
			}
			name := pattern.Substitute(path, task.values(other))
			if strings.Contains(name, "{") {
				continue
			}
			if conduit, found := state.ConduitNamed(name); found && conduit.Kind == policy.TupleConduit {
				out = append(out, newSingle(conduit))
			}
			break
		}
	}
	return out
}

// examples counts the tuples that stand for those which an instance without parameters may ask for.
func (c *count) examples(one analyzed) {
	for _, to := range c.engine.plan.examples(c.engine.state, one.who.instance, c.set, c.engine.now) {
		key := c.keyOfSingle(to)
		if key.undecided == "" && decide(one.who, c.what, to, c.engine.state, c.engine.now, c.engine.waive).Allowed {
			key.undecided = asksEach
		}
		g := c.group(key)
		g.expected++
		if g.lacking == nil {
			g.lacking = &lacking{one.who, to}
		}
	}
}

// examples compares the accesses of an instance without parameters to tuples of users: such a flow is
// in no capability set, and open all the same.
func (c *Comparison) examples(p pair) {
	was, is := allowedExamples(p.before, c.before, p.was), allowedExamples(p.after, c.after, p.is)
	c.changes.Before += uint64(len(was))
	c.changes.After += uint64(len(is))
	for _, other := range was {
		if !slices.Contains(is, other) {
			c.countSingle(p, other, closed)
		}
	}
	for _, other := range is {
		if !slices.Contains(was, other) {
			c.countSingle(p, other, opened)
		}
	}
}

// allowedExamples are the examples that are not denied on one side.
func allowedExamples(side *Side, state *catalog.State, of *Capabilities) []Other {
	if side == nil {
		return nil
	}
	plan := side.Open.plan
	who, err := newSubject(plan, state, of.Instance)
	if err != nil {
		return nil // it cannot start
	}
	var out []Other
	for _, list := range []struct {
		sets []string
		what policy.Operation
	}{{who.task.Reads, read}, {who.task.Writes, write}} {
		for _, name := range list.sets {
			set := plan.set(name)
			if set == nil {
				continue
			}
			for _, to := range plan.examples(state, of.Instance, set, side.Open.Analyzed) {
				if decide(who, list.what, to, state, side.Open.Analyzed, state.Waive()).Allowed {
					out = append(out, Other{set.Name, to.conduit.Name, list.what == write})
				}
			}
		}
	}
	return out
}
