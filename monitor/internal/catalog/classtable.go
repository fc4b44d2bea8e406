// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ClassTable is the file that tasks map to look up a conduit's class: one 32-bit
// little-endian number per conduit number, 0 for no class. An entry changes by one
// aligned store, so a reader sees either the old number or the new one.
//
// The file is always longer than the conduits need, by at least tableAhead entries, so
// that a mapping made now covers conduits that are registered later. Its blocks are
// allocated before they are mapped: a full disk is an error here, and never a SIGBUS.
type ClassTable struct {
	path string
	file *os.File

	mu      sync.Mutex
	mapping []byte
}

// tableAhead is the number of entries by which the table grows: 4 MiB at a time.
const tableAhead = 1 << 20

// openClassTable maps the table and corrects wrong entries.
func openClassTable(path string, conduits *conduitTable) (*ClassTable, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("class table %s: this machine is big-endian and the table is little-endian", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // tasks of other users read it
	if err != nil {
		return nil, fmt.Errorf("open class table: %w", err)
	}
	t := &ClassTable{path: path, file: file}
	if err := t.repair(conduits); err != nil {
		_ = t.close()
		return nil, err
	}
	return t, nil
}

// File returns the table, open for reading only, to hand to a task. The caller closes it.
func (t *ClassTable) File() (*os.File, error) {
	file, err := os.OpenFile(t.path, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, fmt.Errorf("open class table: %w", err)
	}
	return file, nil
}

// Entry returns the class that the table holds for a conduit.
func (t *ClassTable) Entry(id uint32) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uint64(id)*4 >= uint64(len(t.mapping)) {
		return 0
	}
	return atomic.LoadUint32(t.entry(id))
}

func (t *ClassTable) entry(id uint32) *uint32 {
	return (*uint32)(unsafe.Pointer(&t.mapping[uint64(id)*4])) //nolint:gosec // the mapping is shared with tasks, as 32-bit numbers
}

// repair makes the table agree with the catalog, entry by entry, so that tasks that have
// mapped it see no gap.
func (t *ClassTable) repair(conduits *conduitTable) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.grow(conduits.last); err != nil {
		return err
	}
	for id := uint32(1); uint64(id)*4 < uint64(len(t.mapping)); id++ {
		if class := conduits.class(id); atomic.LoadUint32(t.entry(id)) != class {
			atomic.StoreUint32(t.entry(id), class)
		}
	}
	return nil
}

// apply stores the classes of conduits that moved.
func (t *ClassTable) apply(moves []Move) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, move := range moves {
		if err := t.grow(move.ID); err != nil {
			return err
		}
		atomic.StoreUint32(t.entry(move.ID), move.To)
	}
	return nil
}

// grow makes room for a conduit. The tasks' mappings stay valid.
func (t *ClassTable) grow(id uint32) error {
	if needed := (uint64(id) + 1) * 4; needed <= uint64(len(t.mapping)) {
		return nil
	}
	size := (int64(id)/tableAhead + 2) * tableAhead * 4
	if info, err := t.file.Stat(); err != nil {
		return fmt.Errorf("grow class table: %w", err)
	} else if info.Size() > size {
		size = info.Size() &^ 3
	}
	if err := reserve(t.file, size); err != nil {
		return fmt.Errorf("grow class table to %d bytes: %w", size, diskFull(err))
	}
	mapping, err := unix.Mmap(int(t.file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map class table: %w", err)
	}
	if t.mapping != nil {
		_ = unix.Munmap(t.mapping)
	}
	t.mapping = mapping
	return nil
}

func (t *ClassTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mapping != nil {
		_ = unix.Munmap(t.mapping)
		t.mapping = nil
	}
	return t.file.Close()
}
