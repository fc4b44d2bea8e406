// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// probeName is the argument of a process that plays an end of a channel. The variables say
// of which channel, which end, and where the file is that both may read.
const (
	probeName       = "shai-channel-probe"
	channelVariable = "CHANNEL"
	endVariable     = "END"
	libraryVariable = "LIBRARY"
)

func init() { roles[probeName] = playChannel }

// channelProbe is one way to carry bits. Errors are of no interest: an end that fails
// carries nothing.
type channelProbe struct {
	name  string
	timed bool
	play  func(p *player)
}

var channelProbes = []channelProbe{
	{name: "flock", play: playFlock},
	{name: "record locks", play: playRecordLocks},
	{name: "time of access", play: playTimeOfAccess},
	{name: "page cache, cachestat", play: playPages(cachestat)},
	{name: "page cache, mincore", play: playPages(mincore)},
	{name: "page cache, RWF_NOWAIT", play: playPages(readWithoutWaiting)},
	{name: "mapped pages, smaps", play: playMappedPages},
	{name: "page cache, time of a read", timed: true, play: playPages(timeOfRead)},
	{name: "processor, time of a loop", timed: true, play: playProcessor},
}

// player is a process at one end. Senders use send, receivers prepare and receive.
type player struct {
	library  string
	document int // the sender's is for reading, the receiver's for writing
	send     func(bit bool)
	prepare  func()
	receive  func() uint64
}

// playChannel obeys commands until there are no more.
func playChannel() {
	p := &player{library: os.Getenv(libraryVariable), document: openDocument(),
		send: func(bool) {}, prepare: func() {}, receive: func() uint64 { return 0 }}
	for _, probe := range channelProbes {
		if probe.name == os.Getenv(channelVariable) {
			probe.play(p)
		}
	}
	command := make([]byte, 1)
	for {
		if count, err := unix.Read(commandNumber, command); err != nil || count == 0 {
			return
		}
		var value uint64
		switch command[0] {
		case commandPrepare:
			p.prepare()
		case commandReceive:
			value = p.receive()
		default:
			p.send(command[0] == commandOne)
		}
		if _, err := unix.Write(answerNumber, binary.LittleEndian.AppendUint64(nil, value)); err != nil {
			return
		}
	}
}

func openDocument() int {
	mode := unix.O_RDONLY
	if os.Getenv(endVariable) == nameOfEnd(plan.Write) {
		mode = unix.O_WRONLY
	}
	file, err := unix.Openat(wire.FDCapability, documentName, mode, 0)
	if err != nil {
		return -1
	}
	return file
}

// nameOfEnd names the end that has these rights on the document.
func nameOfEnd(rights plan.Rights) string { return strconv.Itoa(int(rights)) }

func playFlock(p *player) {
	file := p.document
	p.send = func(bit bool) {
		_ = unix.Flock(file, unix.LOCK_UN)
		if bit {
			_ = unix.Flock(file, unix.LOCK_EX)
		}
	}
	p.receive = func() uint64 {
		if unix.Flock(file, unix.LOCK_EX|unix.LOCK_NB) != nil {
			return 0
		}
		_ = unix.Flock(file, unix.LOCK_UN)
		return 1
	}
}

func playRecordLocks(p *player) {
	file := p.document
	lock := func(kind int16) error {
		return unix.FcntlFlock(uintptr(file), unix.F_SETLK, &unix.Flock_t{Type: kind})
	}
	p.send = func(bit bool) {
		_ = lock(unix.F_UNLCK)
		if bit {
			_ = lock(unix.F_RDLCK)
		}
	}
	p.receive = func() uint64 {
		if lock(unix.F_WRLCK) != nil {
			return 0
		}
		_ = lock(unix.F_UNLCK)
		return 1
	}
}

// playTimeOfAccess: the kernel records an access only if the last one was before the last
// change, so the receiver changes the file before each bit.
func playTimeOfAccess(p *player) {
	file := p.document
	var before unix.Stat_t
	p.prepare = func() {
		for changed, tries := false, 0; !changed && tries < 100; tries++ {
			_, _ = unix.Pwrite(file, []byte{0}, 0)
			var stat unix.Stat_t
			_ = unix.Fstat(file, &stat)
			changed = stat.Mtim.Nano() > stat.Atim.Nano() && stat.Mtim.Nano() > before.Mtim.Nano()
			before = stat
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond) // longer than the kernel's clock tick
	}
	p.send = func(bit bool) {
		if bit {
			_, _ = unix.Pread(file, make([]byte, 1), 0)
		}
	}
	p.receive = func() uint64 {
		var stat unix.Stat_t
		_ = unix.Fstat(file, &stat)
		if stat.Atim != before.Atim {
			return 1
		}
		return 0
	}
}

// playPages makes a channel of what a call tells about a page of a file that both read.
// Every bit has a page of its own.
func playPages(look func(file, page int) uint64) func(*player) {
	return func(p *player) {
		file, err := unix.Open(p.library, unix.O_RDONLY, 0)
		if err != nil {
			return
		}
		_ = unix.Fadvise(file, 0, 0, unix.FADV_RANDOM) // no reading ahead
		page := 0
		p.prepare = func() {
			page = (page + 1) % libraryPages
			_ = unix.Fadvise(file, 0, 0, unix.FADV_DONTNEED) // all, since pages may be kept in groups
		}
		p.receive = func() uint64 { return look(file, page) }
		p.send = func(bit bool) {
			page = (page + 1) % libraryPages
			if bit {
				_, _ = unix.Pread(file, make([]byte, 1), int64(page)*pageSize)
			}
		}
	}
}

func cachestat(file, page int) uint64 {
	var counts unix.Cachestat_t
	_ = unix.Cachestat(uint(file), &unix.CachestatRange{Off: uint64(page) * pageSize, Len: pageSize}, &counts, 0)
	return counts.Cache
}

func mincore(file, page int) uint64 {
	memory, err := unix.Mmap(file, int64(page)*pageSize, pageSize, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(memory) }()
	var present byte
	unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), pageSize, uintptr(unsafe.Pointer(&present)))
	return uint64(present & 1)
}

// playMappedPages: of a page that others have mapped as well, the kernel says so.
func playMappedPages(p *player) {
	file, err := unix.Open(p.library, unix.O_RDONLY, 0)
	if err != nil {
		return
	}
	var held []byte
	p.send = func(bit bool) {
		_ = unix.Munmap(held)
		if held = nil; bit {
			held = mapPage(file)
		}
	}
	p.receive = func() uint64 {
		memory := mapPage(file)
		defer func() { _ = unix.Munmap(memory) }()
		smaps, err := os.ReadFile("/proc/self/smaps")
		if err != nil || memory == nil {
			return 0
		}
		begin := fmt.Sprintf("\n%x-", uintptr(unsafe.Pointer(&memory[0])))
		_, here, _ := strings.Cut(string(smaps), begin)
		here, _, _ = strings.Cut(here, "VmFlags")
		for line := range strings.Lines(here) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "Shared_") && fields[1] != "0" {
				return 1
			}
		}
		return 0
	}
}

// mapPage maps the first page of a file, and has the kernel put it into the page table.
func mapPage(file int) []byte {
	memory, err := unix.Mmap(file, 0, pageSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil
	}
	return memory
}

func readWithoutWaiting(file, page int) uint64 {
	count, err := unix.Preadv2(file, [][]byte{make([]byte, 1)}, int64(page)*pageSize, unix.RWF_NOWAIT)
	if err != nil || count != 1 {
		return 0
	}
	return 1
}

func timeOfRead(file, page int) uint64 {
	begun := time.Now()
	_, _ = unix.Pread(file, make([]byte, 1), int64(page)*pageSize)
	return uint64(time.Since(begun))
}

// playProcessor: the sender computes for a while after it has answered, on the receiver's
// processor.
func playProcessor(p *player) {
	const while = 4 * time.Millisecond
	busy := make(chan struct{})
	go func() {
		for range busy {
			for begun := time.Now(); time.Since(begun) < while; {
			}
		}
	}()
	p.prepare = func() { time.Sleep(2 * while) } // the last bit's computing is over
	p.send = func(bit bool) {
		if bit {
			busy <- struct{}{}
		}
	}
	p.receive = func() uint64 {
		var loops uint64
		for begun := time.Now(); time.Since(begun) < while; {
			loops++
		}
		return loops
	}
}
