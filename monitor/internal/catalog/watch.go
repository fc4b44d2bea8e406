// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// ErrUnwatched says that this system does not tell the monitor about documents that change
// behind its back. They are found by [View.Verify] alone.
var ErrUnwatched = errors.New("documents cannot be watched")

// Watch says what happens when documents change behind the monitor's back.
type Watch struct {
	// Written reports whether tasks write documents of a set. Their content may change.
	Written func(set string) bool
	// Withheld is told about each document whose link was removed.
	Withheld func(Withheld)
	// Failed is told, once for each Verify, that some directories cannot be watched.
	Failed func(error)
}

// Withheld is a document that is no longer the one that was catalogued. It has no link in
// the view until it is catalogued again: see [View.Ingest].
type Withheld struct {
	Name   string
	Reason string // "removed", "replaced" or "changed"
}

// changed is the reason for which a document is withheld whose content was written to.
const changed = "changed"

// happening is something that happened in a directory of the data directory.
type happening struct {
	handle    string // of the directory, as the notifier knows it
	name      string // in the directory
	isContent bool   // the content of a file changed, not a name
	isWhole   bool   // a file was moved there, or who has written to it has closed it
	isTree    bool   // the name is that of a directory
	isLost    bool   // happenings were lost: anything may have happened
}

// Watch removes links from now on when their documents are removed, replaced or changed.
// It fails with ErrUnwatched if this system does not report that. It must be called before
// Verify, and once.
func (v *View) Watch(watch Watch) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watch = watch
	notifier, err := newNotifier(int(v.data.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwatched, err)
	}
	v.notifier = notifier
	v.notified.Go(func() { notifier.run(v.happened) })
	return nil
}

// watchDirectory is called with mu held.
func (v *View) watchDirectory(directory string) {
	if v.notifier == nil {
		return
	}
	if err := v.notifier.ensure(path.Clean(directory)); err != nil && !v.isUnwatched {
		v.isUnwatched = true
		v.watch.Failed(fmt.Errorf("%w: %w", ErrUnwatched, err))
	}
}

// happened compares documents with their links, and removes the links that do not agree.
// It waits for a change of the catalog that is in progress, which may move a link.
func (v *View) happened(all []happening) {
	v.catalog.writing.Lock()
	v.mu.Lock()
	state := v.catalog.State()
	var withheld []Withheld
	for _, one := range all {
		withheld = append(withheld, v.compareAfter(state, one)...)
	}
	v.mu.Unlock()
	v.catalog.writing.Unlock()
	for _, one := range withheld {
		v.watch.Withheld(one)
	}
}

func (v *View) compareAfter(state *State, one happening) (withheld []Withheld) {
	directory, known := v.notifier.directory(one.handle)
	if one.isLost {
		directory, one.name, one.isTree = ".", "", true
		v.arrivals.addAll()
	} else if !known {
		return nil
	}
	relative := path.Join(directory, one.name)
	if !one.isTree {
		if id, known := v.catalog.idOf("/" + relative); known {
			withheld = v.compare(withheld, state, id, "/"+relative, one.isContent)
		}
		v.arrive(state, "/"+relative, one.isWhole, withheld)
		return withheld
	}
	v.notifier.forget(relative) // another directory may be in its place
	v.catalog.eachBeneath(path.Join("/", relative), func(id uint32, name string) {
		v.watchDirectory(path.Dir(name)[1:])
		before := len(withheld)
		if withheld = v.compare(withheld, state, id, name, false); len(withheld) > before {
			v.arrivals.add(name)
		}
	})
	v.arrivals.addTree(relative)
	return withheld
}

// settleTime limits how long Settle waits while there is always something new.
const settleTime = time.Second

// Settle returns when what has happened to documents before has been noticed. A file that was
// written and then catalogued would otherwise be withheld because of the write.
func (v *View) Settle() {
	for begun := time.Now(); v.notifier != nil && !v.notifier.isSettled() && time.Since(begun) < settleTime; {
		time.Sleep(time.Millisecond) // the kernel tells nobody that a queue is empty
	}
}

// arrive notes that a file is to be looked at: if it is whole, soon; if it is withheld since its
// content changes, when it is closed, or by the next sweep (truncate(2) does not open it).
func (v *View) arrive(state *State, name string, isWhole bool, withheld []Withheld) {
	switch {
	case isWhole && state.isIngress(name):
		v.arrivals.add(name)
	case len(withheld) > 0 && withheld[0].Reason == changed:
		v.arrivals.addLater(name)
	case len(withheld) > 0:
		v.arrivals.add(name)
	}
}

// eachBeneath calls yield with the conduits beneath a directory.
func (c *Catalog) eachBeneath(directory string, yield func(id uint32, name string)) {
	prefix := strings.TrimSuffix(directory, "/") + "/"
	_ = c.database.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketNames).Cursor()
		key, value := cursor.Seek([]byte(prefix))
		for ; bytes.HasPrefix(key, []byte(prefix)); key, value = cursor.Next() {
			yield(binary.BigEndian.Uint32(value), string(key))
		}
		return nil
	})
}

// compare removes the link of a document that is not the linked file any more.
func (v *View) compare(withheld []Withheld, state *State, id uint32, name string, isContent bool) []Withheld {
	class := state.ClassOf(id)
	if class == 0 || !state.viewed(class) {
		return withheld
	}
	link := linkPath(class, id)
	var linked unix.Stat_t
	if err := unix.Fstatat(int(v.root.Fd()), link, &linked, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return withheld // there is none
	}
	reason := ""
	switch there, err := v.statDocument(name); {
	case err != nil:
		reason = "removed"
	case there.Dev != linked.Dev || there.Ino != linked.Ino:
		reason = "replaced"
	case isContent && !v.isWritten(state.Class(class).Set):
		reason = changed
	default:
		return withheld
	}
	if err := v.unlink(link); err != nil {
		reason += "; " + err.Error()
	}
	return append(withheld, Withheld{name, reason})
}

func (v *View) statDocument(name string) (stat unix.Stat_t, err error) {
	parent, base, err := v.open(name)
	if err != nil {
		return stat, err
	}
	defer unix.Close(parent)
	return stat, unix.Fstatat(parent, base, &stat, unix.AT_SYMLINK_NOFOLLOW)
}

func (v *View) isWritten(set string) bool { return v.watch.Written != nil && v.watch.Written(set) }

// IsCatalogued reports whether a file that has the name of a document is the document. It
// is, if the view links it; or if the view links no documents with such names, or tasks write
// them.
func (v *View) IsCatalogued(name string, device, inode uint64) bool {
	state := v.catalog.State()
	id, known := v.catalog.idOf(name)
	class := state.ClassOf(id)
	if rule, _, covered := state.rules.ruleFor(name); !known && covered && rule.Ingress {
		return v.isWritten(rule.Set) // it may be somebody's file that was only given the name
	}
	if !known || class == 0 || !state.viewed(class) || v.isWritten(state.Class(class).Set) {
		return true
	}
	var linked unix.Stat_t
	err := unix.Fstatat(int(v.root.Fd()), linkPath(class, id), &linked, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && linked.Dev == device && linked.Ino == inode
}
