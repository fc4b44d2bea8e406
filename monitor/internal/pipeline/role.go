// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// role is what the program of a task without parameters is taken for: the task itself or, once
// it has raised its taint, another one. It is immutable.
type role struct {
	name       string           // of the task
	subject    decision.Subject // without a taint if the task has parameters: its workers have their own
	placements []placement      // descriptors of the task, as its manifest asks for them
	raisesTo   []string
}

// ends returns the role's ends of pipes and channels.
func (r *role) ends() (ends []placement) {
	for _, place := range r.placements {
		if place.directory == "" {
			ends = append(ends, place)
		}
	}
	return ends
}

// with returns the role with further ends.
func (r *role) with(ends []placement) *role {
	all := *r
	all.placements = slices.Clone(r.placements)
	for _, place := range ends {
		if !slices.Contains(all.placements, place) {
			all.placements = append(all.placements, place)
		}
	}
	return &all
}

// above returns the role for a program that was another one: what it has read stays under the
// obligations of that one's taint, which facts may separate from those of the new one later.
func (r *role) above(former *role) *role {
	all := *r
	all.subject.Taint = r.subject.Taint.Join(former.subject.Taint)
	return &all
}

// becoming returns a task and, after it, all tasks that its program may become by raising its
// taint once or several times.
func becoming(task manifest.Task, tasks []manifest.Task) []manifest.Task {
	all := []manifest.Task{task}
	seen := map[string]bool{task.Metadata.Name: true}
	for i := 0; i < len(all); i++ {
		for _, other := range tasks {
			if name := other.Metadata.Name; slices.Contains(all[i].Spec.RaisesTo, name) && !seen[name] {
				seen[name] = true
				all = append(all, other)
			}
		}
	}
	return all
}

// rolesOf prepares the roles of a task, its own first.
func rolesOf(p *Pipeline, tasks []manifest.Task, bind Bind) ([]*role, error) {
	places, err := layout(p.spec, tasks...)
	if err != nil {
		return nil, err
	}
	var roles []*role
	for i, task := range tasks {
		name := task.Metadata.Name
		r := &role{name: name, placements: places[i], raisesTo: task.Spec.RaisesTo}
		roles = append(roles, r)
		if len(task.Spec.Parameters) > 0 {
			r.subject = decision.Subject{Task: name, Instance: name}
			continue // only its instances have taints: the zygote has read nothing
		}
		taint, err := taintOf(bind, task.Spec, name, nil)
		if err != nil {
			return nil, err
		}
		r.subject = decision.Subject{Task: tasks[0].Metadata.Name, Instance: name, Taint: taint,
			Session: &policy.Session{Principal: "task/" + name}}
	}
	return roles, nil
}

// acting is the role of one start of a task.
type acting struct {
	task    *Task
	role    atomic.Pointer[role]
	tracked *tracked // its running taint; nil if the task has parameters, and before the first start
	ended   atomic.Bool
	writing atomic.Int32 // writes that wait

	mu sync.Mutex // held while the taint is raised
	// writes are the directories that the kernel lets the program write.
	writes []heldDirectory
	// asks says that the program opens no file natively: it was started in a dynamic mode.
	asks   bool
	listed []policy.Label // of the directories whose names it then reads
}

func (t *Task) newActing() *acting {
	a := &acting{task: t}
	a.role.Store(t.roles[0])
	return a
}

// role returns the role of the task's last start.
func (t *Task) role() *role { return t.acting.Load().role.Load() }

// actor returns for whom accesses of the task are decided in a mode. A program with parameters has
// none in mode audit: all later sessions have what it reads, those in other modes, too.
func (t *Task) actor(mode wire.Mode) actor { return t.actorOf(t.acting.Load(), mode) }

// actorOf does the same for accesses of one start of the task.
func (t *Task) actorOf(now *acting, mode wire.Mode) actor {
	if len(t.spec.Parameters) > 0 && mode == wire.ModeAudit {
		mode = wire.ModeShai
	}
	return actor{Subject: now.role.Load().subject, mode: mode, tracked: now.tracked}
}

// roleNamed returns the role of the task with this name, nil if it has none.
func (t *Task) roleNamed(name string) *role {
	for _, r := range t.roles {
		if r.name == name {
			return r
		}
	}
	return nil
}

// run says when the task runs, for status: one that others become does not run by itself.
func (t *Task) run() string {
	for _, other := range t.pipeline.tasks {
		if slices.Contains(other.spec.RaisesTo, t.name) {
			return "Raised"
		}
	}
	return t.spec.Run
}

// raises reports whether the program may raise its taint.
func (t *Task) raises() bool { return len(t.roles) > 1 }

// capabilityTable returns the role's table.
func (a *acting) capabilityTable(r *role) (table []wire.Capability) {
	for _, place := range r.placements {
		if place.directory != "" && a.asksBeneath(place.directory) {
			place.capability.Rights |= wire.RightAsk
		}
		table = append(table, place.capability)
	}
	return table
}

// asksBeneath reports whether the program asks the monitor about what the kernel refuses beneath a
// directory. The kernel lets a program that may raise its taint open only what all of its roles may
// open, and one that was started in a dynamic mode nothing; of documents, it lets a program open those
// of the classes that there were when it started.
func (a *acting) asksBeneath(directory string) bool {
	return a.asks || a.task.raises() || directory == viewPrefix && a.task.readsDocuments()
}

// readsDocuments reports whether the manifest lists documents among what a task without parameters
// reads.
func (t *Task) readsDocuments() bool {
	return len(t.spec.Parameters) == 0 && slices.ContainsFunc(t.pipeline.spec.Conduits, func(c manifest.Conduit) bool {
		return c.Ingress && slices.Contains(t.spec.Reads, c.Name)
	})
}
