// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox"
)

// isSuperuser reports whether tasks can have users of their own.
func isSuperuser() bool { return os.Geteuid() == 0 }

// dropGroups removes the monitor's supplementary groups: when it opens a file for a task,
// it must have no rights but those of the task's user and group.
func dropGroups() error {
	if !isSuperuser() {
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
		p.user = &sandbox.User{ID: id, Group: id}
	}
	return nil
}

// userOfSet returns the user whose tasks read a set of conduits, nil if there is none.
func (m *Monitor) userOfSet(set string) *sandbox.User {
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

// reportUnreadable records the documents that the tasks of a pipeline cannot read, and
// returns a warning with the remedy for each set.
func (m *Monitor) reportUnreadable() (warnings []string) {
	for _, one := range m.view.Unreadable() {
		warning := m.unreadable(one)
		pipeline, _, _ := strings.Cut(one.Set, "/")
		m.record(audit.Event{Kind: audit.Denial, Pipeline: pipeline, Operation: "link", Conduit: one.First.Name,
			Reason: warning})
		m.logger.Warn(warning)
		warnings = append(warnings, warning)
	}
	return warnings
}

// unreadableOf returns warnings about documents that the tasks of a pipeline cannot read.
func (m *Monitor) unreadableOf(pipeline string) (warnings []string) {
	for _, one := range m.view.Unreadable() {
		if strings.HasPrefix(one.Set, pipeline+"/") {
			warnings = append(warnings, m.unreadable(one))
		}
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
func remedyFor(path string, user *sandbox.User) string {
	return fmt.Sprintf("let the group read them: chgrp -R %d %[2]s && chmod -R g+rX %[2]s", user.Group, path)
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
