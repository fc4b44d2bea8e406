// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/wire"
)

// messageMax is the size of the largest record that a task may write to the monitor.
const messageMax = 1024

// message passes on what a task that may raise its taint writes to the monitor. The write
// itself is not made.
func (r *request) message() error {
	size := r.Arguments[2]
	switch {
	case r.requests.raising == nil || r.call.Name == "writev" || size == 0:
		return errRefused
	case size > messageMax:
		return unix.EMSGSIZE
	}
	record := make([]byte, size)
	if err := r.read(r.Arguments[1], record); err != nil {
		return err
	}
	if err := r.requests.raising.Receive(record, stopped{r}); err != nil {
		return unix.EPIPE
	}
	return r.succeed(len(record))
}

// stopped is the process that makes a request. The task is one process, so if this has one
// thread, which waits, nothing else can open, duplicate or map anything, or write.
type stopped struct{ request *request }

// Writable implements [Stopped].
func (s stopped) Writable() ([]Handle, error) {
	r := s.request
	threads, err := r.status("Threads")
	if err != nil {
		return nil, err
	}
	if threads != "1" || int(r.PID) != r.requests.task.pid {
		return nil, ErrThreads
	}
	handles, err := writableDescriptors(r.proc("fd"))
	if err != nil {
		return nil, err
	}
	if err := fewMappings(r.proc("maps")); err != nil {
		return nil, err
	}
	mappings, err := writableMappings(r.proc("smaps"))
	if err != nil {
		return nil, err
	}
	if !r.requests.listener.valid(r.ID) {
		return nil, errGone
	}
	return append(handles, mappings...), nil
}

// Place implements [Stopped].
func (s stopped) Place(files map[int]*os.File) error {
	for _, number := range slices.Sorted(maps.Keys(files)) {
		if err := s.placeAt(number, files[number]); err != nil {
			return err
		}
	}
	return nil
}

func (s stopped) placeAt(number int, file *os.File) error {
	errno := s.request.requests.listener.inject(injection{ID: s.request.ID, Flags: unix.SECCOMP_ADDFD_FLAG_SETFD,
		Source: uint32(file.Fd()), New: uint32(number)})
	switch errno {
	case 0:
		return nil
	case unix.ENOENT:
		return errGone
	}
	return fmt.Errorf("place descriptor %d: %w", number, errno)
}

// writableDescriptors lists a process's files that are open for writing. The mode of a link
// in /proc/<pid>/fd shows how the file is open. A pipe or socket without a reserved number
// is one that the process has made itself, so that both ends are in it, or the task's
// output, which the monitor reads.
func writableDescriptors(directory string) ([]Handle, error) {
	open, err := os.Open(directory)
	if err != nil {
		return nil, gone(err)
	}
	defer open.Close()
	names, err := open.Readdirnames(ExaminedMax + 1)
	if err != nil {
		return nil, gone(err)
	}
	if len(names) > ExaminedMax {
		return nil, ErrTooMany
	}
	var handles []Handle
	for _, name := range names {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("descriptor %q: %w", name, err)
		}
		if number >= wire.FDMonitor && number < wire.FDReservedEnd {
			continue
		}
		path, err := writtenBy(int(open.Fd()), name)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(path, "/") && !plan.IsHarmless(path) {
			handles = append(handles, Handle{Number: number, Path: path})
		}
	}
	return handles, nil
}

// writtenBy returns what a descriptor writes to, "" if it is not open for writing.
func writtenBy(directory int, name string) (string, error) {
	var link, file unix.Stat_t
	if err := unix.Fstatat(directory, name, &link, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", fmt.Errorf("descriptor %s: %w", name, err)
	}
	if link.Mode&unix.S_IWUSR == 0 {
		return "", nil
	}
	buffer := make([]byte, pathMax+len(removedMark))
	size, err := unix.Readlinkat(directory, name, buffer)
	if err != nil {
		return "", fmt.Errorf("descriptor %s: %w", name, err)
	}
	path := string(buffer[:size])
	if !strings.HasSuffix(path, removedMark) {
		return path, nil
	}
	if err := unix.Fstatat(directory, name, &file, 0); err != nil {
		return "", fmt.Errorf("descriptor %s: %w", name, err)
	}
	if file.Nlink == 0 { // else it is a part of the name
		path = strings.TrimSuffix(path, removedMark)
	}
	return path, nil
}

// removedMark is what the kernel adds to the path of a file that was removed.
const removedMark = " (deleted)"

// sharedFlag marks a mapping, in smaps, that writes to its file, or would after mprotect: the
// kernel does not set it if the file was not open for writing.
const sharedFlag = "sh"

// fewMappings returns [ErrTooMany] if a process has more mappings than are examined: for smaps
// the kernel would walk the pages of each.
func fewMappings(mapsPath string) error {
	maps, err := os.Open(mapsPath)
	if err != nil {
		return errGone
	}
	defer maps.Close()
	lines := bufio.NewReader(maps)
	for range ExaminedMax + 1 {
		_, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			// The line goes on: one with a long path counts more than once.
		case err != nil:
			return errGone
		}
	}
	return ErrTooMany
}

// writableMappings lists a process's mappings that write to files.
func writableMappings(smapsPath string) ([]Handle, error) {
	smaps, err := os.ReadFile(smapsPath)
	if err != nil {
		return nil, errGone
	}
	mappings, err := sealing.ParseMappings(smaps)
	if err != nil {
		return nil, err
	}
	var handles []Handle
	for _, mapping := range mappings {
		path := strings.TrimSuffix(mapping.Name, removedMark)
		if slices.Contains(mapping.Flags, sharedFlag) && strings.HasPrefix(path, "/") && !plan.IsHarmless(path) {
			handles = append(handles, Handle{Number: -1, Path: path})
		}
	}
	return handles, nil
}
