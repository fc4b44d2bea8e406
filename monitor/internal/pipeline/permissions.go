// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/shellword"
	"shai.dev/monitor/internal/wire"
)

// Bits of a file's mode, for one of its three classes of users.
const (
	mayRead   = 4
	maySearch = 1 // for a directory: use its names
	mayList   = mayRead | maySearch
)

// user returns the user that the program runs as, nil if it is the monitor's. Two tasks of a
// pipeline have different ones, so that neither reaches the other's processes. The files are
// each one's own (see [plan.User]).
func (t *Task) user() *plan.User {
	p := t.pipeline
	id := p.users[t.name]
	if p.user == nil || id == 0 {
		return p.user
	}
	return &plan.User{ID: id, Group: p.user.Group, Files: p.user.ID}
}

// owned returns the directories in which files belong to the user of the pipeline's files.
func (s *Services) owned() []string { return []string{s.Options.Data, s.View.Path()} }

// CanRead reports whether the tasks can read a file with this owner, group and mode.
func (p *Pipeline) CanRead(owner, group, mode uint32) bool {
	return p.user == nil || p.user.Permits(owner, group, mode, mayRead)
}

// Remedy returns a command that lets a pipeline's tasks read a directory.
func Remedy(path string, user *plan.User) string {
	return fmt.Sprintf("let the group read them: chgrp -R %d %[2]s && chmod -R g+rX %[2]s", user.Group,
		shellword.Quote(path))
}

// checkReadable returns an error if the pipeline's user may not read a file.
func (p *Pipeline) checkReadable(file *os.File) error {
	info, err := file.Stat()
	if err != nil || p.user == nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !p.user.Permits(stat.Uid, stat.Gid, uint32(info.Mode().Perm()), mayRead) {
		return fmt.Errorf("its mode %04o gives the pipeline's tasks, which have the rights of user and group %d, no right to read it",
			info.Mode().Perm(), p.user.ID)
	}
	return nil
}

// provideDirectory makes the directory of a conduit if it is missing, beneath the data
// directory and through no symbolic link. A task owns a directory that it writes to, or
// that had to be made. A task that only reads must be able to list it.
func (t *Task) provideDirectory(name string, writes bool) error {
	services, user := t.pipeline.services, t.pipeline.user
	directory, made, err := makeBeneath(services.Options.Data, strings.TrimPrefix(name, "/"))
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
	case services.Options.GiveData:
		if err := giveDirectories(directory, *user); err != nil {
			return fmt.Errorf("give directory conduit %s to group %d of pipeline %s: %w", name, user.Group,
				t.pipeline.name, err)
		}
	}
	return t.checkListable(name)
}

// Unlistable is a directory conduit that a task will not be able to list when it starts.
type Unlistable struct{ Directory, Warning string }

// ExamineDirectories finds the directories that tasks will not be able to list. It skips
// those that the monitor will make, or give to the tasks.
func (p *Pipeline) ExamineDirectories() (found []Unlistable) {
	for _, name := range p.order {
		task := p.tasks[name]
		for _, directory := range task.listed() {
			err := task.checkListable(directory)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				found = append(found, Unlistable{directory, fmt.Sprintf("%s/%v", p.name, err)})
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
func (t *Task) listed() (directories []string) {
	if t.pipeline.user == nil || t.pipeline.services.Options.GiveData || len(t.spec.Parameters) > 0 {
		return nil
	}
	for _, place := range t.placements {
		if place.directory != "" && place.directory != viewPrefix && !t.pipeline.writesTo(place.directory) {
			directories = append(directories, place.directory)
		}
	}
	return directories
}

func (p *Pipeline) writesTo(directory string) bool {
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
func (t *Task) checkListable(name string) error {
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
			return fmt.Errorf("%s cannot list %s (mode %04o of user %d and group %d; the task has the rights of user and group %d); %s", t.name,
				strings.TrimPrefix(path, services.Options.Data), info.Mode().Perm(), stat.Uid, stat.Gid, user.ID,
				Remedy(root, user))
		}
		return nil
	})
}

// Unlistable returns what ExamineDirectories has found last.
func (p *Pipeline) Unlistable() []Unlistable {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unlistable
}
