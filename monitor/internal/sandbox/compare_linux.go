// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"

	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// compare compares a worker that was rolled back with its seal. It waits in the roll-back
// code's accept4, and gets no session before the answer. Before a worker's second session this
// also shows that its filter is in force: the call that installs the filter can fail after the
// monitor has agreed.
func (q *requests) compare(question supervision.Compare) {
	defer q.running.Done()
	q.slots <- struct{}{} // a comparison reads all of a worker's memory
	defer func() { <-q.slots }()
	answer := supervision.Compared{ID: question.ID, PID: question.PID}
	err := func() (err error) {
		defer func() {
			if failure := recover(); failure != nil {
				recovered(failure)
				err = fmt.Errorf("comparing failed: %v", failure)
			}
		}()
		return q.seals.compare(int(question.PID), func() bool { return q.listener.valid(question.ID) })
	}()
	isWaiting := q.listener.valid(question.ID)
	if err == nil && isWaiting {
		answer.Equal = 1
	}
	if err != nil && isWaiting {
		q.seals.supervisor.sessions.Discarded(int(question.PID), err)
	}
	_ = q.seals.supervisor.Send(answer) // otherwise the task is being ended
}

// compare returns what differs. isWaiting reports whether the worker still waits for the answer.
func (s *seals) compare(process int, isWaiting func() bool) error {
	worker, err := workerOf(process)
	if err != nil {
		return err
	}
	seal, err := sealing.Check(worker, s.code, s.filters+1)
	if err != nil {
		return err
	}
	for _, r := range seal.Ranges {
		if err := compareMemory(process, r); err != nil {
			return err
		}
	}
	descriptors, err := os.ReadDir(procFile(process, "fd"))
	if err != nil {
		return err
	}
	names := make([]string, len(descriptors))
	for i, descriptor := range descriptors {
		names[i] = descriptor.Name()
	}
	if err := sealing.CheckDescriptors(names); err != nil {
		return err
	}
	call, err := sleepingCall(func() ([]byte, error) { return os.ReadFile(procFile(process, "syscall")) }, isWaiting)
	if err != nil {
		return err
	}
	return seal.CheckCall(string(call))
}

// sleepingCall reads the text of /proc/PID/syscall once the process sleeps. The kernel tells of a
// question before the process that asks sleeps. On a busy machine others may run first, and the
// text says only that it runs.
func sleepingCall(read func() ([]byte, error), isWaiting func() bool) ([]byte, error) {
	for {
		text, err := read()
		if err != nil || string(text) != "running\n" || !isWaiting() {
			return text, err
		}
		time.Sleep(time.Millisecond)
	}
}

// comparing has the memory in which parts of ranges are compared. It is used again, because new
// memory for each comparison costs page faults in every session.
var comparing = sync.Pool{New: func() any { return new([2][64 << 10]byte) }}

// compareMemory compares a range with its copy, which is in the worker's memory, too.
func compareMemory(process int, r wire.RollbackRange) error {
	room := comparing.Get().(*[2][64 << 10]byte)
	defer comparing.Put(room)
	for offset := uint64(0); offset < r.Length; offset += uint64(len(room[0])) {
		size := min(uint64(len(room[0])), r.Length-offset)
		here, there := room[0][:size], room[1][:size]
		if err := readMemory(process, r.Destination+offset, here); err != nil {
			return fmt.Errorf("read its memory at %x: %w", r.Destination+offset, err)
		}
		if err := readMemory(process, r.Source+offset, there); err != nil {
			return fmt.Errorf("read its state at %x: %w", r.Source+offset, err)
		}
		if bytes.Equal(here, there) {
			continue
		}
		for i := range here {
			if here[i] != there[i] {
				return fmt.Errorf("its memory at %x differs from its state", r.Destination+offset+uint64(i))
			}
		}
	}
	return nil
}
