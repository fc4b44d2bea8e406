// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/catalog"
)

// Report says which of the expected accesses are granted, and what prevents a task from
// its work.
type Report struct {
	Conduits  uint64
	Classes   uint64
	Instances uint64
	Total     Tally
	Accesses  []Accesses // one for each task and set of conduits that it lists
	Warnings  []Warning

	plan *Plan
}

// Tally counts accesses. An access is one instance's access to one conduit. Every
// expected access is granted, refused or undecided.
type Tally struct {
	Expected  uint64
	Granted   uint64 // allowed without asking the monitor
	Refused   uint64 // forbidden by a policy: the monitor refuses them when they happen
	Undecided uint64 // the decision needs more information: the monitor decides when they happen
}

// Accesses are the expected accesses of one task, over all its instances, to one set of
// conduits. They leave out instances that cannot start.
type Accesses struct {
	Task      string
	Access    string // "read" or "write"
	Conduits  string
	Instances uint64
	Tally
	RefusedBecause   []Cause // the three policies that refuse most
	UndecidedBecause []Cause // the three policies that leave most undecided
}

// Cause is a policy because of which accesses are not granted, with one of them as an
// example.
type Cause struct {
	Policy   string // name; "" for conduits without a policy
	Count    uint64 // accesses
	Instance string
	Conduit  string
	Reason   string // a sentence; "it" is the conduit
	// Suggestion is the smallest of the tried changes with which the policy would allow
	// the example. The user decides whether it should.
	Suggestion string
	// Mode is set if only policies in mode Audit or Warn forbid the example. It is then
	// allowed, after a decision each time, and recorded.
	Mode catalog.Mode
}

// Warning says that instances of a task cannot do what the task was written for: they
// cannot start, or all accesses to a set of conduits that the task lists are refused.
type Warning struct {
	Task       string
	Access     string // "" for instances that cannot start
	Conduits   string // "" for instances that cannot start
	Instance   string // one of them
	Instances  uint64 // their number
	Message    string // a sentence
	Suggestion string // as in [Cause]
}

// Report computes the report. now is the clock for the decisions that it explains.
func (r *Result) Report(now time.Time) *Report {
	report := &Report{
		Conduits: uint64(r.state.Conduits()), Classes: uint64(r.state.Classes()), Instances: uint64(len(r.instances)),
		plan: r.plan,
	}
	e := newEngine(r.plan, r.state, now)
	for i := range r.plan.Tasks {
		task := &r.plan.Tasks[i]
		ready := report.start(e, r.instancesOf(task.Name))
		for _, name := range task.Reads {
			report.count(newCount(e, task, name, read), ready)
		}
		for _, name := range task.Writes {
			report.count(newCount(e, task, name, write), ready)
		}
	}
	return report
}

func (r *Result) instancesOf(task string) []*Capabilities {
	first, _ := slices.BinarySearchFunc(r.instances, task,
		func(c *Capabilities, t string) int { return strings.Compare(c.Instance.Task, t) })
	last := first
	for last < len(r.instances) && r.instances[last].Instance.Task == task {
		last++
	}
	return r.instances[first:last]
}

// start prepares a task's instances for decisions, and warns about those that cannot
// start.
func (r *Report) start(e *engine, instances []*Capabilities) []analyzed {
	var ready []analyzed
	var cannot Warning
	for _, one := range instances {
		who, err := newSubject(e.plan, e.state, one.Instance)
		if err == nil {
			ready = append(ready, analyzed{who, one})
			continue
		}
		if cannot.Instances++; cannot.Instances == 1 {
			cannot.Task, cannot.Instance = one.Instance.Task, one.Instance.Name()
			cannot.Message = fmt.Sprintf("%s cannot start: %v", cannot.Instance, err)
		}
	}
	if cannot.Instances > 0 {
		r.Warnings = append(r.Warnings, cannot)
	}
	return ready
}

func (r *Report) count(c *count, instances []analyzed) {
	if c == nil {
		return
	}
	found := c.over(instances)
	r.Total.add(found.Tally)
	r.Accesses = append(r.Accesses, found)
	if warning, ok := c.warning(found); ok {
		r.Warnings = append(r.Warnings, warning)
	}
}

func (t *Tally) add(more Tally) {
	t.Expected += more.Expected
	t.Granted += more.Granted
	t.Refused += more.Refused
	t.Undecided += more.Undecided
}

// Mermaid returns a diagram of the pipeline's flows: tasks, sets of conduits, and on each
// arrow the numbers of expected accesses that are granted, refused and undecided. Arrows
// without granted accesses are dotted.
func (r *Report) Mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	for _, task := range r.plan.Tasks {
		fmt.Fprintf(&out, "  %s[%q]\n", node("task", task.Name), task.Name)
	}
	for _, set := range r.plan.Sets {
		fmt.Fprintf(&out, "  %s[(%q)]\n", node("set", set.Name), set.Name)
	}
	for _, a := range r.Accesses {
		arrow := "-->"
		if a.Granted == 0 {
			arrow = "-.->"
		}
		from, to := node("set", a.Conduits), node("task", a.Task)
		if a.Access == "write" {
			from, to = to, from
		}
		fmt.Fprintf(&out, "  %s %s|%q| %s\n", from, arrow, a.label(), to)
	}
	return out.String()
}

func (t *Tally) label() string {
	label := fmt.Sprintf("%d granted", t.Granted)
	if t.Refused > 0 {
		label += fmt.Sprintf(", %d refused", t.Refused)
	}
	if t.Undecided > 0 {
		label += fmt.Sprintf(", %d undecided", t.Undecided)
	}
	return label
}

// node returns an identifier that Mermaid accepts for any name.
func node(kind, name string) string {
	return kind + "_" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}
