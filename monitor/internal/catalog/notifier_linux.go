// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// notifier reports what happens in directories, by fanotify(7). It marks the directories
// of documents and those above them, each by its inode: a mark of the whole file system
// would report everything that any program does there, and not every file system (overlay)
// has such marks. Its events name a directory by its handle, which is compared with the
// handles of the marked ones.
type notifier struct {
	data      int        // the data directory
	reporting sync.Mutex // held from before events are read until they are reported
	file      *os.File
	paths     map[string]string // by handle; as all maps here, guarded by View.mu
	marks     map[string]string // handles, by path
	known     map[string]bool   // paths that are certain to be marked
}

// maxMarked limits the directories that are marked. Each keeps some kilobytes of the kernel's
// memory, and who writes into a directory of documents can make others in it. What is beyond is
// found by sweeps.
const maxMarked = 1 << 18

// Flags of the notification group. With CAP_SYS_ADMIN, neither the queue nor the number of
// marks is limited.
const (
	notifierFlags     = unix.FAN_CLASS_NOTIF | unix.FAN_REPORT_DFID_NAME | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK
	notifierUnlimited = unix.FAN_UNLIMITED_QUEUE | unix.FAN_UNLIMITED_MARKS

	nameEvents    = unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO
	contentEvents = unix.FAN_MODIFY
	wholeEvents   = unix.FAN_CLOSE_WRITE | unix.FAN_MOVED_TO // after which a file may be whole
	markedEvents  = nameEvents | contentEvents | wholeEvents | unix.FAN_ONDIR | unix.FAN_EVENT_ON_CHILD

	handleOnly = 0x200 // AT_HANDLE_FID: a handle to compare, which file systems have that cannot open it
)

func newNotifier(data int) (*notifier, error) {
	group, err := unix.FanotifyInit(notifierFlags|notifierUnlimited, unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) {
		group, err = unix.FanotifyInit(notifierFlags, unix.O_RDONLY)
	}
	if err != nil {
		return nil, fmt.Errorf("fanotify: %w", err)
	}
	n := &notifier{data: data, file: os.NewFile(uintptr(group), "fanotify"), paths: map[string]string{},
		marks: map[string]string{}, known: map[string]bool{}}
	if err := n.add("."); err != nil {
		_ = n.file.Close()
		return nil, err
	}
	return n, nil
}

// add marks a directory and those above it, from the top down. It is no error if the
// directory does not exist. The caller opens the directory again afterwards: what was
// opened before the mark may have been replaced without notice.
func (n *notifier) add(directory string) error {
	if directory != "." {
		if err := n.ensure(path.Dir(directory)); err != nil {
			return err
		}
	}
	descriptor, err := openBeneath(n.data, directory)
	if err != nil {
		return nil // nothing is there; it would have to be moved there, which is reported
	}
	defer unix.Close(descriptor)
	if _, marked := n.marks[directory]; !marked && len(n.marks) >= maxMarked {
		return fmt.Errorf("watch directory %s: %d are watched already", directory, maxMarked)
	}
	err = unix.FanotifyMark(int(n.file.Fd()), unix.FAN_MARK_ADD|unix.FAN_MARK_ONLYDIR, markedEvents, descriptor, ".")
	if err != nil {
		return fmt.Errorf("watch directory %s: %w", directory, err)
	}
	handle, _, err := unix.NameToHandleAt(descriptor, ".", handleOnly)
	if errors.Is(err, unix.EINVAL) {
		handle, _, err = unix.NameToHandleAt(descriptor, ".", 0)
	}
	if err != nil {
		return fmt.Errorf("watch directory %s: %w", directory, err)
	}
	n.drop(directory)
	key := handleKey(handle.Type(), handle.Bytes())
	n.paths[key], n.marks[directory], n.known[directory] = directory, key, true
	return nil
}

// drop forgets the directory that was marked at a path. Its mark goes with it.
func (n *notifier) drop(directory string) {
	if key, marked := n.marks[directory]; marked && n.paths[key] == directory {
		delete(n.paths, key)
	}
	delete(n.marks, directory)
	delete(n.known, directory)
}

// ensure is add, unless the directory is marked already.
func (n *notifier) ensure(directory string) error {
	if n.known[directory] {
		return nil
	}
	return n.add(directory)
}

func handleKey(kind int32, handle []byte) string {
	return string(binary.NativeEndian.AppendUint32(nil, uint32(kind))) + string(handle) //nolint:gosec // a number to compare
}

// forget makes ensure mark a directory again, and those beneath it.
func (n *notifier) forget(directory string) {
	maps.DeleteFunc(n.known, func(known string, _ bool) bool {
		return directory == "." || known == directory || strings.HasPrefix(known, directory+"/")
	})
}

// directory returns the path at which a directory was marked last.
func (n *notifier) directory(handle string) (string, bool) {
	directory, known := n.paths[handle]
	return directory, known
}

func (n *notifier) close() error { return n.file.Close() }

// run reports until close.
func (n *notifier) run(report func([]happening)) {
	connection, err := n.file.SyscallConn()
	if err != nil {
		return // closed
	}
	buffer := make([]byte, 1<<16)
	for err == nil {
		err = connection.Read(func(descriptor uintptr) (done bool) {
			n.reporting.Lock()
			defer n.reporting.Unlock()
			size, err := unix.Read(int(descriptor), buffer)
			if err != nil {
				return !errors.Is(err, unix.EAGAIN) // the group fails in no other way
			}
			if all := happenings(buffer[:size]); len(all) > 0 {
				report(all)
			}
			return true
		})
	}
}

// isSettled reports whether all that has happened was reported.
func (n *notifier) isSettled() bool {
	n.reporting.Lock()
	defer n.reporting.Unlock()
	waiting := 0
	connection, err := n.file.SyscallConn()
	if err == nil {
		err = connection.Control(func(descriptor uintptr) {
			waiting, _ = unix.IoctlGetInt(int(descriptor), unix.TIOCINQ) // FIONREAD by its other name
		})
	}
	return err != nil || waiting == 0
}

// Layout of events (fanotify(7)): metadata, then records of information, of which one has
// the directory's handle and the name in it.
const (
	infoHandle = 12 // after type, length and the identifier of the file system: the handle's length and type
	infoName   = infoHandle + 8
)

func happenings(events []byte) (all []happening) {
	for len(events) >= unix.FAN_EVENT_METADATA_LEN {
		length := int(binary.NativeEndian.Uint32(events))
		start := int(binary.NativeEndian.Uint16(events[6:]))
		mask := binary.NativeEndian.Uint64(events[8:])
		if length < start || length > len(events) {
			return append(all, happening{isLost: true})
		}
		info := events[start:length]
		events = events[length:]
		if mask&unix.FAN_Q_OVERFLOW != 0 {
			all = append(all, happening{isLost: true})
			continue
		}
		one, ok := named(info)
		if !ok {
			continue // of a marked directory itself; the one above reports what happens to it
		}
		one.isTree = mask&unix.FAN_ONDIR != 0
		one.isContent = mask&contentEvents != 0
		one.isWhole = mask&wholeEvents != 0
		all = append(all, one)
	}
	return all
}

func named(info []byte) (one happening, ok bool) {
	if len(info) < infoName || info[0] != unix.FAN_EVENT_INFO_TYPE_DFID_NAME {
		return one, false
	}
	size := int(binary.NativeEndian.Uint32(info[infoHandle:]))
	kind := int32(binary.NativeEndian.Uint32(info[infoHandle+4:])) //nolint:gosec // the kernel's number
	if size > len(info)-infoName {
		return one, false
	}
	name, _, _ := bytes.Cut(info[infoName+size:], []byte{0})
	one = happening{handle: handleKey(kind, info[infoName:infoName+size]), name: string(name)}
	return one, one.name != "."
}
