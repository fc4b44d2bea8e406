// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The reserve is a file in the log's directory that takes up space. When the disk is full,
// the monitor removes it: the records that say so, changes of bundles and facts, and
// summaries of what was refused then have space. Accesses that need a record are refused
// until the reserve is there again.
const (
	reserveName  = "reserve"
	reserveSize  = 1 << 20
	reserveRetry = time.Second
)

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// makeReserve makes the reserve if it is not there.
func (w *writer) makeReserve() error {
	path := filepath.Join(w.log.options.Directory, reserveName)
	if about, err := os.Stat(path); err == nil && about.Size() == reserveSize {
		return nil
	}
	_ = os.Remove(path) // an incomplete one
	content := make([]byte, reserveSize)
	if _, err := rand.Read(content); err != nil { // zeros take no space on file systems that compress
		return fmt.Errorf("make reserve: %w", err)
	}
	file, err := w.log.options.openFile(path)
	if err != nil {
		return fmt.Errorf("make reserve: %w", err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // it would be in the way
		return fmt.Errorf("make reserve: %w", err)
	}
	return nil
}

// refuse begins to refuse accesses that need a record.
func (w *writer) refuse(cause error) {
	w.refusing = fmt.Errorf("accesses that need an audit record are refused, since the disk of %s is full: %w; "+
		"free %d MiB and they are allowed again", w.log.options.Directory, cause, 2*reserveSize>>20)
	w.log.setFailing(w.refusing)
	w.retried = w.log.options.clock()
	w.note("the disk is full: accesses that need a record are refused until there is space")
}

// spend removes the reserve, and reports whether there was one.
func (w *writer) spend(cause error) bool {
	if os.Remove(filepath.Join(w.log.options.Directory, reserveName)) != nil {
		return false
	}
	if w.refusing == nil {
		w.refuse(cause)
	}
	return true
}

// recover ends the refusals if there is space for another reserve, and as much again: the
// disk would be full at once otherwise.
func (w *writer) recover() {
	now := w.log.options.clock()
	if w.refusing == nil || now.Sub(w.retried) < reserveRetry {
		return
	}
	w.retried = now
	if free, err := freeSpace(w.log.options.Directory); err != nil || free < 2*reserveSize || w.makeReserve() != nil {
		return
	}
	w.refusing = nil
	w.log.setFailing(nil)
	w.note("there is space again: accesses that need a record are no longer refused")
}

// freeSpace returns the free bytes of a file system.
func freeSpace(directory string) (uint64, error) {
	var about unix.Statfs_t
	if err := unix.Statfs(directory, &about); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", directory, err)
	}
	return about.Bfree * uint64(about.Bsize), nil //nolint:gosec,nolintlint // the size of a block is positive; an unsigned number on some systems
}
