// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Readers describes who reads documents. Sets are those of rules: "syse/documents".
type Readers struct {
	// CanRead reports whether they can read a file of this owner, group and mode.
	CanRead func(set string, owner, group, mode uint32) bool
	// Group returns the group of a set's readers. Documents that they cannot read are
	// given to it. If it is nil, documents stay as they are.
	Group func(set string) uint32
}

// Unreadable are documents of a set that its readers cannot read.
type Unreadable struct {
	Set   string
	Total uint64
	First UnreadableDocument // by name, of those that were seen
}

// UnreadableDocument is one document that the readers of its set cannot read.
type UnreadableDocument struct {
	Name               string
	Owner, Group, Mode uint32
}

// ReadBy makes the view check every document that it links from now on. Verify checks
// all.
func (v *View) ReadBy(readers Readers) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.readers = readers
}

// Unreadable lists the known documents that their readers cannot read, by set.
func (v *View) Unreadable() []Unreadable {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]Unreadable, 0, len(v.unreadable))
	for _, one := range v.unreadable {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Unreadable) int { return cmp.Compare(a.Set, b.Set) })
	return list
}

// judge records a document that its readers cannot read.
func (v *View) judge(set, name string, info *unix.Stat_t) {
	if v.readers.CanRead == nil || v.readers.CanRead(set, info.Uid, info.Gid, uint32(info.Mode)) {
		return
	}
	one := v.unreadable[set]
	if one == nil {
		one = &Unreadable{Set: set}
		v.unreadable[set] = one
	}
	one.Total++
	if one.First.Name == "" || strings.Compare(name, one.First.Name) < 0 {
		one.First = UnreadableDocument{name, info.Uid, info.Gid, uint32(info.Mode) & 0o7777}
	}
}

// give lets the group of a set's readers read a document that they cannot read, and makes
// later files of the same directory belong to the group too. It skips a file with more
// names than the view and the data directory give it: the file may belong to somebody who
// only has a name for it here.
func (v *View) give(set string, parent int, base string, names uint64) error {
	if v.readers.Group == nil {
		return nil
	}
	file, err := unix.Openat(parent, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(file)
	var info unix.Stat_t
	if err := unix.Fstat(file, &info); err != nil {
		return err
	}
	isFile := info.Mode&unix.S_IFMT == unix.S_IFREG
	if !isFile || uint64(info.Nlink) > names ||
		v.readers.CanRead(set, info.Uid, info.Gid, uint32(info.Mode)) {
		return nil
	}
	group := int(v.readers.Group(set))
	if err := errors.Join(unix.Fchown(file, -1, group), unix.Fchmod(file, uint32(info.Mode)&0o777|0o040)); err != nil {
		return fmt.Errorf("give document %s to group %d: %w", base, group, err)
	}
	directory, err := unix.Openat(parent, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("give the directory of document %s: %w", base, err)
	}
	defer unix.Close(directory)
	if err := unix.Fstat(directory, &info); err != nil {
		return err
	}
	err = errors.Join(unix.Fchown(directory, -1, group),
		unix.Fchmod(directory, uint32(info.Mode)&0o777|unix.S_ISGID|0o050))
	if err != nil {
		return fmt.Errorf("give the directory of document %s to group %d: %w", base, group, err)
	}
	return nil
}
