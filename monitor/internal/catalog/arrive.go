// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// Sweeps find what is not reported: files that are made with O_TMPFILE or mknod(2), names that
// link(2) makes, and everything where documents cannot be watched.
const (
	sweepEvery = time.Minute
	// sweepShare is the number of times that a sweep's duration passes before the next one.
	sweepShare = 50
	// treeShare is the same for what an untrusted writer can make the monitor do: to read a
	// tree of directories that he renames again and again.
	treeShare = 2
)

// Ingester is called with names of files to look at, with [View.Ingest]: at most [MaxIngest].
type Ingester func(names []string) error

// Follow calls ingest about files that are new, changed or gone, until ctx ends. Before its first
// sweep it has seen nothing: it begins with one. What ingest fails for comes again at the next
// sweep.
func (v *View) Follow(ctx context.Context, ingest Ingester, failed func(error)) {
	v.arrivals.addSweep()
	sweep := time.NewTimer(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.arrivals.wake:
		case <-sweep.C:
			v.arrivals.addSweep()
		}
		what := v.arrivals.take()
		begun := time.Now()
		if err := v.followArrived(ctx, what, ingest); err != nil && ctx.Err() == nil {
			failed(err)
		}
		took := time.Since(begun)
		if what.sweep || what.isAll {
			sweep.Reset(max(sweepEvery, sweepShare*took))
		}
		if len(what.trees) > 0 {
			rest(ctx, treeShare*took)
		}
	}
}

// Sweep makes Follow look for what is not reported, now.
func (v *View) Sweep() { v.arrivals.addSweep() }

func rest(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

func (v *View) followArrived(ctx context.Context, what arrived, ingest Ingester) error {
	names := slices.Collect(maps.Keys(what.names))
	if what.sweep || what.isAll {
		names = append(names, v.arrivals.takeLater()...)
	}
	err := inBatches(names, ingest)
	for _, directory := range sortedKeys(what.trees) {
		err = errors.Join(err, v.ScanTree(ctx, directory, ingest))
	}
	if what.sweep || what.isAll {
		err = errors.Join(err, v.sweepDirectories(ctx, what.isAll, ingest))
	}
	return err
}

func inBatches(names []string, ingest Ingester) error {
	slices.Sort(names)
	var failures []error
	for batch := range slices.Chunk(names, MaxIngest) {
		failures = append(failures, ingest(batch))
	}
	return errors.Join(failures...)
}

// ScanTree calls ingest about all files beneath a directory for documents, which is given
// relative to the data directory, and about registered ones that are not there any more. It does
// nothing with a directory that can have no documents.
func (v *View) ScanTree(ctx context.Context, directory string, ingest Ingester) error {
	v.scanning.Lock()
	defer v.scanning.Unlock()
	var start []string
	for _, root := range ingressRoots(v.catalog.State()) {
		switch {
		case isWithin(root, directory):
			start = append(start, path.Clean(directory))
		case isWithin(directory, root):
			start = append(start, root)
		}
	}
	var failures []error
	for len(start) > 0 && ctx.Err() == nil {
		next := start[len(start)-1]
		start = start[:len(start)-1]
		beneath, err := v.scanOne(ctx, next, lookAtAll, ingest)
		failures = append(failures, err)
		start = append(start, beneath...)
	}
	return errors.Join(append(failures, ctx.Err())...)
}

// isWithin reports whether a relative path is a directory's or beneath it. "" and "." are the data
// directory.
func isWithin(directory, relative string) bool {
	directory, relative = path.Clean(directory), path.Clean(relative)
	return directory == "." || relative == directory || strings.HasPrefix(relative, directory+"/")
}

// sweepDirectories reads the directories that have changed since they were read, and finds the new
// ones in them.
func (v *View) sweepDirectories(ctx context.Context, isAll bool, ingest Ingester) error {
	v.scanning.Lock()
	defer v.scanning.Unlock()
	pending := slices.Collect(maps.Keys(v.scanned))
	for _, root := range ingressRoots(v.catalog.State()) {
		if _, known := v.scanned[path.Clean(root)]; !known {
			pending = append(pending, path.Clean(root))
		}
	}
	seen := map[string]bool{}
	var failures []error
	for len(pending) > 0 && ctx.Err() == nil {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[next] {
			continue
		}
		seen[next] = true
		how := lookAtChanged
		if isAll {
			how = lookAtAll
		}
		beneath, err := v.scanOne(ctx, next, how, ingest)
		failures = append(failures, err)
		pending = append(pending, beneath...)
	}
	return errors.Join(append(failures, ctx.Err())...)
}

// looking says which files of a directory are looked at.
type looking int

const (
	lookAtAll looking = iota
	// lookAtChanged looks at the files of directories that have changed. Of one that is read for
	// the first time, it looks at files that are not registered: Verify has compared the others.
	lookAtChanged
)

// settled is the age of a change of a directory from which on another one has another time, on
// file systems that keep times in seconds as on others.
const settled = 2 * time.Second

// scanOne reads one directory and returns those in it. It is watched first: what comes into it
// meanwhile is reported.
func (v *View) scanOne(ctx context.Context, directory string, how looking, ingest Ingester) ([]string, error) {
	v.mu.Lock()
	v.watchDirectory(directory)
	v.mu.Unlock()
	found, err := v.readDirectory(directory)
	if err != nil && !isAbsent(err) {
		return nil, fmt.Errorf("read directory of documents %s: %w", directory, err)
	}
	if err != nil {
		v.mu.Lock()
		if v.notifier != nil {
			v.notifier.drop(directory)
		}
		v.mu.Unlock()
		delete(v.scanned, directory)
		return nil, inBatches(v.namesIn(directory, true), ingest) // nothing is there
	}
	before, isKnown := v.scanned[directory]
	if how == lookAtChanged && isKnown && before == found.changed {
		return nil, nil
	}
	v.scanned[directory] = found.changed
	if time.Since(time.Unix(found.changed.Unix())) < settled {
		v.scanned[directory] = unix.Timespec{}
	}
	names := found.names
	registered := v.namesIn(directory, false)
	if how == lookAtChanged && !isKnown {
		names = difference(found.names, registered)
	}
	return found.directories, inBatches(append(names, difference(registered, found.names)...), ingest)
}

// difference returns the texts of one list that are not in another one.
func difference(list, without []string) []string {
	known := make(map[string]bool, len(without))
	for _, text := range without {
		known[text] = true
	}
	var rest []string
	for _, text := range list {
		if !known[text] {
			rest = append(rest, text)
		}
	}
	return rest
}

// directoryContent is what is in a directory.
type directoryContent struct {
	changed     unix.Timespec
	names       []string // of files, as conduits have them
	directories []string // relative to the data directory
}

func (v *View) readDirectory(directory string) (found directoryContent, err error) {
	opened, err := openBeneath(int(v.data.Fd()), path.Clean(directory))
	if err != nil {
		return found, err
	}
	defer unix.Close(opened)
	var stat unix.Stat_t
	if err := unix.Fstat(opened, &stat); err != nil {
		return found, err
	}
	found.changed = stat.Ctim
	entries, err := readEntries(opened)
	if err != nil {
		return found, err
	}
	for _, entry := range entries {
		relative := path.Join(directory, entry.Name())
		if checkName("/"+relative) != nil {
			continue // such a file has no policy, so nobody has access
		}
		switch {
		case entry.IsDir():
			found.directories = append(found.directories, relative)
		case entry.Type().IsRegular():
			found.names = append(found.names, "/"+relative)
		}
	}
	return found, nil
}

// namesIn lists the registered names in a directory, with those in directories beneath it if
// isDeep.
func (v *View) namesIn(directory string, isDeep bool) (names []string) {
	prefix := []byte(strings.TrimSuffix(path.Join("/", directory), "/") + "/")
	_ = v.catalog.database.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketNames).Cursor()
		key, _ := cursor.Seek(prefix)
		for bytes.HasPrefix(key, prefix) {
			if slash := bytes.IndexByte(key[len(prefix):], '/'); slash >= 0 && !isDeep {
				key, _ = cursor.Seek(append(slices.Clone(key[:len(prefix)+slash]), '/'+1)) // past the directory
				continue
			}
			names = append(names, string(key))
			key, _ = cursor.Next()
		}
		return nil
	})
	return names
}

// readEntries lists what is in an open directory.
func readEntries(directory int) ([]fs.DirEntry, error) {
	opened, err := unix.Openat(directory, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(opened), ".")
	defer file.Close()
	return file.ReadDir(-1)
}
