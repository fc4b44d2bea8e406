// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

var errGone = errors.New("the process has ended")

// keepGiven describes what the task is given, to know it again in a process.
func (q *requests) keepGiven(requests *os.File) error {
	q.given, q.places = map[object]int{}, map[int]object{}
	files := map[int]*os.File{wire.FDRequests: requests, standardOutput: q.spec.Stdout, standardError: q.spec.Stderr}
	maps.Copy(files, q.spec.Descriptors)
	for number, file := range files {
		if file == nil {
			continue
		}
		what, err := objectOf(int(file.Fd()))
		if err != nil {
			return fmt.Errorf("describe descriptor %d: %w", number, err)
		}
		q.given[what], q.places[number] = number, what
	}
	return nil
}

// register passes on a registration of a task that may raise its taint. No other request of
// the task is answered meanwhile: what it brings would not be seen.
func (r *request) register(record []byte) error {
	if r.spec.Raising == nil {
		return unix.EOPNOTSUPP
	}
	s := &stopped{request: r, process: traced{pid: r.task.pid}}
	defer func() { s.process.resume(r.task) }()
	if err := r.spec.Raising.Receive(record, s); err != nil {
		return unix.EPIPE
	}
	return nil
}

// stopped is the task's process while it registers. It runs only while something is placed.
type stopped struct {
	request *request
	process traced
	holds   held
}

// held is what a process has open.
type held struct {
	descriptors map[int]openDescriptor
	mappings    []mapping
}

// Writable implements [Stopped].
func (s *stopped) Writable() ([]Handle, error) {
	err := s.examine()
	if err == nil && s.holds.hasNameless() {
		// The kernel knows names that were looked up, but not of a file that was just made.
		s.lookUpNames()
		err = s.list()
	}
	if err != nil {
		return nil, err
	}
	return s.handles(), nil
}

// examine stops the process and lists what it has open.
func (s *stopped) examine() error {
	r := s.request
	if r.process != r.task.pid {
		return errProcesses
	}
	if !s.process.stopped {
		if err := s.process.stop(r.task); err != nil {
			return err
		}
	}
	if err := s.process.alone(r.task.keeper); err != nil {
		return err
	}
	return s.list()
}

// list lists what the stopped process has open, but for the socket of the request, in which
// nothing may be on its way.
func (s *stopped) list() (err error) {
	ours, err := objectOf(s.request.reply)
	if _, isGiven := s.request.given[ours]; isGiven {
		return errRefused // or it would not be seen where else the task has it
	}
	if err == nil {
		s.holds.descriptors, err = descriptorsOf(s.process.pid)
	}
	if err == nil {
		s.holds.mappings, err = mappingsOf(s.process.pid)
	}
	if err != nil {
		return err
	}
	for number, d := range s.holds.descriptors {
		if !d.isEndOf(ours) {
			continue
		}
		if d.waiting != 0 {
			return Unexamined("something waits in the socket with which the task registers")
		}
		delete(s.holds.descriptors, number)
	}
	return nil
}

func (h held) hasNameless() bool {
	for _, d := range h.descriptors {
		if d.kind == kindFile && d.writes() && d.path == "" {
			return true
		}
	}
	return slices.ContainsFunc(h.mappings, func(m mapping) bool { return m.kind == kindFile && m.path == "" })
}

// lookUpNames looks up all names in the directories that the task may write natively. Of what
// the monitor has made, it has looked up the name.
func (s *stopped) lookUpNames() {
	for _, directory := range s.request.spec.Perimeter {
		if directory.Rights&plan.Write == 0 {
			continue
		}
		// A name that cannot be looked up stays unknown, and the file without a name.
		_ = filepath.WalkDir(directory.Path, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil {
				_, _ = entry.Info()
			}
			return nil
		})
	}
}

// handles selects what could be written to.
func (s *stopped) handles() (list []Handle) {
	for _, number := range slices.Sorted(maps.Keys(s.holds.descriptors)) {
		d := s.holds.descriptors[number]
		given, isGiven := s.request.given[d.object]
		switch {
		case d.kind == kindQueue: // bound to the process
		case d.kind == kindFile || d.kind == kindMemory:
			if path := d.described(d.path); d.writes() && !plan.IsHarmless(path) {
				list = append(list, Handle{Number: number, Path: path})
			}
		case !isGiven:
			list = append(list, Handle{Number: number, Path: d.described("")})
		case given != number && given >= wire.FDPipe:
			list = append(list, Handle{Number: number, Path: d.described(""), Given: given})
		}
	}
	for _, m := range s.holds.mappings {
		if s.request.isGivenFile(m.object) {
			continue // open for reading
		}
		list = append(list, Handle{Number: -1, Path: m.described(m.path)})
	}
	return list
}

// isGivenFile reports whether a file is one that the task was given: the class table.
func (r *request) isGivenFile(file object) bool {
	for given := range r.given {
		if given.kind == kindFile && file.kind == kindFile && given.this == file.this && given.other == file.other {
			return true
		}
	}
	return false
}

// Place implements [Stopped]. The process does it, while it runs; it is then stopped and
// examined again, and must hold what it held, but for what was to be placed.
func (s *stopped) Place(files map[int]*os.File) error {
	if !s.process.stopped {
		return errGone
	}
	expected := maps.Clone(s.holds.descriptors)
	mapped := s.holds.mappings
	for number, file := range files {
		what, err := objectOf(int(file.Fd()))
		if err != nil {
			return err
		}
		expected[number] = openDescriptor{number: number, object: what}
		if err := s.request.gives(number, file, what); err != nil {
			return err
		}
	}
	s.process.resume(s.request.task)
	if err := s.request.haveThemPlaced(files); err != nil {
		return err
	}
	if err := s.examine(); err != nil {
		return err
	}
	if !maps.EqualFunc(expected, s.holds.descriptors, sameObject) || !slices.Equal(mapped, s.holds.mappings) {
		return errors.New("the task has opened or closed something else meanwhile")
	}
	return nil
}

func sameObject(a, b openDescriptor) bool { return a.object == b.object }

// gives takes note of what the task gets.
func (r *request) gives(number int, file *os.File, what object) error {
	if what.kind == kindPipe || what.kind == kindSocket {
		r.given[what] = number
	}
	if !plan.IsChecked(number) {
		return nil
	}
	if former := r.writable[number]; former != nil {
		former.Close()
		delete(r.writable, number)
	}
	if what.kind != kindSocket {
		return nil // closed
	}
	duplicate, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r.writable[number] = os.NewFile(uintptr(duplicate), file.Name())
	return nil
}
