// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// raises checks the tasks as which another one may register again. Instances of a task with
// parameters get their users, and with them their taints, by logins only.
func (c *checker) raises(pipeline, o *object, tasks []string) {
	task, ok := o.value.(*Task)
	if !ok || o.broken {
		return
	}
	for i, name := range task.Spec.RaisesTo {
		at := raisesAt(i)
		if name != "" && !contains(tasks, name) {
			c.fail(o, at, c.missing(o, name, tasks), "%q is not one of the tasks of pipeline %s", name, pipeline.name)
		}
		if other, known := c.objects["Task/"+name]; known && !other.broken &&
			len(task.Spec.Parameters)+len(other.value.(*Task).Spec.Parameters) > 0 {
			c.fail(o, at, "remove it: an instance gets its taint by a login, and keeps it",
				"tasks with parameters do not raise their taint, and no task raises its own to theirs")
		}
	}
}

// missing says what to do about a task that the pipeline does not have. The task that names it
// is never what was meant.
func (c *checker) missing(o *object, name string, tasks []string) string {
	others := slices.DeleteFunc(slices.Clone(tasks), func(task string) bool { return task == o.name })
	if c.hints() {
		if meant := near(name, others); meant != "" {
			return meant
		}
	}
	return "add it to spec.tasks of the pipeline, or remove it"
}

func raisesAt(i int) string { return fmt.Sprintf("spec.raisesTo[%d]", i) }

// raisesToItself reports a task that names itself.
func (c *checker) raisesToItself(o *object, task *Task) {
	for i, name := range task.Spec.RaisesTo {
		if name == o.name {
			c.fail(o, raisesAt(i), "remove it", "a task raises its taint to that of another task, not to its own")
		}
	}
}

// starts reports tasks of a pipeline that nothing ever starts. A task that others become does
// not start by itself, so one that starts has to become it.
func (c *checker) starts(pipeline *object, tasks []string) {
	becomes, raised := map[string][]string{}, map[string]bool{}
	for _, name := range tasks {
		o, known := c.objects["Task/"+name]
		if !known || o.broken {
			return // reported
		}
		for _, other := range o.value.(*Task).Spec.RaisesTo {
			if other != name {
				becomes[name] = append(becomes[name], other)
				raised[other] = true
			}
		}
	}
	started := map[string]bool{}
	for _, name := range tasks {
		if !raised[name] {
			follow(becomes, name, started)
		}
	}
	for _, name := range tasks {
		circle := circleOf(becomes, name)
		if started[name] || circle == nil {
			continue
		}
		follow(becomes, name, started)
		o := c.objects["Task/"+name]
		at := raisesAt(slices.Index(o.value.(*Task).Spec.RaisesTo, circle[0]))
		c.fail(o, at, "remove it, or name one of them in raisesTo of a task that starts",
			"%s becomes %s: since a task that others become does not start by itself, none of them would ever start in "+
				"pipeline %s", name, strings.Join(circle, ", which becomes "), pipeline.name)
	}
}

// follow marks a task and all that it may become.
func follow(becomes map[string][]string, name string, marked map[string]bool) {
	if marked[name] {
		return
	}
	marked[name] = true
	for _, next := range becomes[name] {
		follow(becomes, next, marked)
	}
}

// circleOf returns the tasks that a task becomes, in turn, until it is itself again; nil if it
// never is.
func circleOf(becomes map[string][]string, name string) []string {
	before := map[string]string{}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, next := range becomes[queue[0]] {
			if _, known := before[next]; known {
				continue
			}
			before[next] = queue[0]
			queue = append(queue, next)
		}
	}
	if _, found := before[name]; !found {
		return nil
	}
	circle := []string{name}
	for at := before[name]; at != name; at = before[at] {
		circle = append([]string{at}, circle...)
	}
	return circle
}
