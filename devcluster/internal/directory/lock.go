// SPDX-License-Identifier: BSD-2-Clause

package directory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The lock is the only record of the process that runs in a directory. It is a POSIX
// record lock: the kernel releases it when the process ends, in whatever way, and knows
// its holder. A process id in a file could mean another process by now. Such a lock is
// also released when its process closes any descriptor of the file, so the holder opens
// the file only once.

// A HeldError says that another process runs in the directory.
type HeldError struct {
	Directory Directory
	Process   int
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("another devcluster (process %d) runs in %s: stop it with devcluster down --directory %[2]s, or name another directory",
		e.Process, e.Directory)
}

// A Lock is held by the process that runs in the directory.
type Lock struct{ file *os.File }

// Acquire takes the lock, or returns a HeldError.
func (d Directory) Acquire() (*Lock, error) {
	file, err := d.openLock()
	if err != nil {
		return nil, err
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &whole)
	if err == nil {
		return &Lock{file}, nil
	}
	held := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)
	file.Close()
	if !held {
		return nil, fmt.Errorf("lock %s: %w: is it on a file system with locks?", d.lock(), err)
	}
	process, err := d.Holder()
	if err != nil {
		return nil, err
	}
	return nil, &HeldError{d, process}
}

func (d Directory) openLock() (*os.File, error) {
	file, err := os.OpenFile(d.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.unusable(err)
	}
	return file, nil
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }

// Holder returns the process that runs in the directory, 0 when none does. The holder
// itself must not call it.
func (d Directory) Holder() (int, error) {
	file, err := os.Open(d.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, d.unusable(err)
	}
	defer file.Close()
	probe := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &probe); err != nil {
		return 0, fmt.Errorf("look at the lock %s: %w", d.lock(), err)
	}
	if probe.Type == syscall.F_UNLCK {
		return 0, nil
	}
	if probe.Pid <= 0 {
		return 0, fmt.Errorf("a devcluster in another container or on another machine runs in %s: stop it there", d)
	}
	return int(probe.Pid), nil
}
