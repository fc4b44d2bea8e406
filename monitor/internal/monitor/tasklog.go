// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxTaskLog is the size in bytes at which a task's log is rotated. Only one old log is
// kept, so a task's logs take at most twice as much.
const maxTaskLog = 16 << 20

// taskLog is a task's output, in a file of limited size.
type taskLog struct {
	path  string
	limit int64
	file  *os.File
	size  int64
}

// openTaskLog opens a log for appending.
func openTaskLog(path string, limit int64) (*taskLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open task log: %w", err)
	}
	l := &taskLog{path: path, limit: limit}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *taskLog) open() error {
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

// Write appends to the log. It begins a new file when the current one is full.
func (l *taskLog) Write(text []byte) (int, error) {
	if l.size > 0 && l.size+int64(len(text)) > l.limit {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	count, err := l.file.Write(text)
	l.size += int64(count)
	return count, err
}

// turn rotates the log.
func (l *taskLog) turn() error {
	l.file.Close()
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return fmt.Errorf("rotate task log: %w", err)
	}
	return l.open()
}

// Close closes the file.
func (l *taskLog) Close() error { return l.file.Close() }
