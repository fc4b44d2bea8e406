// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// guardedPlaces returns all places that no task may have in its runtime, because nobody
// decides on what a task reads there. stores are the sockets of key-value stores.
func (m *Monitor) guardedPlaces(stores []string) ([]runtimeroot.Place, error) {
	places := []runtimeroot.Place{
		{Path: m.options.Data, What: "the data directory"},
		{Path: m.options.State, What: "the monitor's state directory"},
		{Path: m.options.Socket, What: "the monitor's socket"},
		{Path: m.options.Key, What: "the monitor's private key"},
	}
	if m.options.Secrets != "" {
		// The key-value store keeps its own files beside its secrets.
		places = append(places, runtimeroot.Place{Path: filepath.Dir(m.options.Secrets),
			What: "the directory of the key-value store's secrets"})
	}
	for _, socket := range stores {
		places = append(places, runtimeroot.Place{Path: socket, What: "the socket of a key-value store"})
	}
	others, err := m.otherDataDirectories()
	if err != nil {
		return nil, err
	}
	for _, directory := range others {
		places = append(places, runtimeroot.Place{Path: directory, What: "the data directory of another monitor"})
	}
	return slices.DeleteFunc(places, func(place runtimeroot.Place) bool { return place.Path == "" }), nil
}

// otherDataDirectories returns the data directories of the other monitors of this
// machine, as far as the registry of users lists them. A monitor without the superuser's
// rights does not use the registry.
func (m *Monitor) otherDataDirectories() ([]string, error) {
	if !isSuperuser() {
		return nil, nil
	}
	directories, err := m.options.TaskIDs.DataDirectories()
	return slices.DeleteFunc(directories, func(one string) bool { return one == m.options.Data }), err
}

func socketOf(spec manifest.PipelineSpec) string {
	if spec.KeyValue == nil {
		return ""
	}
	return spec.KeyValue.Socket
}

// checkRuntimes refuses pipelines with a task whose runtime reaches a guarded place.
func (m *Monitor) checkRuntimes(resolved map[string]*manifest.Resolved) error {
	var stores []string
	for _, one := range resolved {
		stores = append(stores, socketOf(one.Pipeline.Spec))
	}
	places, err := m.guardedPlaces(stores)
	if err != nil {
		return err
	}
	for name, one := range resolved {
		for _, task := range one.Tasks {
			if _, err := runtimeroot.Check(task.Spec.Runtime, places); err != nil {
				return fmt.Errorf("pipeline %s: task %s: %w", name, task.Metadata.Name, err)
			}
		}
	}
	return nil
}

// guardedNow returns the places that the pipelines in force may not reach.
func (m *Monitor) guardedNow() ([]runtimeroot.Place, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var stores []string
	for _, p := range m.pipelines {
		stores = append(stores, socketOf(p.spec))
	}
	return m.guardedPlaces(stores)
}

// runtime returns the real paths of the task's runtime. They are checked again each time
// the task starts: a path may lead elsewhere than when the bundle was applied.
func (t *runningTask) runtime() ([]string, error) {
	services := t.pipeline.services
	guarded, err := services.guarded()
	if err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	roots, err := runtimeroot.Check(t.spec.Runtime, guarded)
	if err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	roots = append(roots, services.options.Library)
	if err := errors.Join(t.checkReachable(roots), t.checkProgram(roots)); err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	return roots, nil
}

// checkProgram refuses a program, or an interpreter of it, that is not in the task's
// runtime or is also a document. The kernel reads these files for the task, and nobody
// decides on that.
func (t *runningTask) checkProgram(roots []string) error {
	if t.pipeline.currentMode() == wire.ModeBaseline {
		return nil
	}
	files, err := sandbox.Executed(t.spec.Command[0], roots)
	if err != nil {
		return err
	}
	for _, file := range files {
		var stat unix.Stat_t
		if err := unix.Stat(file.Path, &stat); err != nil {
			return fmt.Errorf("examine %s: %w", file.Path, err)
		}
		if stat.Nlink < 2 {
			continue
		}
		isData, err := t.pipeline.services.shared.hold(sandbox.SharedFile{Device: stat.Dev, Inode: stat.Ino,
			Changed: time.Unix(stat.Ctim.Unix())})
		switch {
		case err != nil:
			return fmt.Errorf("cannot check whether %s is a document by another name: %w", file.Path, err)
		case isData:
			return fmt.Errorf("%s, which it executes, is also a document (a hard link); remove one of the names", file.Path)
		}
	}
	return nil
}

// checkReachable refuses a runtime in a directory that the task's user may not search. It
// allows a runtime that the administrator has named with --define or --library: the
// monitor opens it for the task. In mode baseline the task opens everything itself.
func (t *runningTask) checkReachable(roots []string) error {
	user, mode := t.pipeline.user, t.pipeline.currentMode()
	for _, root := range roots {
		blocked, err := closedTo(user, root)
		if err != nil {
			return fmt.Errorf("find runtime %s: %w", root, err)
		}
		if blocked == "" || mode != wire.ModeBaseline && t.pipeline.services.isNamed(root) {
			continue
		}
		return fmt.Errorf("its user %d cannot reach runtime %s: %s is closed to other users; open it (chmod o+x %s), "+
			"or put the runtime where every user can search", user.ID, root, blocked, blocked)
	}
	return nil
}

// closedTo returns the first directory on the way to a path that a user may not search,
// "" if there is none.
func closedTo(user *plan.User, path string) (string, error) {
	if user == nil {
		return "", nil
	}
	blocked := ""
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return "", err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.IsDir() && !user.Permits(stat.Uid, stat.Gid, uint32(info.Mode().Perm()), maySearch) {
			blocked = path
		}
		if path == "/" {
			return blocked, nil
		}
		path = filepath.Dir(path)
	}
}

// isNamed reports whether the administrator has named a path, or a directory above it.
func (s *services) isNamed(path string) bool {
	if isBeneath(s.options.Library, path) {
		return true
	}
	for _, value := range s.options.Define {
		real, err := filepath.EvalSymlinks(value)
		if filepath.IsAbs(value) && err == nil && isBeneath(real, path) {
			return true
		}
	}
	return false
}
