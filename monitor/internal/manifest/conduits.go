// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/kvcommand"
	"shai.dev/monitor/policy"
)

// The reserved descriptor numbers of the wire protocol limit the number of ends.
const (
	maxPipes    = 64
	maxChannels = 32
)

// shape lists the fields that a kind of conduit needs and those that it may have.
type shape struct{ needs, takes []string }

var shapes = map[string]shape{
	KindFile:       {needs: []string{"paths"}, takes: []string{"ingress", "egress", "directory", "type"}},
	KindTuple:      {needs: []string{"paths", "access"}, takes: []string{"ingress", "egress", "type"}},
	KindPipe:       {needs: []string{"from", "to", "policy"}, takes: []string{"slots"}},
	KindChannel:    {needs: []string{"from", "to", "policy"}, takes: []string{"slots"}},
	KindConnection: {needs: []string{"listen", "task"}, takes: []string{"ingress", "egress", "service", "sessions"}},
}

// given lists the fields of a conduit that are set, besides name and kind.
func given(conduit Conduit) []string {
	present := map[string]bool{
		"ingress": conduit.Ingress, "egress": conduit.Egress, "directory": conduit.Directory,
		"paths": len(conduit.Paths) > 0, "access": conduit.Access != nil, "slots": conduit.Slots > 0,
		"from": conduit.From != "", "to": conduit.To != "", "policy": conduit.Policy != nil,
		"listen": conduit.Listen != "", "service": conduit.Service != "", "task": conduit.Task != "",
		"sessions": conduit.Sessions > 0, "type": conduit.Type != "",
	}
	var list []string
	for name, there := range present {
		if there {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// conduits checks a pipeline's conduits and returns them by name.
func (c *checker) conduits(o *object, spec PipelineSpec) map[string]Conduit {
	known, served := map[string]Conduit{}, map[string]string{}
	for i, conduit := range spec.Conduits {
		at := fmt.Sprintf("spec.conduits[%d]", i)
		if _, twice := known[conduit.Name]; twice && conduit.Name != "" {
			c.fail(o, at+".name", "rename or remove one of them", "conduit %q is given twice", conduit.Name)
			continue
		}
		known[conduit.Name] = conduit
		shape, ok := shapes[conduit.Kind]
		if !ok {
			continue // reported where the kind was decoded
		}
		c.shape(o, at, conduit, shape)
		c.commands(o, at, conduit.Access)
		c.ends(o, at, conduit, spec.Tasks)
		c.typed(o, at, conduit)
		c.served(o, at, conduit, served)
		c.reference(o, at+".policy", conduit.Policy, nil)
		c.supplied(o, at+".policy", conduit.Policy, policy.GrantOpen)
		for j, path := range conduit.Paths {
			c.conduitPath(o, fmt.Sprintf("%s.paths[%d]", at, j), conduit, path)
		}
		if conduit.Kind == KindTuple && spec.KeyValue == nil && !o.broken {
			c.fail(o, "spec", "", "keyValue is missing; conduit %q holds tuples", conduit.Name)
		}
	}
	c.slots(o, spec.Conduits)
	return known
}

// served refuses a second connection of a task: its users sign one service, and its data leave
// through one conduit. by has the connection of each task that has one.
func (c *checker) served(o *object, at string, conduit Conduit, by map[string]string) {
	if conduit.Kind != KindConnection || conduit.Task == "" {
		return
	}
	if first, taken := by[conduit.Task]; taken {
		c.fail(o, at+".task", "name another task, or remove one of the conduits",
			"users connect to task %q through conduit %q already; a task has one connection", conduit.Task, first)
		return
	}
	by[conduit.Task] = conduit.Name
}

// shape reports missing and misplaced fields.
func (c *checker) shape(o *object, at string, conduit Conduit, s shape) {
	present := given(conduit)
	for _, name := range s.needs {
		if _, stands := o.positions[at+"."+name]; !contains(present, name) && !stands {
			c.fail(o, at+"."+name, "", "the field is missing; a conduit of kind %s needs %s",
				conduit.Kind, strings.Join(s.needs, ", "))
		}
	}
	for _, name := range present {
		if !contains(s.needs, name) && !contains(s.takes, name) {
			c.fail(o, at+"."+name, "", "a conduit of kind %s has no %s", conduit.Kind, name)
		}
	}
}

// commands refuses commands of the key-value store that no session could be granted.
// Those listed under write are granted to the instances that also read, if they need it.
func (c *checker) commands(o *object, at string, access *Commands) {
	if access == nil {
		return
	}
	for i, command := range access.Read {
		if err := kvcommand.Check(command, kvcommand.Read); err != nil {
			c.fail(o, fmt.Sprintf("%s.access.read[%d]", at, i), "", "%v", err)
		}
	}
	for i, command := range access.Write {
		if err := kvcommand.Check(command, kvcommand.Read|kvcommand.Write); err != nil {
			c.fail(o, fmt.Sprintf("%s.access.write[%d]", at, i), "", "%v", err)
		}
	}
}

// ends checks the tasks and the address that a conduit names.
func (c *checker) ends(o *object, at string, conduit Conduit, tasks []string) {
	c.member(o, at+".from", conduit.From, tasks)
	c.member(o, at+".to", conduit.To, tasks)
	c.member(o, at+".task", conduit.Task, tasks)
	if conduit.From != "" && conduit.From == conduit.To {
		c.fail(o, at+".to", "", "the conduit begins and ends at %q; expected another task", conduit.To)
	}
	if conduit.Listen != "" && !strings.Contains(conduit.Listen+conduit.Service, "$(") {
		if _, field, err := service(conduit); err != nil {
			c.fail(o, at+"."+field, "", "%v", err)
		}
	}
}

// slots checks that all pipes and channels fit the reserved descriptor numbers.
func (c *checker) slots(o *object, conduits []Conduit) {
	pipes, channels := 0, 0
	for i, conduit := range conduits {
		at := fmt.Sprintf("spec.conduits[%d].slots", i)
		switch conduit.Kind {
		case KindPipe:
			if pipes += max(1, conduit.Slots); pipes > maxPipes {
				c.fail(o, at, "", "the pipeline has %d pipes; at most %d are possible", pipes, maxPipes)
			}
		case KindChannel:
			if channels += max(1, conduit.Slots); channels > maxChannels {
				c.fail(o, at, "", "the pipeline has %d channels; at most %d are possible", channels, maxChannels)
			}
		}
	}
}

// flows checks that the conduits that a task reads and writes exist, and that the task is
// at the right end of them.
func (c *checker) flows(pipeline, task *object, conduits map[string]Conduit) {
	spec := task.value.(*Task).Spec
	known := make([]string, 0, len(conduits))
	for name := range conduits {
		known = append(known, name)
	}
	slices.Sort(known)
	listed := func(field string, names []string, end func(Conduit) string, does string) {
		for i, name := range names {
			at := fmt.Sprintf("spec.%s[%d]", field, i)
			conduit, ok := conduits[name]
			switch {
			case !ok:
				c.unknownConduit(pipeline, task, at, name, known)
			case end(conduit) != "" && end(conduit) != task.name:
				c.fail(task, at, "", "%q %s task %s in pipeline %s", name, does, end(conduit), pipeline.name)
			}
		}
	}
	listed("reads", spec.Reads, func(conduit Conduit) string { return conduit.To }, "ends at")
	listed("writes", spec.Writes, func(conduit Conduit) string { return conduit.From }, "begins at")
}

func (c *checker) unknownConduit(pipeline, task *object, at, name string, known []string) {
	if name != "" {
		c.fail(task, at, c.didYouMean(name, known), "pipeline %s has no conduit %q", pipeline.name, name)
	}
}
