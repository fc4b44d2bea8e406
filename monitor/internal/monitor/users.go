// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
)

// isSuperuser reports whether tasks can have users of their own.
func isSuperuser() bool { return os.Geteuid() == 0 }

// dropGroups removes the monitor's supplementary groups: when it opens a file for a task,
// it must have no rights but those of the task's user and group. If it has none, it leaves
// its threads alone: they change their groups by a signal, for which each is waited for.
func dropGroups() error {
	if !isSuperuser() {
		return nil
	}
	groups, err := syscall.Getgroups()
	if err != nil {
		return fmt.Errorf("read supplementary groups: %w", err)
	}
	if len(groups) == 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave supplementary groups (the monitor needs CAP_SETGID): %w", err)
	}
	return nil
}

// assignUsers finds the users of every pipeline and its tasks. Without the superuser's rights,
// all tasks run as the monitor's user, and status says so.
func (m *Monitor) assignUsers(pipelines map[string]*pipeline.Pipeline) error {
	if !isSuperuser() {
		return nil
	}
	for name, p := range pipelines {
		if p.User() != nil {
			continue
		}
		var tasks []string
		if m.separatesTasks() {
			tasks = p.Tasks()
		}
		numbers, err := m.options.TaskIDs.Of(m.options.Data, name, tasks...)
		if err != nil {
			return err
		}
		p.RunAs(plan.User{ID: numbers.Pipeline, Group: numbers.Pipeline}, numbers.Tasks)
	}
	return nil
}

// findSeparation finds out whether the tasks of a pipeline can have different users. Otherwise
// they share one, since they have to reach the same files: those that a task makes only for its own
// user, too.
func (m *Monitor) findSeparation() bool {
	err := sandbox.CanMapOwners([]string{m.options.Data, m.view.Path()})
	if err != nil {
		m.logger.Warn("the tasks of a pipeline share its user, and in mode baseline reach each other's processes",
			"reason", err)
	}
	return err == nil
}

// pipelineOfSet returns the pipeline whose tasks read a set of conduits, nil if there is none.
func (m *Monitor) pipelineOfSet(set string) *pipeline.Pipeline {
	name, _, _ := strings.Cut(set, "/")
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.pipelines[name]
}

// readers returns the function that checks whether the tasks of a set can read a
// document.
func (m *Monitor) readers() catalog.Readers {
	if !isSuperuser() {
		return catalog.Readers{}
	}
	judge := catalog.Readers{CanRead: func(set string, owner, group, mode uint32) bool {
		p := m.pipelineOfSet(set)
		return p == nil || p.CanRead(owner, group, mode)
	}}
	if m.options.GiveData {
		judge.Group = func(set string) uint32 { return m.pipelineOfSet(set).User().Group }
	}
	return judge
}

// reportUnreadable records the documents that the tasks of a pipeline cannot read, and the
// directories that they cannot list. It returns a warning with the remedy for each set of
// documents and each directory.
func (m *Monitor) reportUnreadable() (warnings []string) {
	report := func(pipeline, conduit, warning string) {
		m.record(audit.Event{Kind: audit.Denial, Pipeline: pipeline, Operation: "link", Conduit: conduit,
			Reason: warning})
		m.logger.Warn(warning)
		warnings = append(warnings, warning)
	}
	for _, one := range m.view.Unreadable() {
		pipeline, _, _ := strings.Cut(one.Set, "/")
		report(pipeline, one.First.Name, m.unreadable(one))
	}
	for _, name := range slices.Sorted(maps.Keys(m.pipelines)) {
		for _, one := range m.pipelines[name].ExamineDirectories() {
			report(name, one.Directory, one.Warning)
		}
	}
	return warnings
}

// unreadableOf returns the warnings of the last report about a pipeline's documents and
// directories.
func (m *Monitor) unreadableOf(p *pipeline.Pipeline) (warnings []string) {
	for _, one := range m.view.Unreadable() {
		if strings.HasPrefix(one.Set, p.Name()+"/") {
			warnings = append(warnings, m.unreadable(one))
		}
	}
	for _, one := range p.Unlistable() {
		warnings = append(warnings, one.Warning)
	}
	return warnings
}

func (m *Monitor) unreadable(one catalog.Unreadable) string {
	first := one.First
	documents := "a document"
	if one.Total > 1 {
		documents = fmt.Sprintf("%d documents", one.Total)
	}
	p := m.pipelineOfSet(one.Set)
	if p == nil || p.User() == nil {
		return one.Set + ": its pipeline no longer exists"
	}
	user := p.User()
	return fmt.Sprintf("%s: tasks cannot read %s, the first is %s (mode %04o of user %d and group %d; the tasks have the rights of user and group %d); %s",
		one.Set, documents, first.Name, first.Mode, first.Owner, first.Group, user.ID,
		pipeline.Remedy(filepath.Join(m.options.Data, rootOf(p, one.Set, first.Name)), user))
}

// rootOf returns the directory of the rule that puts a document into a set.
func rootOf(p *pipeline.Pipeline, set, name string) string {
	_, conduit, _ := strings.Cut(set, "/")
	for _, one := range p.Spec().Conduits {
		for _, path := range one.Paths {
			if fixed := pattern.FixedPart(path.Path); one.Name == conduit && one.Kind == manifest.KindFile &&
				pattern.IsBeneath(fixed, name) {
				return fixed
			}
		}
	}
	return name
}
