// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// View is the directory tree that capability sets consist of: every file of an ingress
// set is hard-linked once, as <class>/<bucket>/<id>, with bucket = id >> 10. An
// instance's capability set is then a set of class directories. Paths of documents are
// resolved beneath the data directory and through no symbolic link.
type View struct {
	catalog *Catalog
	data    *os.File // the data directory
	root    *os.File // the view's
	path    string

	mu         sync.Mutex
	made       map[string]bool // directories that exist
	readers    Readers
	unreadable map[string]*Unreadable // by set

	arrivals arrivals
	scanning sync.Mutex               // before Catalog.writing and mu
	scanned  map[string]unix.Timespec // when the directories for documents changed before they were read, by path

	watch       Watch
	notifier    *notifier // nil: documents are not watched
	notified    sync.WaitGroup
	isUnwatched bool // since the last Verify, some directory could not be watched
}

// viewBucket determines how many conduits share a directory, as a shift.
const viewBucket = 10

// viewMode lets tasks, which are other users, search the view's directories. The
// directory above the view is closed to them: they get descriptors of the directories
// that they may read.
const viewMode = 0o755

// Progress is called with the progress of a long operation; total is 0 if it is not
// known.
type Progress func(done, total uint64)

// AttachView keeps a view of the documents beneath data in the directory path, which it
// makes if it is missing. Both must be on one file system. From now on, every change
// moves links before it is acknowledged. Call Verify next: it makes the missing links.
func (c *Catalog) AttachView(data, path string) (*View, error) {
	if err := os.MkdirAll(path, viewMode); err != nil {
		return nil, fmt.Errorf("make view: %w", err)
	}
	if err := os.Chmod(path, viewMode); err != nil { // independently of the umask
		return nil, fmt.Errorf("open view to tasks: %w", err)
	}
	v := &View{catalog: c, path: path, made: make(map[string]bool), unreadable: make(map[string]*Unreadable),
		arrivals: newArrivals(), scanned: make(map[string]unix.Timespec)}
	var err error
	if v.data, err = openDirectory(data); err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if v.root, err = openDirectory(path); err != nil {
		_ = v.data.Close()
		return nil, fmt.Errorf("open view: %w", err)
	}
	if err := v.sameFileSystem(); err != nil {
		_ = v.Close()
		return nil, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.view = v
	return v, nil
}

// sameFileSystem tries a link instead of comparing device numbers, which are the same for
// bind mounts and differ for subvolumes.
func (v *View) sameFileSystem() error {
	probe, err := os.CreateTemp(v.data.Name(), ".shai-link-")
	if errors.Is(err, fs.ErrPermission) {
		return nil // documents of another user: the first link will show it
	}
	if err != nil {
		return fmt.Errorf("try a link from the data directory: %w", diskFull(err))
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	target := filepath.Join(v.path, filepath.Base(probe.Name()))
	if err := os.Link(probe.Name(), target); err != nil {
		return fmt.Errorf("view %s cannot link files of %s: %w; put both on one file system", v.path, v.data.Name(),
			err)
	}
	return os.Remove(target)
}

// Path returns the view's directory.
func (v *View) Path() string { return v.path }

// ClassDirectory returns the directory of a class's links. It exists once the class has a
// conduit.
func (v *View) ClassDirectory(class uint32) string {
	return filepath.Join(v.path, strconv.FormatUint(uint64(class), 10))
}

// EnsureClassDirectories makes the missing directories of classes: a capability must name
// a directory that exists.
func (v *View) EnsureClassDirectories(classes []uint32) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, class := range classes {
		if err := v.mkdir(strconv.FormatUint(uint64(class), 10)); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the view's directories. The catalog must not change afterwards.
func (v *View) Close() error {
	var err error
	if v.notifier != nil {
		err = v.notifier.close()
		v.notified.Wait()
	}
	return errors.Join(err, v.data.Close(), v.root.Close())
}

func linkPath(class, id uint32) string {
	return fmt.Sprintf("%d/%d/%d", class, id>>viewBucket, id)
}

// viewed reports whether a class' conduits are linked.
func (s *State) viewed(class uint32) bool {
	info := s.Class(class)
	if info.Class == nil {
		return false
	}
	for _, rule := range s.rules.bundle.Rules {
		if rule.Set == info.Set && rule.Ingress {
			return true
		}
	}
	return false
}

// move moves links together with their conduits. It removes a link that cannot be moved:
// the monitor is asked about a missing link, but a link too many is a leak.
func (v *View) move(state *State, moves []Move) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var failures []error
	for _, move := range moves {
		if err := v.moveOne(state, move); err != nil {
			failures = append(failures, fmt.Errorf("conduit %d: %w", move.ID, err))
		}
	}
	return errors.Join(failures...)
}

func (v *View) moveOne(state *State, move Move) error {
	if move.From == 0 {
		if state.viewed(move.To) {
			return v.link(state, move.ID, move.To)
		}
		return nil
	}
	from := linkPath(move.From, move.ID)
	if !state.viewed(move.To) {
		return v.unlink(from)
	}
	err := v.mkdirFor(move.To, move.ID)
	if err == nil {
		err = unix.Renameat(int(v.root.Fd()), from, int(v.root.Fd()), linkPath(move.To, move.ID))
	}
	if errors.Is(err, unix.ENOENT) {
		return v.link(state, move.ID, move.To)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("move link %s: %w", from, diskFull(err)), v.unlink(from))
	}
	return nil
}

func (v *View) unlink(path string) error {
	err := unix.Unlinkat(int(v.root.Fd()), path, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("remove link %s: %w", path, err)
	}
	return nil
}

func (v *View) mkdirFor(class, id uint32) error {
	directory := strconv.FormatUint(uint64(class), 10)
	if err := v.mkdir(directory); err != nil {
		return err
	}
	return v.mkdir(fmt.Sprintf("%s/%d", directory, id>>viewBucket))
}

func (v *View) mkdir(path string) error {
	if v.made[path] {
		return nil
	}
	if err := unix.Mkdirat(int(v.root.Fd()), path, viewMode); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make view directory %s: %w", path, diskFull(err))
	}
	if err := unix.Fchmodat(int(v.root.Fd()), path, viewMode, 0); err != nil { // independently of the umask
		return fmt.Errorf("open view directory %s to tasks: %w", path, err)
	}
	v.made[path] = true
	return nil
}

// link links one document. It is no error if the document does not exist: its conduit may
// be registered before the file exists, and nobody can read a missing file.
func (v *View) link(state *State, id, class uint32) error {
	name, ok := state.catalog.nameOf(id)
	if !ok {
		return fmt.Errorf("conduit %d has no name", id)
	}
	parent, base, err := v.parent(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := v.mkdirFor(class, id); err != nil {
		return err
	}
	return v.linkAt(parent, base, document{name, state.Class(class).Set}, linkPath(class, id))
}

// document is a file to link.
type document struct{ name, set string }

// parent opens the directory of a document, which is watched before: a document that
// changes after it was found is reported.
func (v *View) parent(name string) (descriptor int, base string, err error) {
	v.watchDirectory(filepath.Dir(strings.TrimPrefix(name, "/")))
	return v.open(name)
}

// open opens the directory of a document.
func (v *View) open(name string) (descriptor int, base string, err error) {
	relative := strings.TrimPrefix(name, "/")
	directory := filepath.Dir(relative)
	descriptor, err = openBeneath(int(v.data.Fd()), directory)
	if err != nil {
		return -1, "", fmt.Errorf("open directory of document %s: %w", name, err)
	}
	return descriptor, filepath.Base(relative), nil
}

// Repairs counts what Verify found and repaired.
type Repairs struct {
	Documents uint64 // conduits of the view
	Linked    uint64 // links that were missing
	Removed   uint64 // links that should not have been there, or named another file
	Absent    uint64 // conduits whose document does not exist
	Entries   uint64 // entries of the class table that were wrong
	// Refused counts conduits at whose names there is no document, but something else, and First
	// says what there is at one of them.
	Refused uint64
	First   error
}

// Verify makes the view and the class table agree with the catalog: it removes links that
// give too much first, and then makes missing ones. It can be stopped at any point and
// run again. The catalog does not change in the meantime.
func (v *View) Verify(ctx context.Context, progress Progress) (Repairs, error) {
	v.catalog.writing.Lock()
	defer v.catalog.writing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	state := v.catalog.State()
	var repairs Repairs
	for id := uint32(1); id <= state.Conduits(); id++ {
		if v.catalog.table.Entry(id) != state.ClassOf(id) {
			repairs.Entries++
		}
	}
	if err := v.catalog.table.repair(state.conduits); err != nil {
		return repairs, err
	}
	clear(v.made)
	clear(v.unreadable)
	if v.notifier != nil {
		v.notifier.forget(".")
	}
	v.isUnwatched = false
	sweep := &sweep{view: v, state: state, repairs: &repairs}
	if err := sweep.removeWrong(ctx); err != nil {
		return repairs, fmt.Errorf("verify view: %w", err)
	}
	if err := sweep.linkMissing(ctx, progress); err != nil {
		return repairs, fmt.Errorf("verify view: %w", err)
	}
	return repairs, nil
}
