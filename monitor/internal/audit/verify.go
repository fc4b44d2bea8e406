// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// errFault ends a walk at the first fault.
var errFault = errors.New("fault")

// Verify checks the chain in a directory, from its first record to its head. The log may
// be in use by a writer. The error says that the files could not be read; faults in them
// are in the result.
func Verify(ctx context.Context, directory string) (Verification, error) {
	// The head is read first: later writes only add to the log.
	head, headError := readHead(directory)
	files, err := list(directory)
	if err != nil {
		return Verification{}, err
	}
	w := &walk{ctx: ctx, last: mark{hash: origin}, head: head}
	for i, file := range files {
		w.result.Files++
		w.final = i == len(files)-1
		if err := w.file(file); errors.Is(err, errFault) {
			return w.result, nil
		} else if err != nil {
			return w.result, err
		}
	}
	switch {
	case headError != nil && len(files) > 0:
		w.result.Fault = headError.Error()
	case head.sequence > w.last.sequence:
		w.result.Fault = fmt.Sprintf("records %d to %d are missing: the log ends at %d and its head says %d",
			w.last.sequence+1, head.sequence, w.last.sequence, head.sequence)
	}
	return w.result, nil
}

// walk is the state of one verification.
type walk struct {
	ctx    context.Context
	last   mark
	head   mark
	final  bool // the file is the last one, so a line may be incomplete
	result Verification
}

func (w *walk) file(path string) error {
	number := 0
	_, err := lines(path, 0, func(line []byte, _ int64, complete bool) error {
		number++
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if !complete {
			return w.incomplete(path, number)
		}
		if reason := w.line(line); reason != "" {
			w.result.Fault = fmt.Sprintf("%s:%d: %s", filepath.Base(path), number, reason)
			return errFault
		}
		return nil
	})
	return err
}

// incomplete judges a last line without its newline: if it is beyond the head, it is
// still being written, or was when the machine stopped.
func (w *walk) incomplete(path string, number int) error {
	if w.final && w.last.sequence >= w.head.sequence {
		return nil
	}
	w.result.Fault = fmt.Sprintf("%s:%d: record %d is cut off", filepath.Base(path), number, w.last.sequence+1)
	return errFault
}

// line checks one record against the previous one, and returns what is wrong.
func (w *walk) line(line []byte) string {
	record, err := open(line)
	switch {
	case err != nil:
		return fmt.Sprintf("record %d: %v", w.last.sequence+1, err)
	case record.Sequence != w.last.sequence+1:
		return fmt.Sprintf("records are missing or out of order: %d follows %d", record.Sequence, w.last.sequence)
	case record.Previous != w.last.hash:
		return fmt.Sprintf("record %d does not follow record %d: it says the hash of that one is %s, and it is %s",
			record.Sequence, w.last.sequence, record.Previous, w.last.hash)
	case record.Sequence == w.head.sequence && record.Hash != w.head.hash:
		return fmt.Sprintf("record %d has the hash %s and the log's head says %s", record.Sequence, record.Hash,
			w.head.hash)
	}
	w.last = mark{record.Sequence, record.Hash}
	w.result.Records++
	w.result.Last = record.Hash
	return ""
}
