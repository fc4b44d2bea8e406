// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"sync"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// sessionIndex finds the instances that a session of a principal or region can be meant by:
// those of the session, and those whose taint names it. It is safe for concurrent use. As in a
// conditionIndex, instances that are no longer expected are kept.
type sessionIndex struct {
	taints map[string]taintNames // by task

	mu         sync.RWMutex
	principals map[string][]*instanceName
	regions    map[string][]*instanceName
	// insatiable are those whose taint covers every rule, whatever the facts; open are those
	// whose taint itself follows from facts.
	insatiable, open []*instanceName
}

// taintNames are the values that a task's taint names, which may hold {parameter}.
type taintNames struct {
	task                *Task
	principals, regions []taintName
	insatiable, open    bool
}

// taintName is a value that a taint names.
type taintName struct {
	text   string
	filled bool // {parameter} in the text stands for a value of the instance
}

func newSessionIndex(plan *Plan, state *catalog.State, all []*Capabilities) *sessionIndex {
	x := &sessionIndex{taints: make(map[string]taintNames), principals: make(map[string][]*instanceName),
		regions: make(map[string][]*instanceName)}
	for i := range plan.Tasks {
		x.taints[plan.Tasks[i].Name] = namesIn(&plan.Tasks[i], state)
	}
	for _, c := range all {
		x.insert(&c.Instance)
	}
	return x
}

func namesIn(task *Task, state *catalog.State) taintNames {
	names := taintNames{task: task, open: true}
	template := state.Template(task.Taint.Policy)
	if template == nil {
		return names
	}
	predicted, ok := template.PredictedSession()
	names.insatiable, names.open = predicted.Nobody, !ok
	of := func(terms []policy.PredictedTerm) (list []taintName) {
		for _, term := range terms {
			if term.Parameter != "" {
				list = append(list, taintName{task.Taint.Arguments[term.Parameter], true})
			} else {
				list = append(list, taintName{term.Value.Text(), false})
			}
		}
		return list
	}
	names.principals, names.regions = of(predicted.Principals), of(predicted.Regions)
	return names
}

// add lists an instance that was not listed before.
func (x *sessionIndex) add(instance *instanceName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.insert(instance)
}

func (x *sessionIndex) insert(instance *instanceName) {
	taint := x.taints[instance.Task]
	if taint.task == nil {
		return // it has no access
	}
	if taint.insatiable {
		x.insatiable = append(x.insatiable, instance)
	}
	if taint.open {
		x.open = append(x.open, instance)
	}
	values := taint.task.values(*instance)
	session := sessionOf(taint.task, values)
	list(x.principals, instance, values, taint.principals, session.Principal)
	list(x.regions, instance, values, taint.regions, session.Region)
}

// list lists an instance under each of the names, once.
func list(index map[string][]*instanceName, instance *instanceName, values map[string]string, named []taintName,
	own string) {
	put := func(name string) {
		if at := index[name]; name != "" && (len(at) == 0 || at[len(at)-1] != instance) {
			index[name] = append(at, instance)
		}
	}
	put(own)
	for _, one := range named {
		name := one.text
		if one.filled {
			name = pattern.Substitute(name, values)
		}
		if name != own {
			put(name)
		}
	}
}

// of returns the instances that a session of a principal can be meant by.
func (x *sessionIndex) of(principal string) []*instanceName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := x.principals[principal]
	return found[:len(found):len(found)]
}

// among returns the instances that a reach can be about, without those in beyond. narrowed is
// false if these can be all.
func (x *sessionIndex) among(reach policy.Reach) (instances []*instanceName, narrowed bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*instanceName
	switch {
	case reach.Asks && reach.Principal.Kind() == policy.StringValue:
		found = x.principals[reach.Principal.Text()]
	case reach.Region.Kind() == policy.StringValue:
		found = x.regions[reach.Region.Text()]
	default:
		return nil, false
	}
	return found[:len(found):len(found)], true
}

// beyond returns the instances whose reads a reach does not describe: those that may read what
// no reach is about, and those of them for which this depends on facts.
func (x *sessionIndex) beyond() (all, open []*instanceName) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Concat(x.insatiable, x.open), x.open[:len(x.open):len(x.open)]
}
