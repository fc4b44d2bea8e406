// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// memory makes a file that exists in memory only. The caller sets its size before writing
// to it, and closes it.
func memory(name string) (*os.File, error) {
	const (
		sharedMemoryOpen = 571 // shm_open2(2)
		anonymous        = 1   // SHM_ANON
	)
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	number, _, errno := unix.Syscall6(sharedMemoryOpen, anonymous, unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0,
		uintptr(unsafe.Pointer(text)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make memory file %s: %w", name, errno)
	}
	return os.NewFile(number, name), nil
}

// ViewOf returns a descriptor of a directory for a stub. Beneath it the stub opens what
// its session may read, and nothing for writing. The caller closes it.
func ViewOf(path string, _ *plan.User) (*os.File, error) {
	number, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := limitRights(number, plan.ViewRights); err != nil {
		unix.Close(number)
		return nil, err
	}
	return os.NewFile(uintptr(number), path), nil
}

// OpenDocument opens a file beneath the directory of [ViewOf] for reading.
func OpenDocument(view *os.File, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(view.Name(), name), unix.O_RDONLY|unix.O_NOFOLLOW, 0)
}

// MessagePair makes the two ends of a socket that keeps the boundaries of records, up to
// wire.MaxRecord bytes. Both are blocking.
func MessagePair() ([2]int, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ends, err
	}
	for _, end := range ends {
		// A record must fit in the buffer, whose default size is 8 KiB.
		if err := unix.SetsockoptInt(end, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*wire.MaxRecord); err != nil {
			unix.Close(ends[0])
			unix.Close(ends[1])
			return ends, err
		}
	}
	return ends, nil
}

// OneWay limits reader to reading and writer to writing, in every process that they are
// passed to: on FreeBSD, pipes work in both directions.
func OneWay(reader, writer *os.File) error {
	if err := limitRights(int(reader.Fd()), plan.ReaderRights); err != nil {
		return err
	}
	return limitRights(int(writer.Fd()), plan.WriterRights)
}

// openFile is the part of struct kinfo_file (sys/user.h) that is used.
type openFile struct {
	size int32
	_    [364]byte
	path [1024]byte
}

func describe(descriptor int) (openFile, error) {
	const describe = 22 // F_KINFO
	file := openFile{size: int32(unsafe.Sizeof(openFile{}))}
	_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(descriptor), describe, uintptr(unsafe.Pointer(&file)))
	if errno != 0 {
		return openFile{}, errno
	}
	return file, nil
}

// pathOf returns the path of an open directory.
func pathOf(directory int) (string, error) {
	file, err := describe(directory)
	if err != nil {
		return "", err
	}
	path := unix.ByteSliceToString(file.path[:])
	if path == "" || path[0] != '/' {
		return "", unix.ENOENT
	}
	return path, nil
}
