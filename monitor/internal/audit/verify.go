// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errFault ends a walk at the first fault.
var errFault = errors.New("fault")

// Verify checks the chain in a directory, from its first record to its heads. The log may
// be in use by a writer. The key is in keyFile; if that is empty, it is beside the
// directory, and a log without a key is one of a monitor that had none. The error says that
// the files could not be read; faults in them are in the result.
func Verify(ctx context.Context, directory, keyFile string) (Verification, error) {
	if keyFile == "" {
		keyFile = KeyFile(directory)
		if _, err := os.Stat(keyFile); errors.Is(err, fs.ErrNotExist) {
			return verify(ctx, directory, nil, nil)
		}
	}
	key, err := ReadKey(keyFile)
	if err != nil {
		return Verification{}, err
	}
	return verify(ctx, directory, key, nil)
}

// verifyAttempts limits how often a verification begins anew because retention has removed
// files that it was about to read.
const verifyAttempts = 10

// verify rests between records if it is given how.
func verify(ctx context.Context, directory string, key *Key, rest *pace) (result Verification, err error) {
	for range verifyAttempts {
		if result, err = verifyOnce(ctx, directory, key, rest); !errors.Is(err, fs.ErrNotExist) {
			return result, err
		}
		rest.hurry()
	}
	return result, err
}

func verifyOnce(ctx context.Context, directory string, key *Key, rest *pace) (Verification, error) {
	// The heads are read first: later writes only add to the log.
	inside, insideError := readHead(filepath.Join(directory, headName), key)
	witness, witnessError := readWitness(directory, key)
	if errors.Is(insideError, errNoKey) {
		return Verification{}, fmt.Errorf("verify audit log %s: %w", directory, errNoKey)
	}
	files, err := list(directory)
	if err != nil {
		return Verification{}, err
	}
	w := &walk{ctx: ctx, key: key, rest: rest, last: start, before: start, heads: []mark{inside.mark, witness.mark}}
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
	case insideError != nil && (key != nil || len(files) > 0 || !errors.Is(insideError, fs.ErrNotExist)):
		w.result.Fault = insideError.Error()
	case key != nil && !inside.keyed:
		w.result.Fault = "the log's head has no seal with the key: the log was replaced, or no monitor has opened it " +
			"since it has a key"
	case key != nil && witnessError != nil:
		w.result.Fault = witnessError.Error()
	default:
		w.result.Fault = w.end()
	}
	return w.result, nil
}

// walk is the state of one verification.
type walk struct {
	ctx     context.Context
	key     *Key
	rest    *pace // nil: it does not rest
	last    mark
	heads   []mark  // what the heads say
	keyed   bool    // a record with a seal was seen: those that follow need one
	before  mark    // what the first record follows
	removed Removal // what the last record of the kind Retention says
	final   bool    // the file is the last one, so a line may be incomplete
	result  Verification
}

func (w *walk) file(path string) error {
	number := 0
	_, err := lines(path, 0, func(line []byte, _ int64, complete bool) error {
		number++
		if err := w.rest.after(w.ctx); err != nil {
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

// incomplete judges a last line without its newline: if it is beyond the heads, it is
// still being written, or was when the machine stopped.
func (w *walk) incomplete(path string, number int) error {
	if w.final && w.missing() == "" {
		return nil
	}
	w.result.Fault = fmt.Sprintf("%s:%d: record %d is cut off", filepath.Base(path), number, w.last.sequence+1)
	return errFault
}

// line checks one record against the previous one, and returns what is wrong.
func (w *walk) line(line []byte) string {
	record, err := w.key.open(line)
	if err != nil {
		return fmt.Sprintf("record %d: %v", w.last.sequence+1, err)
	}
	if w.result.Records == 0 && record.Sequence > 1 {
		// Older records are gone. At its end, the log has to say that the monitor has
		// removed them.
		w.before = mark{record.Sequence - 1, record.Previous}
		w.last = w.before
	}
	switch {
	case record.Sequence != w.last.sequence+1:
		return fmt.Sprintf("records are missing or out of order: %d follows %d", record.Sequence, w.last.sequence)
	case record.Previous != w.last.seal:
		return fmt.Sprintf("record %d does not follow record %d: it says the seal of that one is %s, and it is %s",
			record.Sequence, w.last.sequence, record.Previous, w.last.seal)
	case w.keyed && record.MAC == "":
		return fmt.Sprintf("record %d has no seal with the key, and those before it have one", record.Sequence)
	}
	for _, head := range w.heads {
		if record.Sequence == head.sequence && markOf(record) != head {
			return fmt.Sprintf("record %d has the seal %s and the log's head says %s", record.Sequence,
				markOf(record).seal, head.seal)
		}
	}
	w.accept(record)
	return ""
}

func (w *walk) accept(record Record) {
	w.last = markOf(record)
	w.keyed = record.MAC != ""
	if !w.keyed {
		w.result.Unkeyed++
	}
	if w.result.First == 0 {
		w.result.First = record.Sequence
	}
	if record.Kind == Retention && record.Removed != nil && w.keyed {
		w.removed = *record.Removed
	}
	w.result.Records++
	w.result.Last = w.last.seal
}

// missing says which records after the last one the heads name.
func (w *walk) missing() string {
	for _, head := range w.heads {
		if head.sequence > w.last.sequence {
			return fmt.Sprintf("records %d to %d are missing: the log ends at %d and its head says %d",
				w.last.sequence+1, head.sequence, w.last.sequence, head.sequence)
		}
	}
	return ""
}

// end judges a log whose lines are all correct: whether its beginning and its end are
// there.
func (w *walk) end() string {
	switch {
	case w.removed.Through < w.before.sequence:
		return fmt.Sprintf("records %d to %d are missing, and no record says that the monitor has removed them",
			w.removed.Through+1, w.before.sequence)
	case w.removed.Through == w.before.sequence && w.removed.Seal != "" && w.removed.Seal != w.before.seal:
		return fmt.Sprintf("record %d follows one with the seal %s, and the record that was removed before it had %s",
			w.result.First, w.before.seal, w.removed.Seal)
	}
	return w.missing()
}
