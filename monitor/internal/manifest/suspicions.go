// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
)

// suspect reports something that is allowed but probably not intended.
func (c *checker) suspect(o *object, code Code, path, hint, format string, arguments ...any) {
	c.warnings = append(c.warnings, o.error(code, path, hint, format, arguments...))
}

// suspicions runs last, since it needs to know which objects are used.
func (c *checker) suspicions(objects []*object) {
	for _, o := range objects {
		switch value := o.value.(type) {
		case *Policy:
			if !c.used[o.key()] {
				c.suspect(o, Unused, "metadata.name", "", "no task and no conduit uses the policy")
			}
			if mode := value.Spec.Mode; mode == "Audit" || mode == "Warn" {
				c.suspect(o, Unenforced, "spec.mode", "set Enforce when the records are as expected",
					"in mode %s, accesses that the policy forbids are recorded, not denied", mode)
			}
		case *Task:
			if !c.used[o.key()] {
				c.suspect(o, Unused, "metadata.name", "", "no pipeline has the task")
			}
		case *Pipeline:
			c.suspectPipeline(o, value.Spec)
		}
	}
}

func (c *checker) suspectPipeline(o *object, spec PipelineSpec) {
	switch spec.Mode {
	case "baseline":
		c.suspect(o, Unenforced, "spec.mode", "set shai",
			"in mode baseline, nothing is enforced and tasks run without a sandbox")
	case "audit":
		c.suspect(o, Unenforced, "spec.mode", "set shai",
			"in mode audit, accesses that policies forbid are recorded, not denied")
	}
	used, raisesTo := map[string]bool{}, map[string][]string{}
	for _, name := range spec.Tasks {
		task, ok := c.objects["Task/"+name]
		if !ok {
			return // what it uses is not known
		}
		raisesTo[name] = task.value.(*Task).Spec.RaisesTo
		for _, conduit := range task.value.(*Task).Spec.Reads {
			used[conduit] = true
		}
		for _, conduit := range task.value.(*Task).Spec.Writes {
			used[conduit] = true
		}
	}
	c.suspectTasks(o, spec.Tasks, raisesTo)
	for i, conduit := range spec.Conduits {
		if !used[conduit.Name] {
			c.suspect(o, Unused, fmt.Sprintf("spec.conduits[%d]", i),
				"name it in a task's reads or writes, or remove it", "no task reads or writes conduit %q", conduit.Name)
		}
	}
}

// suspectTasks reports tasks that no program runs as: others become them by raising their
// taint, so that they are not started by themselves, but nothing starts those either.
func (c *checker) suspectTasks(o *object, tasks []string, raisesTo map[string][]string) {
	raised := map[string]bool{}
	for _, names := range raisesTo {
		for _, name := range names {
			raised[name] = true
		}
	}
	runs := map[string]bool{}
	left := slices.DeleteFunc(slices.Clone(tasks), func(name string) bool { return raised[name] })
	for len(left) > 0 {
		name := left[0]
		left = left[1:]
		if !runs[name] {
			runs[name] = true
			left = append(left, raisesTo[name]...)
		}
	}
	for i, name := range tasks {
		if !runs[name] {
			c.suspect(o, Unused, fmt.Sprintf("spec.tasks[%d]", i), "let no task that it may become raise its taint to it",
				"nothing starts task %q: it is for tasks that raise their taint to it, and none of those is started", name)
		}
	}
}
