// SPDX-License-Identifier: BSD-2-Clause

// Package plainfile opens what people name in commands and manifests, if it is a regular file. Opening a
// named pipe waits until somebody writes to it, which no signal ends; opening a device can have an effect,
// and some devices do not end.
package plainfile

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrIrregular is the reason for which something other than a regular file is not opened.
var ErrIrregular = errors.New("it is no regular file; write its content to one")

// Open opens a file to read it. An error is a [fs.PathError].
func Open(path string) (*os.File, error) {
	return opened(path, func(how int) (*os.File, error) { return os.OpenFile(path, how, 0) })
}

// OpenIn opens a file beneath a directory to read it. It follows no link that leads out of the directory.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return opened(path, func(how int) (*os.File, error) { return root.OpenFile(path, how, 0) })
}

// Read reads a whole file.
func Read(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
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
