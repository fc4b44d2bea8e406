// SPDX-License-Identifier: BSD-2-Clause

// Package tasklog keeps what a task prints: in files of limited size, one for each label
// that the output has had.
package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxSize is the size in bytes at which a task's log is rotated. Only one old log is
// kept, so a task's logs under one label take at most twice as much.
const MaxSize = 16 << 20

// rotated ends the name of a log's older half.
const rotated = ".1"

// Log is a task's output, in a file of limited size. It is not safe for concurrent use.
type Log struct {
	path  string
	limit int64
	file  *os.File // nil after a failed rotation
	size  int64
}

// Open opens a log for appending. The logs of a task are in a directory of their
// own, one for each label that its output has had. The present one and the last one of
// another label are kept, and older ones removed.
func Open(path string, limit int64) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open task log: %w", err)
	}
	if err := removeOldLabels(path); err != nil {
		return nil, err
	}
	l := &Log{path: path, limit: limit}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open task log: %w", err)
	}
	about, err := file.Stat()
	if err != nil {
		file.Close()
		return fmt.Errorf("open task log: %w", err)
	}
	l.file, l.size = file, about.Size()
	return nil
}

// lastName is the name of a link, beside the logs, to the one that was opened last.
const lastName = "last"

// removeOldLabels removes the logs beside path but the one that was opened before, and makes
// path the last one. Times of files say less: two logs of a program that changes its label
// quickly can have the same.
func removeOldLabels(path string) error {
	directory, name := filepath.Split(path)
	last := filepath.Join(directory, lastName)
	former, err := os.Readlink(last)
	switch {
	case err == nil && former == name:
		return nil
	case err == nil:
		err = removeBut(directory, name, former)
	case errors.Is(err, fs.ErrNotExist): // nothing was opened yet, or by a version without links
		err = nil
	}
	if err == nil {
		err = errors.Join(removeIfThere(last+".new"), os.Symlink(name, last+".new"), os.Rename(last+".new", last))
	}
	if err != nil {
		return fmt.Errorf("remove old task logs: %w", err)
	}
	return nil
}

// removeBut removes the logs in a directory, but those with these names.
func removeBut(directory string, names ...string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), rotated)
		if entry.Type().IsRegular() && !slices.Contains(names, name) {
			err = errors.Join(err, os.Remove(filepath.Join(directory, entry.Name())))
		}
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write appends to the log. It begins a new file when the current one is full. After an
// error, the next call tries again.
func (l *Log) Write(text []byte) (int, error) {
	if l.file == nil || l.size > 0 && l.size+int64(len(text)) > l.limit {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	count, err := l.file.Write(text)
	l.size += int64(count)
	return count, err
}

// turn rotates the log.
func (l *Log) turn() error {
	l.Close()
	l.file = nil
	if err := os.Rename(l.path, l.path+rotated); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rotate task log: %w", err)
	}
	return l.open()
}

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		l.file.Close()
	}
}
