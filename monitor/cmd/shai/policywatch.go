// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settling is how long files have to rest before the tests run again: editors write a file
// in several steps.
const settling = 100 * time.Millisecond

// watchTests runs the tests whenever one of their files changes, until ctx ends. Mistakes and
// failures are printed, and do not end it.
func (p *program) watchTests(ctx context.Context, flags testFlags, paths []string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	defer watcher.Close()
	if err := watch(watcher, paths); err != nil { // first: what changes from now on counts
		return err
	}
	for {
		result, err := p.testPolicies(flags, paths)
		if err != nil && !errors.Is(err, errSaid) {
			fmt.Fprintf(p.stderr, "shai: %s\n", printableLines(err.Error()))
		}
		if err := watch(watcher, result.reads); err != nil {
			return err
		}
		fmt.Fprintln(p.stderr, "waiting for changes; Ctrl-C ends it")
		if err := changed(ctx, watcher); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// watch adds the directories of files: an editor that saves a file replaces it.
func watch(watcher *fsnotify.Watcher, paths []string) error {
	for _, path := range paths {
		about, err := os.Stat(path)
		if err != nil || !about.IsDir() {
			path = filepath.Dir(path)
		}
		if err := watcher.Add(path); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
	return nil
}

// changed waits until a file has changed, and then until none changes any more. It returns
// nil also when ctx ends.
func changed(ctx context.Context, watcher *fsnotify.Watcher) error {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			return fmt.Errorf("watch files: %w", err)
		case event := <-watcher.Events:
			if !event.Has(fsnotify.Chmod) {
				settled = time.After(settling)
			}
		case <-settled:
			return nil
		}
	}
}
