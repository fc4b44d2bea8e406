// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// retain removes the oldest files if the log with another full file would exceed MaxSize.
// First it writes a record that commits to what is removed. If it fails, or the monitor is
// killed, after that, the next call removes the rest.
func (w *writer) retain() {
	options := w.log.options
	files, err := list(options.Directory)
	if err != nil {
		return // the files stay, and the next file tries again
	}
	surplus, removal := excess(files, options.MaxSize-options.MaxFileSize)
	if len(surplus) == 0 {
		return
	}
	removal.Through, removal.Seal, err = w.log.source().precedes(files[len(surplus)])
	if err != nil {
		return
	}
	reason := fmt.Sprintf("the log would exceed %d bytes: the records up to %d are removed", options.MaxSize,
		removal.Through)
	w.add(entry{event: Event{Kind: Retention, Operation: "remove", Allowed: true, Reason: reason, Removed: &removal},
		time: options.clock()})
	if w.commit(true) != nil {
		return
	}
	for _, file := range surplus {
		if os.Remove(file) != nil {
			return
		}
	}
	_ = syncDirectory(options.Directory) // if the names come back, the next call removes them again
}

// excess returns the oldest files without which the others have at most limit bytes. The
// last file stays in any case.
func excess(files []string, limit int64) (surplus []string, removal Removal) {
	sizes := make([]int64, len(files))
	var total int64
	for i, file := range files {
		if about, err := os.Stat(file); err == nil {
			sizes[i] = about.Size()
		}
		total += sizes[i]
	}
	for i := 0; i < len(files)-1 && total > limit; i++ {
		total -= sizes[i]
		removal.Bytes += sizes[i]
		removal.Files++
		surplus = files[:i+1]
	}
	return surplus, removal
}

// precedes returns the number and the seal of the record before a file's first one. If
// that one is damaged, the seal is unknown.
func (s source) precedes(file string) (through uint64, seal string, err error) {
	number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "audit-"), ".jsonl")
	first, err := strconv.ParseUint(number, 10, 64)
	if err != nil || first == 0 {
		return 0, "", fmt.Errorf("read audit log: %s does not begin with a record's number", file)
	}
	_, err = lines(file, 0, func(line []byte, _ int64, _ bool) error {
		if record, err := s.key.open(line); err == nil && record.Sequence == first {
			seal = record.Previous
		}
		return errFirst
	})
	if !errors.Is(err, errFirst) && err != nil {
		return 0, "", err
	}
	return first - 1, seal, nil
}

// errFirst ends reading after the first line.
var errFirst = errors.New("first line read")
