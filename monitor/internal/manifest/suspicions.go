// SPDX-License-Identifier: BSD-2-Clause

package manifest

import "fmt"

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
	used := map[string]bool{}
	for _, name := range spec.Tasks {
		task, ok := c.objects["Task/"+name]
		if !ok {
			return // its conduits are not known
		}
		for _, conduit := range task.value.(*Task).Spec.Reads {
			used[conduit] = true
		}
		for _, conduit := range task.value.(*Task).Spec.Writes {
			used[conduit] = true
		}
	}
	for i, conduit := range spec.Conduits {
		if !used[conduit.Name] {
			c.suspect(o, Unused, fmt.Sprintf("spec.conduits[%d]", i),
				"name it in a task's reads or writes, or remove it", "no task reads or writes conduit %q", conduit.Name)
		}
	}
}
