// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// askingAttempts are the victim's requests, in the form of libshai's.
func askingAttempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"ask":        ask,
		"ask-from":   askFrom,
		"ask-write":  path(askAndWrite),
		"ask-list":   path(askAndOpenBeneath),
		"ask-send":   path(askSend),
		"ask-forked": path(askForked),
		"trap":       trapAndOpen,
		"exhaust":    exhaust,
	}
}

// sendRequest sends a record with a fresh socket for the answer, and a directory unless
// that is -1. The result is this end of the socket.
func sendRequest(message wire.Message, directory int) (reply int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	passed := []int{ends[1]}
	if directory >= 0 {
		passed = append(passed, directory)
	}
	record, err := wire.Encode(7, message)
	if err != nil {
		return -1, err
	}
	err = unix.Sendmsg(wire.FDRequests, record, unix.UnixRights(passed...), nil, 0)
	unix.Close(ends[1])
	return ends[0], err
}

func receiveAnswer(reply int) (wire.Message, []int, error) {
	record, control := make([]byte, 4096), make([]byte, 4096)
	size, controlSize, _, _, err := unix.Recvmsg(reply, record, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	if size == 0 {
		return nil, nil, unix.ECONNRESET
	}
	_, message, err := wire.Decode(record[:size], wire.TypePlaced, wire.TypeAnswer)
	_, descriptors := senderOf(control[:controlSize])
	return message, descriptors, err
}

// answerTo asks and returns the descriptor of the answer, -1 without.
func answerTo(message wire.Message, directory int) (int, error) {
	reply, err := sendRequest(message, directory)
	if err != nil {
		return -1, err
	}
	defer unix.Close(reply)
	answered, descriptors, err := receiveAnswer(reply)
	if err != nil {
		return -1, err
	}
	if answer := answered.(wire.Answer); answer.Status != 0 {
		return -1, unix.Errno(answer.Status)
	}
	if len(descriptors) == 0 {
		return -1, nil
	}
	return descriptors[0], nil
}

func flagsOf(arguments []string) int32 {
	if len(arguments) == 0 {
		return unix.O_RDONLY
	}
	flags, err := strconv.ParseInt(arguments[0], 0, 32)
	if err != nil {
		panic(err)
	}
	return int32(flags)
}

// ask asks for a path, with flags if there is a second argument.
func ask(arguments []string) error {
	flags := flagsOf(arguments[1:])
	descriptor, err := answerTo(wire.RequestPath{Path: arguments[0], Flags: flags, Mode: 0o666}, -1)
	switch {
	case err != nil:
		return err
	case flags&openPath != 0:
		return unix.Fstat(descriptor, &unix.Stat_t{})
	case flags&accessMode == unix.O_WRONLY:
		_, err = unix.Write(descriptor, []byte("new"))
		return err
	}
	return show(descriptor, nil)
}

// askFrom asks for a path from a directory.
func askFrom(arguments []string) error {
	descriptor, err := answerTo(wire.RequestPath{Path: arguments[1], Flags: flagsOf(arguments[2:])},
		number(arguments[0]))
	return show(descriptor, err)
}

// askAndWrite writes to what it may read.
func askAndWrite(name string) error {
	descriptor, err := answerTo(wire.RequestPath{Path: name}, -1)
	if err != nil {
		return err
	}
	_, err = unix.Write(descriptor, []byte("new"))
	return err
}

// askAndOpenBeneath opens beneath a directory that it may list.
func askAndOpenBeneath(name string) error {
	directory, err := answerTo(wire.RequestPath{Path: name, Flags: unix.O_DIRECTORY}, -1)
	if err != nil {
		return err
	}
	if err := list(directory); err != nil {
		fmt.Println("cannot be listed")
		return err
	}
	return show(unix.Openat(directory, "allowed.txt", unix.O_RDONLY, 0))
}

// askSend asks whether it may write to a number, and does so on what it is given.
func askSend(text string) error {
	descriptor, err := answerTo(wire.RequestSend{Number: int32(number(text))}, -1)
	if err != nil {
		return err
	}
	_, err = unix.Write(descriptor, []byte("message!"))
	return err
}

// askForked asks from a forked process, whose number it prints.
func askForked(name string) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return err
	}
	record, err := wire.Encode(7, wire.RequestPath{Path: name})
	if err != nil {
		return err
	}
	control := unix.UnixRights(ends[1])
	vector := unix.Iovec{Base: &record[0], Len: uint64(len(record))}
	message := unix.Msghdr{Iov: &vector, Iovlen: 1, Control: &control[0], Controllen: uint32(len(control))}
	err = forkAndWait(func() syscall.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, wire.FDRequests, uintptr(unsafe.Pointer(&message)), 0)
		return errno
	})
	if err != nil {
		return err
	}
	_, descriptors, err := receiveAnswer(ends[0])
	closeAll(descriptors)
	return err
}

// trapAndOpen asks for signals of refused calls first, if its arguments say so.
func trapAndOpen(arguments []string) error {
	if arguments[0] == "asked" {
		if _, err := answerTo(wire.RequestTraps{}, -1); err != nil {
			return err
		}
	}
	_, err := unix.Open(arguments[1], unix.O_RDONLY, 0)
	return err
}

// exhaust asks until there is no room for another descriptor.
func exhaust(arguments []string) error {
	limit := unix.Rlimit{Cur: 400, Max: 400}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for {
		if _, err := answerTo(wire.RequestPath{Path: arguments[0]}, -1); err != nil {
			return err
		}
	}
}
