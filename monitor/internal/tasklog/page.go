// SPDX-License-Identifier: BSD-2-Clause

package tasklog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrMoved says that a place is not where it was: the older half of the log has been removed since.
var ErrMoved = errors.New("the log has gone on, and its older half is not there any more; read it from its end again")

// Page is a part of a log: whole lines, or a part of one that is longer than a page.
type Page struct {
	Text []byte
	// Before is the place at which Text begins, for the page before it; empty: there is none.
	Before string
}

// marked is how many bytes before a place its name depends on.
const marked = 256

// Read returns the last at most limit bytes of a log before a place, or before its end if the place
// is empty. A log that was never written is empty. The error wraps ErrMoved if the place is not
// there any more.
func Read(path, before string, limit int64) (Page, error) {
	page, err := read(path, before, limit)
	if err != nil && !errors.Is(err, ErrMoved) {
		err = fmt.Errorf("read task log: %w", err)
	}
	return page, err
}

func read(path, before string, limit int64) (Page, error) {
	var whole halves
	defer whole.close()
	for _, name := range []string{path + rotated, path} {
		if err := whole.add(name); err != nil {
			return Page{}, err
		}
	}
	end := whole.size()
	if before != "" {
		var err error
		if end, err = whole.find(before); err != nil {
			return Page{}, err
		}
	}
	begin := max(0, end-limit)
	text := make([]byte, end-begin)
	if _, err := whole.ReadAt(text, begin); err != nil {
		return Page{}, err
	}
	if _, lines, found := bytes.Cut(text, []byte("\n")); begin > 0 && found && len(lines) > 0 {
		begin, text = end-int64(len(lines)), lines
	}
	if begin == 0 {
		return Page{Text: text}, nil
	}
	place, err := whole.name(begin)
	return Page{Text: text, Before: place}, err
}

// halves are the files of a log, the older one first, as if they were one.
type halves []half

type half struct {
	file *os.File
	size int64
}

func (h *halves) add(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	about, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	*h = append(*h, half{file, about.Size()})
	return nil
}

func (h halves) close() {
	for _, one := range h {
		one.file.Close()
	}
}

func (h halves) size() (size int64) {
	for _, one := range h {
		size += one.size
	}
	return size
}

// ReadAt implements [io.ReaderAt] for what was there when the files were opened.
func (h halves) ReadAt(text []byte, at int64) (count int, err error) {
	for _, one := range h {
		if count == len(text) {
			break
		}
		if at >= one.size {
			at -= one.size
			continue
		}
		part := text[count:min(int64(len(text)), int64(count)+one.size-at)]
		n, err := one.file.ReadAt(part, at)
		count += n
		if n < len(part) {
			return count, err
		}
		at = 0
	}
	if count < len(text) {
		return count, io.ErrUnexpectedEOF
	}
	return count, nil
}

// name returns the name of a place: its offset, and a hash of what is before it.
func (h halves) name(offset int64) (string, error) {
	text := make([]byte, min(marked, offset))
	if _, err := h.ReadAt(text, offset-int64(len(text))); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d-%x", offset, sum[:8]), nil
}

func (h halves) find(place string) (int64, error) {
	var offset int64
	if _, err := fmt.Sscanf(place, "%d-", &offset); err != nil || offset < 0 {
		return 0, fmt.Errorf("%q is no place in a log", place)
	}
	if offset > h.size() {
		return 0, ErrMoved
	}
	if name, err := h.name(offset); err != nil || name != place {
		return 0, errors.Join(ErrMoved, err)
	}
	return offset, nil
}

// Previous returns the path of the log beside this one, of the label before the present one; empty:
// there is none.
func Previous(path string) (string, error) {
	directory, name := filepath.Split(path)
	if last, err := os.Readlink(filepath.Join(directory, lastName)); err == nil && last != name {
		return filepath.Join(directory, last), nil // nothing was printed under the present label yet
	}
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, entry := range entries {
		other := strings.TrimSuffix(entry.Name(), rotated)
		if entry.Type().IsRegular() && other != name {
			return filepath.Join(directory, other), nil
		}
	}
	return "", err
}
