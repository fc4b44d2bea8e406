// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// end is the end of a log.
type end struct {
	file  string // the last file; empty when there is none
	size  int64  // of its undamaged part, in bytes
	last  mark
	keyed bool   // the last record is sealed with the key
	torn  []byte // the bytes after the undamaged part
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
			found.file, found.size = files[i], size
			if found.torn, err = remainder(files[i], size); err != nil {
				return end{}, err
			}
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
			last, keyed = record.mark(), record.MAC != ""
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
			if record, err := key.open(line); complete && err == nil && record.mark() == said {
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

func remainder(path string, from int64) ([]byte, error) {
	text, err := readRegular(path)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return text[from:], nil
}

// setAside moves a torn end into a file of its own, which is on disk before the log is
// cut: the data is never in memory only.
func (e end) setAside(directory string, now time.Time) (string, error) {
	path := filepath.Join(directory, fmt.Sprintf("torn-%020d-%s.bin", e.last.sequence+1,
		now.UTC().Format("20060102T150405.000000000")))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("set aside the torn end of the audit log: %w", err)
	}
	_, err = file.Write(e.torn)
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Truncate(e.file, e.size)
	}
	if err == nil {
		err = syncDirectory(directory)
	}
	if err != nil {
		return "", fmt.Errorf("set aside the torn end of the audit log: %w", err)
	}
	return filepath.Base(path), nil
}
