// SPDX-License-Identifier: BSD-2-Clause

// Package sealing judges whether a worker can be sealed: whether the roll-back code restores
// everything of it that a session can change. Package sandbox looks the worker up, acts, and
// compares. Errors say why a worker cannot be sealed, and what its program has to do; they
// continue the words “cannot be sealed: ”.
package sealing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"shai.dev/monitor/internal/wire"
)

// File is a file that can be mapped. Device is as in [Mapping]. No file has the inode 0.
type File struct {
	Device string
	Inode  uint64
}

// Code is the roll-back code.
type Code struct {
	Text []byte
	File
}

// Worker is what the kernel and a worker's memory say about it. Nothing changes it meanwhile:
// its only thread waits in a system call.
type Worker struct {
	Status   Status
	Timing   Timing
	Mappings []Mapping
	Code     []byte // the memory where the roll-back code has to be; empty if there is none
	Table    []byte // the head of the state; empty if there is none
	Vectors  []byte // the first VectorsHead bytes of the state's vector registers
	// The files at its descriptors wire.FDGrant and wire.FDClasses. The zero File: it has no
	// grant, and so no channel that it could read.
	Grant, Classes File
}

// Seal is what a worker is rolled back to.
type Seal struct {
	Stack  uint64               // its stack pointer
	Ranges []wire.RollbackRange // all that it can write, and where the copies are
}

// Check returns the seal of a worker; or why it cannot be sealed. The worker has to have so many
// seccomp filters.
func Check(w Worker, code Code, filters int) (Seal, error) {
	if err := w.Status.check(filters); err != nil {
		return Seal{}, err
	}
	if err := w.Timing.check(); err != nil {
		return Seal{}, err
	}
	if err := checkMappings(w.Mappings); err != nil {
		return Seal{}, err
	}
	if err := w.checkCode(code); err != nil {
		return Seal{}, err
	}
	if len(w.Table) == 0 {
		return Seal{}, errNoState
	}
	table, err := wire.DecodeRollbackTable(w.Table)
	if err != nil {
		return Seal{}, fmt.Errorf("its state has a %w", err)
	}
	if err := checkFit(table.Unfit); err != nil {
		return Seal{}, err
	}
	ranges := table.Range[:table.RangeCount]
	size, err := checkRanges(ranges, w.Mappings)
	if err == nil {
		err = w.checkState(size)
	}
	if err == nil {
		err = checkVectors(w.Vectors)
	}
	if err == nil && w.Grant != (File{}) {
		err = w.checkGate()
	}
	return Seal{Stack: table.Stack, Ranges: ranges}, err
}

// checkFit returns an error if libshai does not want the worker sealed: nobody else sees why. Of
// interval timers the roll-back code stops those that were not told.
func checkFit(unfit uint64) error {
	switch unfit {
	case 0:
		return nil
	case wire.RollbackHasTimers:
		return errors.New("it has interval timers: stop them (setitimer, alarm) before the first shai_accept")
	case wire.RollbackHasNoReserve:
		return errors.New("the memory of shai_reserve cannot be reserved: a limit is too low, or malloc gives large " +
			"blocks back (link with glibc)")
	}
	return fmt.Errorf("libshai does not want it sealed (%d); libshai of another version?", unfit)
}

// VectorsHead is the size of what an XSAVE area begins with: the legacy region and the head.
const VectorsHead = wire.RollbackVectorsUsed + 64

// checkVectors returns an error if there are no vector registers in the state: libshai stores
// them if they fit.
func checkVectors(area []byte) error {
	const always = wire.RollbackVectorsAlways
	if len(area) < VectorsHead || binary.LittleEndian.Uint64(area[wire.RollbackVectorsUsed:])&always != always {
		return fmt.Errorf("the vector registers of this processor take more than %d KiB", wire.RollbackVectorsSize>>10)
	}
	return nil
}

var errNoState = errors.New("it has no state to be rolled back to; libshai of another version?")

// checkMappings returns an error if there is memory that a session could write and a roll-back
// does not restore.
func checkMappings(mappings []Mapping) error {
	for i, m := range mappings {
		switch {
		case m.isWritable() && m.isShared():
			return fmt.Errorf("memory at %v is shared and writable: unmap it before the first shai_accept", m)
		case m.isWritable() && m.Permissions[0] != 'r':
			return fmt.Errorf("memory at %v is writable and not readable: map it with PROT_READ, too", m)
		case m.has("gd") && !isGuarded(mappings[:i], m): // VM_GROWSDOWN
			return fmt.Errorf("memory at %v can grow: map it without MAP_GROWSDOWN, or map a page without permissions below it", m)
		case m.isWritable() && m.Key != "" && m.Key != "0":
			return fmt.Errorf("memory at %v has a protection key, which can keep the roll-back from writing to it", m)
		case m.has("um", "uw", "ui"):
			return fmt.Errorf("memory at %v is handled by userfaultfd", m)
		case m.has("ss"):
			return fmt.Errorf("memory at %v is a shadow stack, which a roll-back does not restore", m)
		case m.has("dp"): // VM_DROPPABLE
			return fmt.Errorf("memory at %v has the state of random numbers, which each session would get again: "+
				"do not use the vDSO's getrandom", m)
		case m.isWritable() && m.has("io", "pf"):
			return fmt.Errorf("memory at %v is a device's: unmap it before the first shai_accept", m)
		}
	}
	return nil
}

// isGuarded reports whether memory without permissions lies directly below a mapping, which
// then cannot grow.
func isGuarded(below []Mapping, m Mapping) bool {
	if len(below) == 0 {
		return false
	}
	guard := below[len(below)-1]
	return guard.End == m.Start && guard.Permissions == "---p"
}

// checkCode returns an error unless the roll-back code is in its place, as the supervisor has
// made it: with a private mapping of another file, later changes of the file would show.
func (w Worker) checkCode(code Code) error {
	m, err := w.checkFile("roll-back code", wire.RollbackCode, wire.RollbackCodeSize, "r-xp", code.File)
	if err == nil && !slices.Equal(w.Code, code.Text) {
		err = fmt.Errorf("the memory at %v is not the roll-back code", m)
	}
	return err
}

// checkFile returns the mapping at an address. It returns an error unless that is all of a file,
// with these permissions.
func (w Worker) checkFile(what string, start, size uint64, permissions string, file File) (Mapping, error) {
	at := slices.IndexFunc(w.Mappings, func(m Mapping) bool { return m.Start < start+size && m.End > start })
	if at < 0 {
		return Mapping{}, fmt.Errorf("the %s is not mapped; libshai of another version?", what)
	}
	m := w.Mappings[at]
	isWhole := m.Start == start && m.End == start+size && m.Offset == 0
	if !isWhole || m.Permissions != permissions || m.Device != file.Device || m.Inode != file.Inode {
		return m, fmt.Errorf("the memory at %v is not the %s", m, what)
	}
	return m, nil
}

// checkGate returns an error unless the worker has mapped what its gate looks at when it checks
// what comes by a channel: its own grant and the class table. The gate's buffer is memory like
// any other: without it the gate receives nothing.
func (w Worker) checkGate() error {
	if _, err := w.checkFile("grant", wire.GateGrant, wire.GateGrantSize, "r--s", w.Grant); err != nil {
		return err
	}
	_, err := w.checkFile("class table", wire.GateClasses, wire.GateClassesSize, "r--s", w.Classes)
	return err
}

// checkState returns an error unless the state, with a snapshot of so many bytes, is in one
// mapping that nobody can change.
func (w Worker) checkState(size uint64) error {
	at := slices.IndexFunc(w.Mappings, func(m Mapping) bool { return m.Start == wire.RollbackState })
	if at < 0 {
		return errNoState
	}
	m := w.Mappings[at]
	if m.Permissions != "r--p" || m.Inode != 0 || m.End-m.Start < wire.RollbackSnapshot+size {
		return fmt.Errorf("the state at %v can change, or is not whole", m)
	}
	return nil
}

// CheckCaller returns an error unless the seal was asked for by the roll-back code, which stops
// timers that nobody sees. It is given the address after the call.
func CheckCaller(address uint64) error {
	if address != wire.RollbackCode+wire.RollbackSealed {
		return fmt.Errorf("it asks for its seal at %x; libshai of another version?", address)
	}
	return nil
}

// CheckProgram returns an error unless so many bytes at an address are in memory that a roll-back
// restores.
func (s Seal) CheckProgram(address, size uint64) error {
	for _, r := range s.Ranges {
		if offset := address - r.Destination; address >= r.Destination && offset < r.Length && size <= r.Length-offset {
			return nil
		}
	}
	return fmt.Errorf("there is no room for its filter at %x", address)
}
