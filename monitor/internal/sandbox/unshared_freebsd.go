// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// A worker of a task that serves users is examined before it may ask for a session: what it has of
// its zygote, other workers and their sessions have, too. The stub asks for this first of all. So
// the worker has made nothing itself, and everything that the monitor has not made is shared.
//
// The worker waits for the answer, and its zygote and other workers run on. None of them can
// change the outcome: memory and descriptors come to a process by fork, by a socket that it
// shares with the sender, or by its own calls. What another process gives up meanwhile
// is found, unless nobody else has it.

const (
	errThreaded   = refusal("a worker of a task that serves users has one thread when it is forked")
	errCommon     = refusal("a process of a task that serves users may not share memory or descriptors with another")
	errUntold     = refusal("the kernel does not tell what a worker shares with other processes")
	errUnexamined = refusal("a worker that shai_fork_worker has not made gets no session")
)

// mustBeExamined reports whether processes of the task are examined before they get sessions.
func (q *requests) mustBeExamined() bool {
	return q.spec.Serving && q.spec.waived&plan.NothingShared == 0
}

// examineWorker returns an error if the worker that asks shares anything that the monitor has not
// made; otherwise the worker may ask for sessions.
func (r *request) examineWorker() error {
	if !r.mustBeExamined() {
		return nil
	}
	r.examining.Lock() // or a worker that was examined meanwhile would not be in the list
	defer r.examining.Unlock()
	list, err := identifiedProcessesOf("kern.proc.proc", 0)
	if err != nil {
		return err
	}
	worker, err := alone(list, r.process)
	if err == nil {
		err = r.sharesNoDescriptors()
	}
	if err == nil {
		err = r.sharesNoMemory()
	}
	if err != nil {
		return err
	}
	if started, err := startOf(r.process); err != nil || started != worker.started {
		return errGone
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	maps.DeleteFunc(r.examined, func(pid int, started time.Duration) bool {
		return !slices.ContainsFunc(list, func(p process) bool { return p.pid == pid && p.started == started })
	})
	r.examined[r.process] = worker.started
	return nil
}

// mayServe reports whether the process that asks for a session is a worker that was examined.
func (r *request) mayServe() bool {
	if !r.mustBeExamined() {
		return true
	}
	started, err := startOf(r.process)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	examined, isExamined := r.examined[r.process]
	return err == nil && isExamined && examined == started
}

// startOf returns when a process was made.
func startOf(pid int) (time.Duration, error) {
	list, err := identifiedProcessesOf("kern.proc.pid", pid)
	if err == nil && len(list) != 1 {
		err = unix.ESRCH
	}
	if err != nil {
		return 0, err
	}
	return list[0].started, nil
}

// alone finds a process in a list, and checks that it has one thread and that no other process
// in the list has its address space or its table of descriptors.
func alone(list []process, pid int) (process, error) {
	i := slices.IndexFunc(list, func(p process) bool { return p.pid == pid })
	if i < 0 {
		return process{}, errGone
	}
	worker := list[i]
	switch {
	case worker.memory == 0 || worker.files == 0:
		return process{}, errUntold
	case worker.threads != 1:
		return process{}, errThreaded
	}
	for _, other := range list {
		if other.pid != pid && (other.memory == worker.memory || other.files == worker.files) {
			return process{}, errCommon
		}
	}
	return worker, nil
}

// sharesNoDescriptors checks that the worker has nothing but what its task was given, where it was
// given, and its end of the socket for the answer.
func (r *request) sharesNoDescriptors() error {
	ours, err := objectOf(r.reply)
	if err != nil {
		return err
	}
	list, err := descriptorsOf(r.process)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(list)) {
		if d := list[number]; !d.isEndOf(ours) && !r.isAsGiven(d) {
			return refusal(fmt.Sprintf("close descriptor %d (%s) before forking: workers would share it", number,
				d.described(d.path)))
		}
	}
	return nil
}

// isAsGiven reports whether a descriptor is what the task was given at its number, or the null
// device, which has no offset and no flags without the rights to them.
func (q *requests) isAsGiven(d openDescriptor) bool {
	const seek, control = 1<<2 | 1<<3, 1 << 15
	if given, isGiven := q.places[d.number]; isGiven && given == d.object {
		return true
	}
	if d.number >= wire.FDReservedEnd {
		return d.number < wire.FDReservedEnd+q.imageSize && q.image[d.object]
	}
	return d.kind == kindFile && d.rights&(seek|control) == 0 && plan.IsHarmless(d.described(d.path))
}

// keepImage describes what the run-time linker is given of the program and its libraries. A
// session opens these anew for itself.
func (q *requests) keepImage(capsicum *plan.Capsicum) error {
	paths := slices.Concat(capsicum.Libraries, capsicum.Preloads)
	q.image, q.imageSize = map[object]bool{}, 1+len(paths) // and the program, which the linker closes
	for _, path := range paths {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err == nil {
			q.image[object{kind: kindFile, flags: openRead, this: stat.Dev, other: stat.Ino}] = true
		} else if err != unix.ENOENT {
			return fmt.Errorf("look at %s: %w", path, err)
		}
	}
	return nil
}

// sharesNoMemory checks that the worker can write to no memory of others, and others to none of
// its own, but for the class table, to which only the monitor writes.
func (r *request) sharesNoMemory() error {
	records, err := recordsOf("kern.proc.vmmap", r.process)
	if err != nil {
		return err
	}
	for _, record := range records {
		m := describePart(record)
		if m.isShared() && !(m.kind == mappedFile && r.isGivenFile(m.file)) {
			return refusal(fmt.Sprintf("unmap the shared memory at %#x before forking: workers would share it", m.start))
		}
	}
	return nil
}

// part is a part of an address space.
type part struct {
	start, end uint64
	kind       uint32
	flags      uint32
	protection uint32
	references int32 // to its topmost object
	own        uint64
	file       object
}

func describePart(record []byte) part {
	const start, end, kind, file, flags, protection, references, fileSystem = 8, 16, 4, 32, 44, 56, 60, 88
	order := binary.LittleEndian
	m := part{start: order.Uint64(record[start:]), end: order.Uint64(record[end:]), kind: order.Uint32(record[kind:]),
		flags: order.Uint32(record[flags:]), protection: order.Uint32(record[protection:]),
		references: int32(order.Uint32(record[references:])), own: order.Uint64(record[fileSystem:])}
	m.file = object{kind: kindFile, this: m.own, other: order.Uint64(record[file:])}
	return m
}

// isShared reports whether others see what is written here, or could. In a process that was just
// forked, memory is its own if it is still to be copied, or was copied already: then nothing else
// refers to the copy. Memory that was locked, which fork(2) copies at once, looks like that, too.
func (m part) isShared() bool {
	const copied, toBeCopied = 1, 2
	switch {
	case m.kind == mappedNothing || m.kind == mappedGuard || m.flags&toBeCopied != 0:
		return false
	case m.flags&copied != 0:
		return m.references > 1
	case m.kind == mappedByKernel:
		// The page with the kernel's clock and signal code.
		return m.protection&mappingWrites != 0 || m.end-m.start > uint64(os.Getpagesize())
	case m.kind == mappedFile || m.own == 0:
		return true
	}
	return m.references > 1
}
