// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// perimeter returns what the kernel allows the task itself to open natively, which is what
// the policies allow its taint now. A zygote may read no user's data. Each worker gets the
// directories of its user's set.
//
// Landlock cannot take back what it has granted. A program that may raise its taint therefore
// writes natively only where all of its roles may write: the raised taint may read whatever
// the first one may, but not write there. The monitor decides on everything else. A program
// that is started in a dynamic mode opens no file natively: the monitor sees what it reads.
func (t *Task) perimeter(confined bool, now *acting) ([]plan.Directory, error) {
	if len(t.spec.Parameters) > 0 {
		return nil, nil
	}
	list, err := t.readableView(now.asks)
	if err != nil {
		return nil, err
	}
	policies := map[policy.ID]bool{} // of directories from which files could be moved to others
	for _, r := range t.roles {
		for _, place := range r.placements {
			if place.directory == "" || place.directory == viewPrefix {
				continue
			}
			if err := t.provideDirectory(place.directory, place.capability.Rights&wire.RightWrite != 0); err != nil {
				return nil, err
			}
			conduit := t.pipeline.services.directoryConduit(place.directory)
			rights, err := t.directoryRights(r, place, conduit)
			if confined && err != nil {
				return nil, err
			}
			if r == t.roles[0] {
				directory := now.native(place.directory, conduit, rights)
				if directory.Rights&plan.Move != 0 {
					policies[conduit.Policy.ID()] = true
				}
				list = append(list, directory)
			}
		}
	}
	if len(policies) > 1 {
		keepApart(list)
	}
	return list, nil
}

// keepApart lets no file be moved or linked from one directory to another. A file with a name under
// each of two policies would be written under one and read under the other, when facts have changed
// that made them equal.
func keepApart(list []plan.Directory) {
	for i := range list {
		list[i].Rights &^= plan.Move
	}
}

// native returns what of the rights in a directory the program has without being asked, and
// notes them.
func (a *acting) native(directory string, conduit policy.Conduit, rights plan.Rights) plan.Directory {
	if rights &= a.task.common(conduit); rights&plan.Write != 0 {
		a.writes = append(a.writes, heldDirectory{directory, conduit})
	}
	if rights&(plan.Read|plan.Write) == plan.Read|plan.Write {
		rights |= plan.Move
	}
	if a.asks {
		rights = a.names(conduit, rights)
	}
	return plan.Directory{Path: a.task.pipeline.services.directoryPath(directory), Rights: rights}
}

// names returns the part of the rights in a directory that concerns names alone. They are data,
// too: to list them is to read the directory.
func (a *acting) names(conduit policy.Conduit, rights plan.Rights) (names plan.Rights) {
	if rights&plan.Read != 0 {
		names |= plan.List
		a.listed = append(a.listed, conduit.Label())
	}
	if rights&plan.Write != 0 {
		names |= plan.Names
	}
	return names | rights&plan.Move
}

// common returns the rights in a directory that no role but the task's own lacks.
func (t *Task) common(conduit policy.Conduit) plan.Rights {
	for _, r := range t.roles[1:] {
		f := decision.Flow{Who: r.subject, What: policy.Write, Conduit: conduit}
		if !decision.Decide(f, t.pipeline.services.state(), time.Now()).ByEveryPolicy() {
			return ^plan.Write
		}
	}
	return ^plan.Rights(0)
}

// directoryRights decides on a directory conduit. A role that may write it may also read
// it back, if the policies allow this. If the manifest asks for an access that the
// policies forbid, the task does not start.
func (t *Task) directoryRights(r *role, place placement, conduit policy.Conduit) (plan.Rights, error) {
	if conduit.Policy == nil {
		return 0, fmt.Errorf("directory %s is not a conduit of the pipeline", place.directory)
	}
	var rights plan.Rights
	state := t.pipeline.services.state()
	for _, wanted := range []struct {
		asked bool
		what  policy.Operation
		right plan.Rights
	}{
		{place.capability.Rights&wire.RightWrite != 0, policy.Write, plan.Write},
		{place.capability.Rights == wire.RightRead, policy.Read, plan.Read},
	} {
		if !wanted.asked {
			f := decision.Flow{Who: r.subject, What: wanted.what, Conduit: conduit}
			if wanted.what == policy.Read && decision.Decide(f, state, time.Now()).ByEveryPolicy() {
				rights |= wanted.right
			}
			continue
		}
		found := t.pipeline.decideAhead(r.subject, wanted.what, conduit)
		if !found.Allowed {
			name, why := causeOf(found, conduit)
			t.pipeline.refusedBy(name, t.pipeline.manifestName(conduit), why, r.subject, wanted.what.String(),
				place.directory, found.Reason)
			return 0, fmt.Errorf("%s may not %s %s: %s", r.name, wanted.what, place.directory, found.Reason)
		}
		rights |= wanted.right
	}
	return rights, nil
}

// readableView returns the part of the view that a task without parameters may read. It
// lists single classes even if the task may read all of them: a class that appears while
// the task runs has not been decided on, and Landlock cannot revoke what it has granted.
// The task can list the view, which shows it the numbers of classes and conduits. If it asks
// about each file, it can do no more.
func (t *Task) readableView(asks bool) ([]plan.Directory, error) {
	p, services := t.pipeline, t.pipeline.services
	found, err := analysis.RunInstance(p.plan, services.state(), analysis.Instance{Task: t.name}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("analyse task %s: %w", t.name, err)
	}
	readable := p.documentClasses(services.state(), found.Reads)
	if len(readable) == 0 {
		return nil, nil
	}
	if err := services.View.EnsureClassDirectories(readable); err != nil {
		return nil, err
	}
	rights := plan.Read
	if asks {
		rights = plan.List
	}
	list := []plan.Directory{{Path: services.View.Path(), Rights: plan.List}}
	for _, class := range readable {
		list = append(list, plan.Directory{Path: services.View.ClassDirectory(class), Rights: rights})
	}
	return list, nil
}
