// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file has the permissions that were asked for, whatever an old one had, and nothing is
// left beside it.
func TestReplaceFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, old := range []fs.FileMode{0, 0o666} {
		if old != 0 {
			if err := os.Chmod(file, old); err != nil {
				t.Fatal(err)
			}
		}
		if err := replaceFile(file, []byte(old.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		about, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if about.Mode() != 0o600 || string(content) != old.String() {
			t.Errorf("over %s: %s with %q", old, about.Mode(), content)
		}
	}
	if beside, err := os.ReadDir(filepath.Dir(file)); len(beside) != 1 || err != nil {
		t.Errorf("in the directory: %v, %v", beside, err)
	}
}

// A link is neither followed nor replaced.
func TestReplaceFileThroughALink(t *testing.T) {
	directory := t.TempDir()
	target, link := filepath.Join(directory, "target"), filepath.Join(directory, "link")
	if err := os.WriteFile(target, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{target, filepath.Join(directory, "none"), os.DevNull} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		err := replaceFile(link, []byte("new"), 0o600)
		if err == nil || !strings.Contains(err.Error(), "name the file itself") {
			t.Errorf("to %s: error %v", to, err)
		}
		if found, err := os.Readlink(link); found != to {
			t.Errorf("the link to %s leads to %s: %v", to, found, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if content, err := os.ReadFile(target); string(content) != "old" || err != nil {
		t.Errorf("the target has %q: %v", content, err)
	}
}

// A pipe is not written to: in a directory of all users it may be another's, who reads it.
func TestReplaceFileWithoutAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "report.html")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	err = replaceFile(pipe, []byte("who was refused what"), 0o600)
	if err == nil || !strings.Contains(err.Error(), "it is a pipe") {
		t.Errorf("error %v", err)
	}
	if content, _ := io.ReadAll(reader); len(content) != 0 {
		t.Errorf("the reader has %q", content)
	}
}

// A directory is not replaced, and a device is written to.
func TestReplaceFileOfAnotherKind(t *testing.T) {
	if err := replaceFile(os.DevNull, []byte("new"), 0o600); err != nil {
		t.Error(err)
	}
	if about, err := os.Stat(os.DevNull); err != nil || about.Mode().IsRegular() {
		t.Errorf("%s is a file: %v", os.DevNull, err)
	}
	directory := t.TempDir()
	err := replaceFile(directory, []byte("new"), 0o600)
	if err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("error %v", err)
	}
}
