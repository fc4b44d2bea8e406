// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"shai.dev/monitor/internal/sandbox"
)

// sharedFiles knows which files of the data directory have several names. If a file of a
// task's runtime is one of them, it is a document with another name. The view has a name
// for every document, so all documents are found.
type sharedFiles struct {
	data string

	mu    sync.Mutex
	found map[fileNumber]bool
	since time.Time // when the search that found them began
}

// fileNumber identifies a file independently of its names.
type fileNumber struct{ device, inode uint64 }

// clockStep is the most by which a file's change time may lag behind the clock.
const clockStep = time.Second

// hold reports whether a file is one of the data directory's. It searches again, unless
// the file's names have not changed since the last search.
func (s *sharedFiles) hold(file sandbox.SharedFile) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil || !file.Changed.Add(clockStep).Before(s.since) {
		if err := s.search(); err != nil {
			return false, err
		}
	}
	return s.found[fileNumber{file.Device, file.Inode}], nil
}

func (s *sharedFiles) search() error {
	found, since := map[fileNumber]bool{}, time.Now()
	err := filepath.WalkDir(s.data, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
			found[fileNumber{stat.Dev, stat.Ino}] = true
		}
		return nil
	})
	if err != nil {
		return err // even if a directory was removed in the meantime: it may have held the file
	}
	s.found, s.since = found, since
	return nil
}
