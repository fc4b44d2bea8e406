// SPDX-License-Identifier: BSD-2-Clause

// Package plainfile opens what people name in commands and manifests, if it is a regular file. Opening a
// named pipe waits until somebody writes to it, which no signal ends; opening a device can have an effect,
// and some devices do not end.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrIrregular is the reason for which something other than a regular file is not opened.
var ErrIrregular = errors.New("it is no regular file; write its content to one")

// ErrTooLong is the reason for which a file is not read.
var ErrTooLong = errors.New("it is too long")

// Open opens a file to read it. An error is a [fs.PathError].
func Open(path string) (*os.File, error) {
	return opened(path, func(how int) (*os.File, error) { return os.OpenFile(path, how, 0) })
}

// OpenIn opens a file beneath a directory to read it. It follows no link that leads out of the directory.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return opened(path, func(how int) (*os.File, error) { return root.OpenFile(path, how, 0) })
}

// Read reads a whole file. One of more than most bytes is an error that says so.
func Read(path string, most int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tooLong := &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLong, most)}
	if about, err := file.Stat(); err == nil && about.Size() > most {
		return nil, tooLong
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if int64(len(text)) > most { // it grows
		return nil, tooLong
	}
	return text, err
}

// ReadStart reads a whole file, or of one that is longer the first most+1 bytes, for callers that refuse
// such a text themselves. Files of any length can be named, and sparse ones cost nothing to make.
func ReadStart(path string, most int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}

// opened examines what was opened, not what had the name before.
func opened(path string, open func(how int) (*os.File, error)) (*os.File, error) {
	file, err := open(os.O_RDONLY | unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
