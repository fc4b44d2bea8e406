// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

const (
	sysKldload   = 304
	sysKldunload = 305
	sysKldfind   = 306
	sysNmount    = 378
	sysSysctl    = 202

	rebootPowerOff = 0x4000
	rebootNoSync   = 0x4

	jailCreate = 0x1
)

// attachConsole makes the console our output: the kernel starts init without one.
func attachConsole() {
	console, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		powerOff()
	}
	for descriptor := range 3 {
		if int(console.Fd()) != descriptor {
			_ = syscall.Dup2(int(console.Fd()), descriptor)
		}
	}
	if console.Fd() > 2 {
		_ = console.Close()
	}
}

// powerOff does not return. The root file system needs no sync.
func powerOff() {
	_, _, _ = syscall.Syscall(syscall.SYS_REBOOT, rebootPowerOff|rebootNoSync, 0, 0)
	select {}
}

func loadModule(path string) (uintptr, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	id, _, errno := syscall.Syscall(sysKldload, uintptr(unsafe.Pointer(name)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return id, nil
}

func findModule(name string) (uintptr, error) {
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		return 0, err
	}
	id, _, errno := syscall.Syscall(sysKldfind, uintptr(unsafe.Pointer(text)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return id, nil
}

func unloadModule(id uintptr) error {
	if _, _, errno := syscall.Syscall(sysKldunload, id, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// mountMemory mounts a tmpfs.
func mountMemory(path string) error {
	vectors, err := parameters("fstype", "tmpfs", "fspath", path)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(sysNmount, uintptr(unsafe.Pointer(&vectors[0])), uintptr(len(vectors)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// createJail makes a jail that sees all files, with switches such as persist, and returns
// its number.
func createJail(name string, switches ...string) (int, error) {
	vectors, err := parameters("name", name, "path", "/")
	if err != nil {
		return 0, err
	}
	for _, name := range switches {
		vector, err := parameters(name)
		if err != nil {
			return 0, err
		}
		vectors = append(append(vectors, vector...), syscall.Iovec{}) // a switch has no value
	}
	id, _, errno := syscall.Syscall(syscall.SYS_JAIL_SET, uintptr(unsafe.Pointer(&vectors[0])), uintptr(len(vectors)),
		jailCreate)
	if errno != 0 {
		return 0, fmt.Errorf("jail_set: %w", errno)
	}
	return int(id), nil
}

func removeJail(id int) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_JAIL_REMOVE, uintptr(id), 0, 0); errno != 0 {
		return fmt.Errorf("jail_remove: %w", errno)
	}
	return nil
}

// parameters makes the vectors for nmount(2) and jail_set(2), from alternating names
// and values.
func parameters(texts ...string) ([]syscall.Iovec, error) {
	var vectors []syscall.Iovec
	for _, text := range texts {
		value, err := syscall.BytePtrFromString(text)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, syscall.Iovec{Base: value, Len: uint64(len(text) + 1)})
	}
	return vectors, nil
}

// openDescriptors counts this process's descriptors, including those that Go's run-time
// library opens when it first waits: the pipe makes it do so now.
func openDescriptors() int {
	if reader, writer, err := os.Pipe(); err == nil {
		_ = reader.Close()
		_ = writer.Close()
	}
	count := 0
	for descriptor := range 256 {
		if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(descriptor), syscall.F_GETFD, 0); errno == 0 {
			count++
		}
	}
	return count
}

var errNoSuchType = errors.New("no such kind of allocation")

// The layout of kern.malloc_stats: a header, and for each kind a header and the
// statistics of each possible processor (sys/malloc.h).
const (
	streamHeaderSize = 16
	typeHeaderSize   = 32
	statisticsSize   = 64
)

// liveAllocations counts the allocations of a kind that have not been freed.
func liveAllocations(kind string) (int64, error) {
	text, err := syscall.Sysctl("kern.malloc_stats")
	if err != nil {
		return 0, fmt.Errorf("kern.malloc_stats: %w", err)
	}
	data := append([]byte(text), 0) // Sysctl takes the last byte for a terminator
	if len(data) < streamHeaderSize {
		return 0, fmt.Errorf("kern.malloc_stats has %d bytes", len(data))
	}
	processors := int(binary.LittleEndian.Uint32(data[4:]))
	kinds := int(binary.LittleEndian.Uint32(data[8:]))
	entry := typeHeaderSize + processors*statisticsSize
	for i := range min(kinds, (len(data)-streamHeaderSize)/entry) {
		one := data[streamHeaderSize+i*entry:][:entry]
		name, _, _ := bytes.Cut(one[:typeHeaderSize], []byte{0})
		if string(name) != kind {
			continue
		}
		var live int64
		for processor := range processors {
			counts := one[typeHeaderSize+processor*statisticsSize:]
			live += int64(binary.LittleEndian.Uint64(counts[16:])) - int64(binary.LittleEndian.Uint64(counts[24:]))
		}
		return live, nil
	}
	return 0, errNoSuchType
}
