// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClassTableHidesItsReaders: who holds the table does not see that others map it.
func TestClassTableHidesItsReaders(t *testing.T) {
	c := opened(t)
	path := c.ClassTable().path
	// Before the time of its last change: file systems then record the next access (relatime).
	long := []unix.Timespec{{Sec: 1}, {Sec: 2}}
	accessed := func(file *os.File) int64 {
		t.Helper()
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, long, 0); err != nil {
			t.Fatal(err)
		}
		mapping, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(mapping) //nolint:errcheck // of a test
		var about unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &about); err != nil {
			t.Fatal(err)
		}
		return about.Atim.Sec
	}
	quiet, err := c.ClassTable().File()
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	if when := accessed(quiet); when != 1 {
		t.Errorf("the access at %d is recorded", when)
	}
	ordinary, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ordinary.Close()
	if when := accessed(ordinary); when == 1 {
		t.Log("the file system of temporary files records no accesses: the test shows nothing here")
	}
}
