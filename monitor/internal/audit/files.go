// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// The log is a directory. It contains records, in files named after the first record in
// each, and a head, which names the last record in stable storage.
const filePattern = "audit-%020d.jsonl"

// maxLine is the longest line that is read, in bytes; a longer one is a fault.
const maxLine = 1 << 20

// readers are reused: to follow a busy log means many small reads.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, maxLine) }}

func fileName(directory string, first uint64) string {
	return filepath.Join(directory, fmt.Sprintf(filePattern, first))
}

// list returns the names of the log's files, oldest first.
func list(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if isFileName(entry.Name()) {
			files = append(files, filepath.Join(directory, entry.Name()))
		}
	}
	slices.Sort(files) // the numbers have a fixed width
	return files, nil
}

func isFileName(name string) bool {
	number, begins := strings.CutPrefix(name, "audit-")
	number, ends := strings.CutSuffix(number, ".jsonl")
	return begins && ends && len(number) == 20 && strings.Trim(number, "0123456789") == ""
}

// openRegular opens a file of the log. Who may write the log could put something else in its place: a link to
// a file that only the monitor may write, or a pipe, for which it would wait.
func openRegular(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, how|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		if about, failure := os.Lstat(path); failure == nil && !about.Mode().IsRegular() {
			return nil, notRegular(path, about)
		}
		return nil, err
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = notRegular(path, about)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func notRegular(path string, about fs.FileInfo) error {
	return fmt.Errorf("%s is no regular file (%v): something else is in its place; move it away",
		path, about.Mode().Type())
}

// maxSmall is more than the size of a head or a key, in bytes.
const maxSmall = 4 << 10

// readSmall reads a head or a key, and closes the file. The remedy is against one that is neither.
func readSmall(file *os.File, remedy string) ([]byte, error) {
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSmall+1))
	if err == nil && len(text) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes: something else is in its place; %s", file.Name(), maxSmall, remedy)
	}
	return text, err
}

// lines calls each with every line from offset on: its bytes without the newline, its
// position, and whether it ends in a newline. It returns where it stopped reading, which
// is the end of the last complete line. A line that is too long is passed on incomplete
// and ends the reading.
func lines(path string, offset int64, each func(line []byte, at int64, complete bool) error) (int64, error) {
	file, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return offset, fmt.Errorf("read audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return offset, fmt.Errorf("read audit log: %w", err)
	}
	reader := readers.Get().(*bufio.Reader)
	defer readers.Put(reader)
	reader.Reset(file)
	for {
		line, err := reader.ReadSlice('\n')
		switch {
		case err == nil:
			if err := each(line[:len(line)-1], offset, true); err != nil {
				return offset, err
			}
			offset += int64(len(line))
		case errors.Is(err, io.EOF) && len(line) == 0:
			return offset, nil
		case errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull):
			return offset, each(line, offset, false)
		default:
			return offset, fmt.Errorf("read audit log %s: %w", path, err)
		}
	}
}

// syncDirectory makes a new file's name durable.
func syncDirectory(directory string) error {
	handle, err := os.Open(directory)
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Sync()
}
