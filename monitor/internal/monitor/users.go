// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
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

// assignUsers finds the user of every pipeline. Without the superuser's rights, all tasks
// run as the monitor's user, and status says so.
func (m *Monitor) assignUsers(pipelines map[string]*pipeline) error {
	if !isSuperuser() {
		return nil
	}
	for name, p := range pipelines {
		if p.user != nil {
			continue
		}
		id, err := m.options.TaskIDs.Of(m.options.Data, name)
		if err != nil {
			return err
		}
		p.user = &plan.User{ID: id, Group: id}
	}
	return nil
}

// userOfSet returns the user whose tasks read a set of conduits, nil if there is none.
func (m *Monitor) userOfSet(set string) *plan.User {
	pipeline, _, _ := strings.Cut(set, "/")
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.pipelines[pipeline]; p != nil {
		return p.user
	}
	return nil
}

// readers returns the function that checks whether the tasks of a set can read a
// document.
func (m *Monitor) readers() catalog.Readers {
	if !isSuperuser() {
		return catalog.Readers{}
	}
	judge := catalog.Readers{CanRead: func(set string, owner, group, mode uint32) bool {
		user := m.userOfSet(set)
		return user == nil || user.Permits(owner, group, mode, mayRead)
	}}
	if m.options.GiveData {
		judge.Group = func(set string) uint32 { return m.userOfSet(set).Group }
	}
	return judge
}

// Bits of a file's mode, for one of its three classes of users.
const (
	mayRead   = 4
	maySearch = 1 // for a directory: use its names
	mayList   = mayRead | maySearch
)

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
		for _, one := range m.pipelines[name].examineDirectories() {
			report(name, one.directory, one.warning)
		}
	}
	return warnings
}

// unreadableOf returns the warnings of the last report about a pipeline's documents and
// directories.
func (m *Monitor) unreadableOf(p *pipeline) (warnings []string) {
	for _, one := range m.view.Unreadable() {
		if strings.HasPrefix(one.Set, p.name+"/") {
			warnings = append(warnings, m.unreadable(one))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.unlistable {
		warnings = append(warnings, one.warning)
	}
	return warnings
}

func (m *Monitor) unreadable(one catalog.Unreadable) string {
	user, first := m.userOfSet(one.Set), one.First
	documents := "a document"
	if one.Total > 1 {
		documents = fmt.Sprintf("%d documents", one.Total)
	}
	if user == nil {
		return one.Set + ": its pipeline no longer exists"
	}
	return fmt.Sprintf("%s: tasks cannot read %s, the first is %s (mode %04o of user %d and group %d; the tasks are user and group %d); %s",
		one.Set, documents, first.Name, first.Mode, first.Owner, first.Group, user.ID,
		remedyFor(filepath.Join(m.options.Data, m.rootOf(one.Set, first.Name)), user))
}

// rootOf returns the directory of the rule that puts a document into a set.
func (m *Monitor) rootOf(set, name string) string {
	pipeline, conduit, _ := strings.Cut(set, "/")
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, one := range m.pipelines[pipeline].spec.Conduits {
		for _, path := range one.Paths {
			if fixed := fixedPart(path.Path); one.Name == conduit && one.Kind == manifest.KindFile &&
				isBeneath(fixed, name) {
				return fixed
			}
		}
	}
	return name
}

// remedyFor returns a command that lets a pipeline's tasks read a directory.
func remedyFor(path string, user *plan.User) string {
	return fmt.Sprintf("let the group read them: chgrp -R %d %[2]s && chmod -R g+rX %[2]s", user.Group,
		shellWord(path))
}

// checkReadable returns an error if the pipeline's user may not read a file.
func (p *pipeline) checkReadable(file *os.File) error {
	info, err := file.Stat()
	if err != nil || p.user == nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !p.user.Permits(stat.Uid, stat.Gid, uint32(info.Mode().Perm()), mayRead) {
		return fmt.Errorf("its mode %04o does not let user and group %d of the pipeline's tasks read it",
			info.Mode().Perm(), p.user.ID)
	}
	return nil
}

// provideDirectory makes the directory of a conduit if it is missing, beneath the data
// directory and through no symbolic link. A task owns a directory that it writes to, or
// that had to be made. A task that only reads must be able to list it.
func (t *runningTask) provideDirectory(name string, writes bool) error {
	services, user := t.pipeline.services, t.pipeline.user
	directory, made, err := makeBeneath(services.options.Data, strings.TrimPrefix(name, "/"))
	if err != nil {
		return fmt.Errorf("make directory conduit %s: %w", name, err)
	}
	defer directory.Close()
	switch {
	case user == nil:
		return nil
	case writes || made:
		if err := own(directory, *user); err != nil {
			return fmt.Errorf("give directory conduit %s to user %d of pipeline %s: %w", name, user.ID, t.pipeline.name,
				err)
		}
		return nil
	case services.options.GiveData:
		if err := giveDirectories(directory, *user); err != nil {
			return fmt.Errorf("give directory conduit %s to group %d of pipeline %s: %w", name, user.Group,
				t.pipeline.name, err)
		}
	}
	return t.checkListable(name)
}

// unlistable is a directory conduit that a task will not be able to list when it starts.
type unlistable struct{ directory, warning string }

// examineDirectories finds the directories that tasks will not be able to list. It skips
// those that the monitor will make, or give to the tasks.
func (p *pipeline) examineDirectories() (found []unlistable) {
	for _, name := range p.order {
		task := p.tasks[name]
		for _, directory := range task.listed() {
			err := task.checkListable(directory)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				found = append(found, unlistable{directory, fmt.Sprintf("%s/%v", p.name, err)})
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlistable = found
	return found
}

// listed returns the directory conduits that the task reads, if they have to be readable
// for it before it starts: no task of the pipeline writes to them, and so owns them.
func (t *runningTask) listed() (directories []string) {
	if t.pipeline.user == nil || t.pipeline.services.options.GiveData || len(t.spec.Parameters) > 0 {
		return nil
	}
	for _, place := range t.placements {
		if place.directory != "" && place.directory != viewPrefix && !t.pipeline.writesTo(place.directory) {
			directories = append(directories, place.directory)
		}
	}
	return directories
}

func (p *pipeline) writesTo(directory string) bool {
	for _, task := range p.tasks {
		for _, place := range task.placements {
			if place.directory == directory && place.capability.Rights&wire.RightWrite != 0 {
				return true
			}
		}
	}
	return false
}

// checkListable refuses a directory in which the task would not see all entries.
func (t *runningTask) checkListable(name string) error {
	services, user := t.pipeline.services, t.pipeline.user
	root := services.directoryPath(name)
	return filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && !user.Permits(stat.Uid, stat.Gid, uint32(info.Mode().Perm()), mayList) {
			return fmt.Errorf("%s cannot list %s (mode %04o of user %d and group %d; the task is user and group %d); %s", t.name,
				strings.TrimPrefix(path, services.options.Data), info.Mode().Perm(), stat.Uid, stat.Gid, user.ID,
				remedyFor(root, user))
		}
		return nil
	})
}
