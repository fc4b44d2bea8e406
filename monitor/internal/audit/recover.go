// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// end is the end of a log.
type end struct {
	file  string // the last file; empty when there is none
	size  int64  // of its undamaged part, in bytes
	last  mark
	keyed bool  // the last record is sealed with the key
	torn  int64 // bytes after the undamaged part
}

// findEnd reads the last records, back to the first file that has a good one. Only the
// last file can end in a torn line: an older file was complete before the next was begun.
func findEnd(directory string, key *Key) (end, error) {
	files, err := list(directory)
	if err != nil {
		return end{}, err
	}
	found := end{last: start}
	for i := len(files) - 1; i >= 0; i-- {
		size, last, keyed, err := goodPart(files[i], key)
		if err != nil {
			return end{}, err
		}
		if i == len(files)-1 {
			about, err := os.Lstat(files[i])
			if err != nil {
				return end{}, fmt.Errorf("read audit log: %w", err)
			}
			found.file, found.size, found.torn = files[i], size, about.Size()-size
		}
		if last.sequence > 0 {
			found.last, found.keyed = last, keyed
			break
		}
	}
	return found, nil
}

// goodPart returns the size of a file up to the end of its last undamaged record. A
// damaged record in the middle is kept, for Verify to report.
func goodPart(path string, key *Key) (size int64, last mark, keyed bool, err error) {
	last = start
	_, err = lines(path, 0, func(line []byte, at int64, complete bool) error {
		if !complete {
			return nil
		}
		if record, err := key.open(line); err == nil {
			last, keyed = markOf(record), record.MAC != ""
			size = at + int64(len(line)) + 1
		}
		return nil
	})
	return size, last, keyed, err
}

// contradiction returns what a log lacks of what one of its heads says, "" if nothing.
func (e end) contradiction(directory string, key *Key, said mark) (string, error) {
	if said.sequence > e.last.sequence {
		return fmt.Sprintf("records %d to %d are missing", e.last.sequence+1, said.sequence), nil
	}
	if said.sequence == 0 || said == e.last {
		return "", nil
	}
	files, err := list(directory)
	if err != nil {
		return "", err
	}
	from := 0
	for i, file := range files {
		if file <= fileName(directory, said.sequence) {
			from = i
		}
	}
	found := false
	for _, file := range files[from:] {
		_, err = lines(file, 0, func(line []byte, _ int64, complete bool) error {
			if record, err := key.open(line); complete && err == nil && markOf(record) == said {
				found = true
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	if found {
		return "", nil
	}
	return fmt.Sprintf("record %d is not the one that was written", said.sequence), nil
}

// setAside moves a torn end into a file of its own, which is on disk before the log is
// cut: the data is never in memory only.
func (e end) setAside(directory string, now time.Time) (name string, err error) {
	name = fmt.Sprintf("torn-%020d-%s.bin", e.last.sequence+1, now.UTC().Format("20060102T150405.000000000"))
	aside := filepath.Join(directory, name)
	if err = e.moveTorn(aside); err == nil {
		err = syncDirectory(directory)
	}
	if err != nil {
		return "", fmt.Errorf("set aside the torn end of the audit log: %w; free space, or move %s away", err, e.file)
	}
	return name, nil
}

func (e end) moveTorn(aside string) error {
	from, err := openRegular(e.file, os.O_RDWR)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = copyWithHoles(to, from, e.size, e.torn)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return from.Truncate(e.size)
}

// copyWithHoles copies bytes of a file from a position on. Holes take no space in the copy either: somebody may
// have made the file longer than the disk.
func copyWithHoles(to, from *os.File, begin, length int64) error {
	for at := begin; at < begin+length; {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole is left
		}
		if err != nil {
			return err
		}
		hole, err := from.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		_, there := from.Seek(data, io.SeekStart)
		_, here := to.Seek(data-begin, io.SeekStart)
		if err := errors.Join(there, here); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, hole-data); err != nil {
			return err
		}
		at = hole
	}
	return to.Truncate(length)
}
