// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDescriptor is what the kernel says about a descriptor.
type openDescriptor struct {
	number int
	object
	rights  uint64 // the first word
	waiting uint32 // bytes that a socket has not delivered
	path    string
}

// object tells what a descriptor refers to from everything else that exists.
type object struct {
	kind  int32
	flags int32 // openRead, openWrite
	// Of a pipe or a socket, the kernel's addresses of this end and of the other. Of a file,
	// its device and number.
	this, other uint64
}

// Of sys/user.h.
const (
	kindFile, kindSocket, kindPipe, kindQueue, kindMemory = 1, 2, 3, 5, 8

	openRead, openWrite = 1, 2

	mappedNothing, mappedAnonymously, mappedFile, mappedByKernel, mappedGuard = 0, 1, 2, 5, 9

	mappingWrites    = 2
	mappingIsPrivate = 1 | 2 // copied when it is written
)

var kindNames = map[int32]string{kindFile: "file", kindSocket: "socket", kindPipe: "pipe", kindMemory: "memory"}

// describeDescriptor decodes a struct kinfo_file; the offsets are the same on all 64-bit machines.
func describeDescriptor(record []byte) openDescriptor {
	const (
		kind, number, flags           = 4, 8, 16
		device, inode                 = 288, 304
		pipe, pipeOther               = 304, 312
		socket, socketOther, received = 304, 320, 332
		rights, path                  = 344, 368
	)
	order := binary.LittleEndian
	d := openDescriptor{number: int(int32(order.Uint32(record[number:]))), rights: order.Uint64(record[rights:]),
		path: unix.ByteSliceToString(record[path:])}
	d.kind, d.flags = int32(order.Uint32(record[kind:])), int32(order.Uint32(record[flags:]))&(openRead|openWrite)
	switch d.kind {
	case kindFile:
		d.this, d.other = order.Uint64(record[device:]), order.Uint64(record[inode:])
	case kindPipe:
		d.this, d.other = order.Uint64(record[pipe:]), order.Uint64(record[pipeOther:])
	case kindSocket:
		d.this, d.other = order.Uint64(record[socket:]), order.Uint64(record[socketOther:])
		d.waiting = order.Uint32(record[received:])
	}
	return d
}

// writes reports whether a file can be written by the descriptor, or mapped to be written.
func (d openDescriptor) writes() bool {
	const write, truncate = 1 << 1, 1 << 9
	return d.flags&openWrite != 0 && d.rights&(write|truncate) != 0
}

// objectOf describes what one of this process's descriptors refers to.
func objectOf(descriptor int) (object, error) {
	file, err := describe(descriptor)
	if err != nil {
		return object{}, err
	}
	return describeDescriptor(unsafe.Slice((*byte)(unsafe.Pointer(&file)), unsafe.Sizeof(file))).object, nil
}

// descriptorsOf lists the descriptors of a stopped process.
func descriptorsOf(pid int) (map[int]openDescriptor, error) {
	records, err := recordsOf("kern.proc.filedesc", pid)
	if err != nil {
		return nil, err
	}
	list := map[int]openDescriptor{}
	for _, record := range records {
		if d := describeDescriptor(record); d.number >= 0 { // others are directories, and the program
			list[d.number] = d
		}
	}
	return list, nil
}

// recordsOf returns the structures, each of which begins with its size, of a variable.
func recordsOf(variable string, pid int) (records [][]byte, err error) {
	const least = 372 // up to the path
	text, err := unix.SysctlRaw(variable, pid)
	if err != nil {
		return nil, err
	}
	for len(text) > 4 {
		size := int(binary.LittleEndian.Uint32(text))
		if size > len(text) || size < least && variable == "kern.proc.filedesc" || size < mappingPath {
			return nil, unix.EPROTO
		}
		records = append(records, text[:size])
		text = text[size:]
	}
	if len(records) > ExaminedMax {
		return nil, ErrTooMany
	}
	return records, nil
}

// mapping is a mapping that could write to what others see.
type mapping struct {
	start uint64
	object
	path string
}

const mappingPath = 136

// mappingsOf lists those of a stopped process. A kernel that does not say whether a shared
// mapping of a file could be made writable (14) has all of them listed.
func mappingsOf(pid int) (list []mapping, err error) {
	const start, kind, file, flags, protection, fileSystem = 8, 4, 32, 44, 56, 88
	records, err := recordsOf("kern.proc.vmmap", pid)
	if err != nil {
		return nil, err
	}
	order := binary.LittleEndian
	for _, record := range records {
		m := mapping{start: order.Uint64(record[start:]), path: unix.ByteSliceToString(record[mappingPath:])}
		m.this, m.other = order.Uint64(record[fileSystem:]), order.Uint64(record[file:])
		of := order.Uint32(record[kind:])
		if order.Uint32(record[flags:])&mappingIsPrivate != 0 || !m.writes(of, order.Uint32(record[protection:])) {
			continue
		}
		m.kind = kindMemory
		if of == mappedFile {
			m.kind = kindFile
		}
		list = append(list, m)
	}
	return list, nil
}

// writes reports whether a shared mapping of something with this protection could write to what
// others see. Memory that has the number of its object is the process's own.
func (m mapping) writes(of, protection uint32) bool {
	now, most := protection, protection>>16
	switch of {
	case mappedFile:
		return most == 0 || most&mappingWrites != 0
	case mappedNothing, mappedAnonymously, mappedGuard:
		return false
	}
	return now&mappingWrites != 0 && m.this == 0
}

// isEndOf reports whether this is the socket, or its other end.
func (o object) isEndOf(socket object) bool {
	return o.kind == kindSocket && (o.this == socket.this || o.this == socket.other)
}

// hasName reports whether a path leads to the file, and is its only name.
func (o object) hasName(path string) bool {
	var stat unix.Stat_t
	return path != "" && unix.Lstat(path, &stat) == nil && stat.Dev == o.this && stat.Ino == o.other &&
		(stat.Nlink == 1 || stat.Mode&unix.S_IFMT == unix.S_IFCHR)
}

// described is the path of a file, or what a message calls something without one.
func (o object) described(path string) string {
	switch {
	case o.hasName(path):
		return path
	case o.kind == kindFile && path != "":
		return "file with several names, or another one now: " + path
	case o.kind == kindFile:
		return "file without a name"
	}
	if name := kindNames[o.kind]; name != "" {
		return name
	}
	return "something that cannot be examined"
}
