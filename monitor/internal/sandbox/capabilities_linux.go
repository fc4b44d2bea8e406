// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"container/list"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// documentAttributes are those of a mount that a session reads documents beneath: nothing
// is written or executed, no symbolic link is followed, and reading leaves no trace that
// another session could see.
const documentAttributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV |
	unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NOATIME

// mountsAvailable reports whether the kernel has detached mounts, and this process the
// privileges to make them.
var mountsAvailable = sync.OnceValue(func() bool {
	mount, err := mountOf("/", documentAttributes)
	if err != nil {
		return false
	}
	unix.Close(mount)
	return true
})

// mountsMax returns how many mounts are kept: half of what the kernel allows (a detached
// mount has a mount namespace of its own), and a quarter of this process's open files.
func mountsMax() int {
	limit := 1 << 16
	if text, err := os.ReadFile("/proc/sys/user/max_mnt_namespaces"); err == nil {
		if number, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			limit = min(limit, number/2)
		}
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		limit = int(min(uint64(limit), files.Cur/4))
	}
	return max(limit, wire.DirectoriesMax)
}

// mounts are detached mounts of directories of documents. A descriptor of one is a
// capability: ".." ends at the directory, and nothing can be changed beneath it. The
// mounts that were not used for the longest time are given up when there are too many. Safe
// for concurrent use.
type mounts struct {
	max int

	mutex  sync.Mutex
	byPath map[string]*mount
	unused list.List // of *mount; the first was used last
}

// mount is one of them. It is in the list while it has no users.
type mount struct {
	path    string
	file    *os.File
	users   int
	element *list.Element
}

func newMounts(limit int) *mounts { return &mounts{max: limit, byPath: map[string]*mount{}} }

// acquire returns mounts of directories, in their order. The caller calls release.
func (m *mounts) acquire(paths []string) (files []*os.File, release func(), err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var held []*mount
	release = func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.release(held)
	}
	for _, path := range paths {
		one, err := m.use(path)
		if err != nil {
			m.release(held)
			return nil, nil, err
		}
		held, files = append(held, one), append(files, one.file)
	}
	return files, release, nil
}

// use finds or makes a mount and gives it one user more.
func (m *mounts) use(path string) (*mount, error) {
	one := m.byPath[path]
	if one == nil {
		descriptor, err := mountOf(path, documentAttributes)
		if err != nil {
			return nil, err
		}
		one = &mount{path: path, file: os.NewFile(uintptr(descriptor), path)}
		m.byPath[path] = one
	}
	if one.element != nil {
		m.unused.Remove(one.element)
		one.element = nil
	}
	one.users++
	return one, nil
}

func (m *mounts) release(held []*mount) {
	for _, one := range held {
		if one.users--; one.users == 0 {
			one.element = m.unused.PushFront(one)
		}
	}
	for len(m.byPath) > m.max && m.unused.Len() > 0 {
		oldest := m.unused.Remove(m.unused.Back()).(*mount)
		delete(m.byPath, oldest.path)
		oldest.file.Close()
	}
}

// nativeMounts are the directories of one instance. Without mounts, its sessions open
// nothing natively.
type nativeMounts struct {
	mounts      *mounts
	directories []string
}

func prepareMounts(from *mounts, directories []string) (Native, error) {
	for _, directory := range directories {
		if info, err := os.Lstat(directory); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("prepare directory %s: not a directory (%w)", directory, err)
		}
	}
	if !mountsAvailable() {
		directories = nil
	}
	return nativeMounts{from, directories[:min(len(directories), wire.DirectoriesMax)]}, nil
}

// Grant implements [Native].
func (n nativeMounts) Grant() (Grant, error) {
	files, release, err := n.mounts.acquire(n.directories)
	if err != nil {
		return Grant{}, fmt.Errorf("grant directories: %w", err)
	}
	return Grant{Directories: files, Release: release}, nil
}

// Close implements [Native].
func (n nativeMounts) Close() {}
