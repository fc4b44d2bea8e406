// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Report is a result for people: how much of what was expected may run without
// asking, and what stands in the way of the rest.
type Report struct {
	Pipeline     string     `json:"pipeline"`
	Bundle       string     `json:"bundle"` // content hash
	Conduits     uint64     `json:"conduits"`
	Classes      uint64     `json:"classes"`
	Instances    uint64     `json:"instances"`
	Coverage     []Coverage `json:"coverage"`
	Blocked      []Blocked  `json:"blocked"`      // one example for each task, set and policy
	BlockedTotal uint64     `json:"blockedTotal"` // expected accesses that were not validated

	plan *Plan
}

// Coverage counts one expectation of a task, over all its instances; an access is
// one instance's to one conduit.
type Coverage struct {
	Task      string `json:"task"`
	Access    string `json:"access"` // "read" or "write"
	Conduits  string `json:"conduits"`
	Instances uint64 `json:"instances"`
	Expected  uint64 `json:"expected"`
	Validated uint64 `json:"validated"`
}

// Blocked is an expected flow that a policy forbids.
type Blocked struct {
	Instance   string `json:"instance"`
	Access     string `json:"access"`
	Conduits   string `json:"conduits"`
	Conduit    string `json:"conduit"` // an example
	Count      uint64 `json:"count"`   // conduits under the same policy that this instance may not use
	Policy     string `json:"policy"`
	Obligation string `json:"obligation"` // what is not met
	// Suggestion is the smallest change, of those that were tried, with which the
	// policy would let the flow through. Whether it should is the user's to say.
	Suggestion string `json:"suggestion,omitempty"`
	// Mode is set when only policies in mode Audit or Warn forbid the flow: it is
	// allowed, decided each time, and recorded.
	Mode catalog.Mode `json:"mode,omitempty"`
}

// Report computes the report. now is the clock for the decisions that it explains.
func (r *Result) Report(now time.Time) *Report {
	report := &Report{
		Pipeline: r.plan.Pipeline, Bundle: r.BundleHash, Conduits: uint64(r.state.Conduits()),
		Classes: uint64(r.state.Classes()), Instances: uint64(len(r.instances)), plan: r.plan,
		Coverage: []Coverage{}, Blocked: []Blocked{},
	}
	e := newEngine(r.plan, r.state, now)
	for i := range r.plan.Tasks {
		task := &r.plan.Tasks[i]
		instances := r.instancesOf(task.Name)
		for _, list := range []struct {
			sets []string
			what access
		}{{task.Reads, read}, {task.Writes, write}} {
			for _, name := range list.sets {
				set := r.plan.set(name)
				if set == nil {
					continue
				}
				c := &count{engine: e, state: r.state, set: set, what: list.what, weights: weights(r.state, set)}
				coverage := c.coverage(task.Name, instances)
				report.Coverage = append(report.Coverage, coverage)
				report.BlockedTotal += coverage.Expected - coverage.Validated
				if coverage.Expected > coverage.Validated {
					report.Blocked = append(report.Blocked, c.examples(instances)...)
				}
			}
		}
	}
	return report
}

func (r *Result) instancesOf(task string) []*Capabilities {
	first, _ := slices.BinarySearchFunc(r.instances, task, func(c *Capabilities, t string) int { return strings.Compare(c.Instance.Task, t) })
	last := first
	for last < len(r.instances) && r.instances[last].Instance.Task == task {
		last++
	}
	return r.instances[first:last]
}

// weights is how many conduits each class of a set stands for. A class without any
// counts as one where conduits are yet to be made in it.
func weights(state *catalog.State, set *Set) map[uint32]uint64 {
	weights := make(map[uint32]uint64)
	for _, class := range state.ClassesOf(set.Catalog) {
		members := uint64(state.Class(class).Members)
		if members == 0 && !set.Ingress {
			members = 1
		}
		if members > 0 {
			weights[class] = members
		}
	}
	return weights
}

// count looks at one expectation.
type count struct {
	engine  *engine
	state   *catalog.State
	set     *Set
	what    access
	weights map[uint32]uint64
}

func (c *count) classes(of *Capabilities) []uint32 {
	if c.what == read {
		return of.Reads
	}
	return of.Writes
}

func (c *count) coverage(task string, instances []*Capabilities) Coverage {
	out := Coverage{Task: task, Access: c.what.String(), Conduits: c.set.Name, Instances: uint64(len(instances))}
	perInstance := uint64(0)
	for _, weight := range c.weights {
		perInstance += weight
	}
	for _, instance := range instances {
		out.Expected += perInstance
		for _, class := range c.classes(instance) {
			out.Validated += c.weights[class]
		}
		if who, err := newSubject(c.engine.plan, c.state, instance.Instance); err == nil {
			out.Expected += uint64(len(c.engine.singles(who, c.set)))
		}
		for _, other := range instance.Others {
			if other.Set == c.set.Name && other.Write == (c.what != read) {
				out.Validated++
			}
		}
	}
	return out
}

// lookedAt is how many instances that lack something are looked at for examples.
const lookedAt = 16

// examples explains one conduit of each policy that stands in the way of one of the
// first instances that lack something.
func (c *count) examples(instances []*Capabilities) []Blocked {
	var found []Blocked
	shown := make(map[string]bool)
	left := lookedAt
	for _, instance := range instances {
		who, err := newSubject(c.engine.plan, c.state, instance.Instance)
		if err != nil {
			return append(found, Blocked{Instance: instance.Instance.Name(), Access: c.what.String(), Conduits: c.set.Name, Obligation: err.Error()})
		}
		blocked := c.blockedClasses(who, instance, shown)
		if len(found) == 0 {
			blocked = append(blocked, c.blockedSingles(who, instance)...)
		}
		found = append(found, blocked...)
		if len(found) > 0 {
			left--
		}
		if left == 0 {
			break
		}
	}
	return found
}

// blockedClasses leaves out policies that are shown already, and adds its own.
func (c *count) blockedClasses(who *subject, instance *Capabilities, shown map[string]bool) []Blocked {
	byPolicy := make(map[string]*Blocked)
	for _, class := range c.state.ClassesOf(c.set.Catalog) {
		if _, held := slices.BinarySearch(c.classes(instance), class); held || c.weights[class] == 0 {
			continue
		}
		name := c.state.Class(class).Reference.Policy
		if shown[name] {
			continue
		}
		if seen := byPolicy[name]; seen != nil {
			seen.Count += c.weights[class]
			continue
		}
		to := c.engine.targets.get(class)
		if to == nil {
			continue
		}
		blocked := c.explain(who, c.what, to, c.state.Class(class).Reference)
		blocked.Count = c.weights[class]
		byPolicy[name] = &blocked
	}
	for name := range byPolicy {
		shown[name] = true
	}
	var out []Blocked
	for _, name := range slices.Sorted(mapKeys(byPolicy)) {
		out = append(out, *byPolicy[name])
	}
	return out
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func (c *count) blockedSingles(who *subject, instance *Capabilities) []Blocked {
	what := c.what
	if c.set.Egress && what == write {
		what = leave
	}
	var out []Blocked
	for _, to := range c.engine.singles(who, c.set) {
		if slices.Contains(instance.Others, Other{c.set.Name, to.conduit.Name, c.what != read}) {
			continue
		}
		reference := catalog.Reference{}
		if to.conduit.Policy != nil {
			reference = referenceOf(c.state, c.set, to)
		}
		blocked := c.explain(who, what, to, reference)
		blocked.Count = 1
		out = append(out, blocked)
	}
	return out
}

// referenceOf finds the bundle's name for a policy that was bound by name.
func referenceOf(state *catalog.State, set *Set, to *target) catalog.Reference {
	if set.Policy != nil {
		return *set.Policy
	}
	reference := catalog.Reference{Arguments: make(map[string]string)}
	for parameter, value := range to.conduit.Policy.Arguments() {
		reference.Arguments[parameter] = value
	}
	for _, name := range state.Templates(set.Catalog) {
		reference.Policy = name
		if bound, err := state.Bind(reference); err == nil && bound.ID() == to.conduit.Policy.ID() {
			return reference
		}
	}
	return catalog.Reference{}
}

func (c *count) explain(who *subject, what access, to *target, reference catalog.Reference) Blocked {
	blocked := Blocked{Instance: who.instance.Name(), Access: what.String(), Conduits: c.set.Name, Conduit: to.conduit.Name}
	if strings.HasPrefix(blocked.Conduit, "\x00") {
		blocked.Conduit = c.set.Name
	}
	if to.conduit.Policy != nil {
		blocked.Policy = to.conduit.Policy.String()
	}
	decision := decide(who, what, to, c.state, c.engine.now, nil)
	blocked.Obligation = decision.Reason
	if decision.Allowed {
		blocked.Obligation = "depends on what is known only when it happens"
		return blocked
	}
	if waive := c.state.Waive(); waive != nil && decide(who, what, to, c.state, c.engine.now, waive).Allowed {
		blocked.Mode = relaxedMode(c.state, decision.Unmet)
	}
	blocked.Suggestion = suggest(c.engine, who, what, to, reference)
	return blocked
}

// relaxedMode is the mode of the policies that forbid a flow, Warn before Audit.
func relaxedMode(state *catalog.State, unmet []*policy.Policy) catalog.Mode {
	mode := catalog.Audit
	for _, p := range unmet {
		if state.ModeOf(p) == catalog.Warn {
			mode = catalog.Warn
		}
	}
	return mode
}

// Text is the report as a table and a list.
func (r *Report) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "pipeline %s: %d conduits in %d classes, %d instances\n\n", r.Pipeline, r.Conduits, r.Classes, r.Instances)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "task\taccess\tconduits\tinstances\texpected\tvalidated\tcoverage\t")
	for _, c := range r.Coverage {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t\n", c.Task, c.Access, c.Conduits, c.Instances, c.Expected, c.Validated, percent(c.Validated, c.Expected))
	}
	_ = table.Flush() // to memory
	for i, b := range r.Blocked {
		if i == 0 {
			fmt.Fprintf(&out, "\n%d expected accesses were not validated; the monitor decides them when they happen. Examples:\n", r.BlockedTotal)
		}
		may := "may not"
		if b.Mode != "" {
			may = "would not be allowed (mode " + string(b.Mode) + ") to"
		}
		fmt.Fprintf(&out, "  %s %s %s %s (%s), %d conduits of this policy\n    because %s\n", b.Instance, may, b.Access, b.Conduit, b.Policy, b.Count, b.Obligation)
		if b.Suggestion != "" {
			fmt.Fprintf(&out, "    would pass with: %s\n", b.Suggestion)
		}
	}
	return out.String()
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// Mermaid is a picture of the pipeline's flows: tasks, sets of conduits, and on
// each arrow how much of it was validated. Flows without any are dotted.
func (r *Report) Mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	for _, task := range r.plan.Tasks {
		fmt.Fprintf(&out, "  %s[%q]\n", node("task", task.Name), task.Name)
	}
	for _, set := range r.plan.Sets {
		fmt.Fprintf(&out, "  %s[(%q)]\n", node("set", set.Name), set.Name)
	}
	for _, c := range r.Coverage {
		arrow, label := "-->", percent(c.Validated, c.Expected)
		if c.Validated == 0 {
			arrow = "-.->"
		}
		from, to := node("set", c.Conduits), node("task", c.Task)
		if c.Access == "write" {
			from, to = to, from
		}
		fmt.Fprintf(&out, "  %s %s|%q| %s\n", from, arrow, label, to)
	}
	return out.String()
}

// node is an identifier that the picture's language accepts for any name.
func node(kind, name string) string {
	return kind + "_" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}
