// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// mostCauses limits the number of policies that a report names for refused accesses, and
// for undecided ones.
const mostCauses = 3

// analyzed is one instance with the results about it.
type analyzed struct {
	who   *subject
	found *Capabilities
}

// count counts the expected accesses of a task to one set of conduits. It counts conduits
// by policy, not one by one: there are too many pairs of users and conduits.
type count struct {
	engine *engine
	task   *Task
	set    *Set
	what   policy.Operation
	// asksAhead says that the taint of a writing task depends on values that are known
	// only when the access happens.
	asksAhead bool
	groups    map[groupKey]*group
	byClass   map[uint32]*group
	weights   map[uint32]uint64 // number of conduits of a class

	without   uint64 // instances with none granted and none undecided, of those with any expected
	firstSuch analyzed
}

type groupKey struct{ policy, undecided string }

// group holds the accesses to the conduits of one policy. Those that are not granted are
// either all refused or, for the same reason, all undecided.
type group struct {
	groupKey
	classes    []uint32
	perClasses uint64 // conduits in classes: accesses that each instance is expected to make
	expected   uint64
	granted    uint64
	lacking    *lacking // the first access to a conduit without a class that is not granted
}

type lacking struct {
	who *subject
	to  *target
}

// Reasons for undecided accesses.
const (
	asksThen = "the conduit's policy or the task's taint asks for the session's address, " +
		"which is known only when the access happens"
	noConduit = "the conduit's own name decides, and there is no such conduit yet"
	byContent = "the conduit has a type: each write is decided on by what is written"
)

// newCount groups the set's classes. It returns nil if the name is not that of a set.
func newCount(e *engine, task *Task, name string, what policy.Operation) *count {
	set := e.plan.set(name)
	if set == nil {
		return nil
	}
	c := &count{engine: e, task: task, set: set, what: what, groups: map[groupKey]*group{},
		byClass: map[uint32]*group{}, weights: map[uint32]uint64{}}
	taint := e.state.Template(task.Taint.Policy)
	c.asksAhead = what != read && taint != nil && taint.AsksForAddress()
	for _, class := range e.state.ClassesOf(set.Catalog) {
		weight := uint64(e.state.Class(class).Members)
		if weight == 0 && !set.Ingress {
			weight = 1 // its conduits do not exist yet
		}
		if weight == 0 {
			continue
		}
		g := c.group(c.keyOf(class))
		g.classes = append(g.classes, class)
		g.perClasses += weight
		c.byClass[class], c.weights[class] = g, weight
	}
	return c
}

func (c *count) group(key groupKey) *group {
	g := c.groups[key]
	if g == nil {
		g = &group{groupKey: key}
		c.groups[key] = g
	}
	return g
}

func (c *count) keyOf(class uint32) groupKey {
	info := c.engine.state.Class(class)
	key := groupKey{policy: info.Reference.Policy}
	switch {
	case c.what == write && info.Type != "":
		key.undecided = byContent
	case c.engine.targets.get(class) == nil:
		key.undecided = noConduit
	case c.asksAhead, c.what != read && info.Policy.Template().AsksForAddress():
		key.undecided = asksThen
	}
	return key
}

func (c *count) keyOfSingle(to *target) groupKey {
	key := groupKey{}
	asks := c.asksAhead
	if to.conduit.Policy != nil {
		key.policy = to.conduit.Policy.Template().File()
		asks = asks || c.what != read && to.conduit.Policy.Template().AsksForAddress()
	}
	if asks {
		key.undecided = asksThen
	}
	if c.what == write && to.conduit.Type != "" {
		key.undecided = byContent
	}
	return key
}

// over counts for all instances of the task that can start.
func (c *count) over(instances []analyzed) Accesses {
	for _, g := range c.groups {
		g.expected = g.perClasses * uint64(len(instances))
	}
	for _, one := range instances {
		c.instance(one)
	}
	out := Accesses{Task: c.task.Name, Access: c.what.String(), Conduits: c.set.Name, Instances: uint64(len(instances))}
	for _, g := range c.groups {
		out.Expected += g.expected
		out.Granted += g.granted
		if g.undecided == "" {
			out.Refused += g.expected - g.granted
		} else {
			out.Undecided += g.expected - g.granted
		}
	}
	for _, g := range c.mostLacking(func(g *group) bool { return g.undecided == "" }) {
		out.RefusedBecause = append(out.RefusedBecause, c.cause(g, instances))
	}
	for _, g := range c.mostLacking(func(g *group) bool { return g.undecided != "" }) {
		out.UndecidedBecause = append(out.UndecidedBecause, c.cause(g, instances))
	}
	return out
}

// instance adds the accesses that one instance is granted, and its expected accesses to
// conduits without a class.
func (c *count) instance(one analyzed) {
	expected, granted, undecided := false, false, false
	for key, g := range c.groups {
		expected = expected || g.perClasses > 0
		undecided = undecided || g.perClasses > 0 && key.undecided != ""
	}
	for _, class := range c.classes(one.found) {
		if g := c.byClass[class]; g != nil {
			g.granted += c.weights[class]
			granted = true
		}
	}
	for _, to := range c.engine.singles(one.who, c.set) {
		g := c.group(c.keyOfSingle(to))
		g.expected++
		expected = true
		switch {
		case slices.Contains(one.found.Others, Other{c.set.Name, to.conduit.Name, c.what != read}):
			g.granted++
			granted = true
		case g.lacking == nil:
			g.lacking = &lacking{one.who, to}
			fallthrough
		default:
			undecided = undecided || g.undecided != ""
		}
	}
	c.examples(one)
	if expected && !granted && !undecided {
		if c.without++; c.without == 1 {
			c.firstSuch = one
		}
	}
}

func (c *count) classes(of *Capabilities) []uint32 {
	if c.what == read {
		return of.Reads
	}
	return of.Writes
}

// mostLacking returns the groups with the most accesses that are not granted, largest
// first.
func (c *count) mostLacking(kind func(*group) bool) []*group {
	var list []*group
	for g := range maps.Values(c.groups) {
		if kind(g) && g.expected > g.granted {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.expected-b.granted, a.expected-a.granted), strings.Compare(a.policy, b.policy),
			strings.Compare(a.undecided, b.undecided))
	})
	return list[:min(len(list), mostCauses)]
}

// cause explains a group by the first of its accesses that is not granted.
func (c *count) cause(g *group, instances []analyzed) Cause {
	cause := Cause{}
	if example := c.example(g, instances); example != nil {
		cause = c.explain(example, g.undecided)
	}
	cause.Policy, cause.Count = g.policy, g.expected-g.granted
	return cause
}

func (c *count) example(g *group, instances []analyzed) *lacking {
	for _, one := range instances {
		for _, class := range g.classes {
			if contains(c.classes(one.found), class) {
				continue
			}
			if to := c.engine.targets.get(class); to != nil {
				return &lacking{one.who, to}
			}
		}
	}
	return g.lacking
}

func (c *count) explain(example *lacking, undecided string) Cause {
	who, to := example.who, c.named(example.to)
	cause := Cause{Instance: who.instance.Name(), Conduit: to.conduit.Name, Reason: undecided}
	if strings.HasPrefix(cause.Conduit, standIn) {
		cause.Conduit = c.set.Name // a class without a conduit
	}
	if undecided != "" {
		return cause
	}
	what := c.what
	if c.set.Egress && what == write && to.class == 0 {
		what = leave
	}
	decision := policy.Decide(what, who.taint, to.conduit, c.engine.state,
		policy.Environment{Session: who.session, Now: c.engine.now})
	cause.Reason = decision.Sentence
	reference := catalog.Reference{}
	if to.conduit.Policy != nil {
		reference = c.referenceOf(to)
	}
	if waive := c.engine.state.Waive(); waive != nil &&
		decide(who, what, to, c.engine.state, c.engine.now, waive).Allowed {
		cause.Mode = relaxedMode(c.engine.state, decision.Unmet)
	}
	cause.Suggestion = suggest(c.engine, who, what, to, reference)
	return cause
}

// named returns a class under the name of its representative, for people, if it has one.
func (c *count) named(to *target) *target {
	info := c.engine.state.Class(to.class)
	if name, known := c.engine.state.Name(info.Representative); known {
		return newTargetNamed(info, name)
	}
	return to
}

// referenceOf finds the bundle's name for the policy of a conduit.
func (c *count) referenceOf(to *target) catalog.Reference {
	if to.class != 0 {
		return c.engine.state.Class(to.class).Reference
	}
	if c.set.Policy != nil {
		return *c.set.Policy
	}
	reference := catalog.Reference{Policy: to.conduit.Policy.Template().File(), Arguments: make(map[string]string)}
	for parameter, value := range to.conduit.Policy.Arguments() {
		reference.Arguments[parameter] = value
	}
	return reference
}

// relaxedMode returns the mode of the policies that forbid a flow, Warn before Audit.
func relaxedMode(state *catalog.State, unmet []*policy.Policy) catalog.Mode {
	mode := catalog.Audit
	for _, p := range unmet {
		if state.ModeOf(p) == catalog.Warn {
			mode = catalog.Warn
		}
	}
	return mode
}

// warning warns about instances for which no access is granted or undecided, unless only
// policies in mode Audit or Warn forbid them.
func (c *count) warning(found Accesses) (Warning, bool) {
	relaxed := slices.ContainsFunc(found.RefusedBecause, func(cause Cause) bool { return cause.Mode != "" })
	if c.without == 0 || relaxed {
		return Warning{}, false
	}
	cause := Cause{Reason: "there is no policy"}
	for _, g := range c.mostLacking(func(*group) bool { return true }) {
		if example := c.example(g, []analyzed{c.firstSuch}); example != nil {
			cause = c.explain(example, "")
			break
		}
	}
	return Warning{
		Task: c.task.Name, Access: found.Access, Conduits: c.set.Name, Suggestion: cause.Suggestion,
		Instance: c.firstSuch.who.instance.Name(), Instances: c.without,
		Message: fmt.Sprintf("%s may %s nothing of %s: %s", c.firstSuch.who.instance.Name(), found.Access, c.set.Name,
			cause.Reason),
	}, true
}
