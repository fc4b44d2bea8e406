// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// sweep is one pass of [View.Verify].
type sweep struct {
	view    *View
	state   *State
	repairs *Repairs
	linked  map[uint32]uint64 // conduits with a correct link, with inode

	directory string // the document directory that is open
	parent    int
}

// removeWrong walks through the view and removes everything that does not belong there.
func (s *sweep) removeWrong(ctx context.Context) error {
	s.linked = make(map[uint32]uint64)
	classes, err := os.ReadDir(s.view.path)
	if err != nil {
		return err
	}
	for _, class := range classes {
		number, valid := parseNumber(class.Name())
		if !valid || !class.IsDir() {
			if err := s.removeAll(class.Name()); err != nil {
				return err
			}
			continue
		}
		buckets, err := os.ReadDir(filepath.Join(s.view.path, class.Name()))
		if err != nil {
			return err
		}
		for _, bucket := range buckets {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.sweepBucket(number, class.Name()+"/"+bucket.Name(), bucket); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sweep) sweepBucket(class uint32, path string, bucket os.DirEntry) error {
	number, valid := parseNumber(bucket.Name())
	if !valid || !bucket.IsDir() {
		return s.removeAll(path)
	}
	links, err := os.ReadDir(filepath.Join(s.view.path, path))
	if err != nil {
		return err
	}
	for _, link := range links {
		id, valid := parseNumber(link.Name())
		if !valid || id>>viewBucket != number || s.state.ClassOf(id) != class || !s.state.viewed(class) ||
			!link.Type().IsRegular() {
			if err := s.removeAll(path + "/" + link.Name()); err != nil {
				return err
			}
			continue
		}
		var info unix.Stat_t
		if err := unix.Fstatat(int(s.view.root.Fd()), path+"/"+link.Name(), &info,
			unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("stat %s/%s: %w", path, link.Name(), err)
		}
		s.linked[id] = info.Ino
	}
	return nil
}

func (s *sweep) removeAll(path string) error {
	s.repairs.Removed++
	return os.RemoveAll(filepath.Join(s.view.path, path))
}

// parseNumber accepts only the form in which the view writes a number.
func parseNumber(text string) (uint32, bool) {
	number, err := strconv.ParseUint(text, 10, 32)
	return uint32(number), err == nil && strconv.FormatUint(number, 10) == text
}

// linkMissing links every document that has no link, or whose link is to a file that has
// been replaced.
func (s *sweep) linkMissing(ctx context.Context, progress Progress) error {
	s.parent = -1
	defer func() { s.open("", -1) }()
	last := s.state.Conduits()
	for id := uint32(1); id <= last; id++ {
		if id%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(uint64(id), uint64(last))
			}
		}
		if class := s.state.ClassOf(id); class != 0 && s.state.viewed(class) {
			if err := s.linkOne(id, class); err != nil {
				return err
			}
		}
	}
	if progress != nil {
		progress(uint64(last), uint64(last))
	}
	return nil
}

func (s *sweep) linkOne(id, class uint32) error {
	s.repairs.Documents++
	name, ok := s.view.catalog.nameOf(id)
	if !ok {
		return fmt.Errorf("conduit %d has no name", id)
	}
	inode, linked := s.linked[id]
	base, there, err := s.locate(name)
	if err != nil {
		return err
	}
	var info unix.Stat_t
	if there {
		err := unix.Fstatat(s.parent, base, &info, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("stat document %s: %w", name, err)
		}
		there = err == nil
	}
	switch {
	case linked && there && info.Ino == inode:
		return s.judgeLinked(base, document{name, s.state.Class(class).Set})
	case linked:
		s.repairs.Removed++
		if err := s.view.unlink(linkPath(class, id)); err != nil {
			return err
		}
	}
	if !there {
		s.repairs.Absent++
		return nil
	}
	if err := s.view.mkdirFor(class, id); err != nil {
		return err
	}
	err = s.view.linkAt(s.parent, base, document{name, s.state.Class(class).Set}, linkPath(class, id))
	if errors.Is(err, errNoDocument) { // who can write there must not keep the monitor from starting
		if s.repairs.Refused++; s.repairs.First == nil {
			s.repairs.First = err
		}
		return nil
	}
	s.repairs.Linked++
	return err
}

// judgeLinked checks a document that is linked already: its mode may have changed.
func (s *sweep) judgeLinked(base string, what document) error {
	if s.view.readers.CanRead == nil {
		return nil
	}
	if err := s.view.give(what.set, s.parent, base, 2); err != nil {
		return err
	}
	var info unix.Stat_t
	if err := unix.Fstatat(s.parent, base, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("stat document %s: %w", what.name, err)
	}
	s.view.judge(what.set, what.name, &info)
	return nil
}

// locate opens the document's directory, unless it is the open one.
func (s *sweep) locate(name string) (base string, there bool, err error) {
	directory := filepath.Dir(name)
	if s.parent >= 0 && directory == s.directory {
		return filepath.Base(name), true, nil
	}
	descriptor, base, err := s.view.parent(name)
	if isAbsent(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	s.open(directory, descriptor)
	return base, true, nil
}

func (s *sweep) open(directory string, descriptor int) {
	if s.parent >= 0 {
		_ = unix.Close(s.parent)
	}
	s.directory, s.parent = directory, descriptor
}
