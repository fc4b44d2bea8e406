// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// process is the kernel's information on a process.
type process struct {
	pid, parent int
	ended       bool          // a zombie
	stopped     bool          // by a signal
	used        time.Duration // processor time, without that of its children
	ofChildren  time.Duration // processor time of children that it has waited for, with that of theirs
	started     time.Duration // since 1970, as the clock says now
	threads     int
	// The kernel's addresses of its address space and of its table of descriptors.
	memory, files uint64
}

// Offsets in struct kinfo_proc, sys/user.h; the same on all 64-bit machines.
const (
	processTable    = 48
	processMemory   = 56
	processNumber   = 72
	processParent   = 76
	processUsed     = 328 // microseconds
	processStarted  = 336 // struct timeval
	processChildren = 352 // struct timeval
	processState    = 388
	processThreads  = 596
	processLeast    = 600
	stateStopped    = 4
	stateZombie     = 5
)

// processesOf returns the processes that a variable beneath kern.proc lists.
func processesOf(variable string, argument int) ([]process, error) {
	text, err := unix.SysctlRaw(variable, argument)
	if err != nil {
		return nil, err
	}
	var list []process
	for len(text) >= processLeast {
		size := int(binary.LittleEndian.Uint32(text))
		if size < processLeast || size > len(text) {
			return nil, unix.EPROTO
		}
		one := process{pid: int(binary.LittleEndian.Uint32(text[processNumber:])),
			parent: int(binary.LittleEndian.Uint32(text[processParent:])), ended: text[processState] == stateZombie,
			stopped: text[processState] == stateStopped, used: microseconds(text[processUsed:]),
			ofChildren: timeval(text[processChildren:]), started: timeval(text[processStarted:]),
			threads: int(binary.LittleEndian.Uint32(text[processThreads:])),
			memory:  binary.LittleEndian.Uint64(text[processMemory:]),
			files:   binary.LittleEndian.Uint64(text[processTable:])}
		if one.ended { // its children's time has been added to its own (exit1 in kern_exit.c), and is still there
			one.used = max(one.used-one.ofChildren, 0)
		}
		list, text = append(list, one), text[size:]
	}
	return list, nil
}

func timeval(text []byte) time.Duration {
	return time.Duration(binary.LittleEndian.Uint64(text))*time.Second + microseconds(text[8:])
}

func microseconds(text []byte) time.Duration {
	return time.Duration(binary.LittleEndian.Uint64(text)) * time.Microsecond
}

// identifiedProcessesOf returns processes with the time since the machine's start at which each was
// made, which does not change when the clock is set. With its number it identifies a process.
func identifiedProcessesOf(variable string, argument int) ([]process, error) {
	for {
		before, err := unix.SysctlRaw("kern.boottime")
		if err != nil {
			return nil, err
		}
		list, err := processesOf(variable, argument)
		if err != nil {
			return nil, err
		}
		after, err := unix.SysctlRaw("kern.boottime")
		if err != nil {
			return nil, err
		}
		if len(before) < 16 {
			return nil, unix.EPROTO
		}
		if !bytes.Equal(before, after) {
			continue // the clock was set meanwhile
		}
		for i := range list {
			list[i].started -= timeval(before)
		}
		return list, nil
	}
}

// ParentOf returns the parent of a process.
func ParentOf(pid int) (int, error) {
	list, err := processesOf("kern.proc.pid", pid)
	if err == nil && (len(list) != 1 || list[0].pid != pid) {
		err = unix.ESRCH
	}
	if err != nil {
		return 0, fmt.Errorf("find the parent of process %d: %w", pid, err)
	}
	return list[0].parent, nil
}

// childrenOf returns the children of a process, those too that nobody has waited for.
func childrenOf(parent int) (children []int) {
	list, _ := processesOf("kern.proc.proc", 0)
	for _, one := range list {
		if one.parent == parent {
			children = append(children, one.pid)
		}
	}
	return children
}

// umaskOf returns the file mode creation mask of a process.
func umaskOf(pid int) (uint32, error) {
	text, err := unix.SysctlRaw("kern.proc.umask", pid)
	if err != nil {
		return 0, err
	}
	if len(text) != 2 {
		return 0, unix.ESRCH
	}
	return uint32(binary.LittleEndian.Uint16(text)), nil
}

// killOrphans kills the processes that ended workers of a task left behind, and returns
// when none of them runs: a process that a session forked holds the same descriptors as
// the session did. Orphans are children of the keeper, as the program is.
func killOrphans(program int) error {
	keeper, err := ParentOf(program)
	if errors.Is(err, unix.ESRCH) {
		return nil // the keeper kills whatever is left
	}
	for found := true; found && err == nil; {
		found = false
		var list []process
		if list, err = processesOf("kern.proc.proc", 0); err != nil {
			break
		}
		for _, one := range list {
			if one.parent == keeper && one.pid != program && !one.ended && err == nil {
				found, err = true, killAndAwait(one.pid)
			}
		}
	}
	return err
}

// killAndAwait kills a process and returns when it no longer runs.
func killAndAwait(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(queue)
	var exit unix.Kevent_t
	unix.SetKevent(&exit, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit.Fflags = unix.NOTE_EXIT
	if _, err := unix.Kevent(queue, []unix.Kevent_t{exit}, nil, nil); err != nil {
		return ignoreGone(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return ignoreGone(err)
	}
	for {
		if _, err = unix.Kevent(queue, nil, make([]unix.Kevent_t, 1), nil); err != unix.EINTR {
			return err
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
