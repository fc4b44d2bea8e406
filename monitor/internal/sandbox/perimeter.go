// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"slices"
)

// Landlock's file system rights, from linux/landlock.h, with the ABI that
// introduced each one.
const (
	accessExecute   = 1 << 0
	accessWriteFile = 1 << 1
	accessReadFile  = 1 << 2
	accessReadDir   = 1 << 3
	accessRemoveDir = 1 << 4
	accessRemove    = 1 << 5
	accessMakeDir   = 1 << 7
	accessMakeFile  = 1 << 8
	accessFirstABI  = 1<<13 - 1 // all of ABI 1
	accessRefer     = 1 << 13   // ABI 2
	accessTruncate  = 1 << 14   // ABI 3
	accessIoctl     = 1 << 15   // ABI 5

	accessNetwork = 1<<0 | 1<<1 // bind and connect of TCP, ABI 4
	scopeAbstract = 1 << 0      // abstract UNIX sockets, ABI 6
	scopeSignal   = 1 << 1      // signals, ABI 6
)

const (
	neededLandlock = 4 // the first ABI with network rules
	scopedLandlock = 6 // the first ABI that scopes signals
)

// perimeter is a Landlock domain as data: every handled right is refused, except where it
// is granted.
type perimeter struct {
	Files   uint64 // handled file system rights
	Network uint64 // handled network rights; none is ever granted
	Scope   uint64
	Grants  []grant
}

// grant is one rule of a perimeter.
type grant struct {
	Path   string
	Access uint64
}

// taskPerimeter computes the domain of a task for a machine's Landlock. It handles all
// rights that the kernel knows, so that everything that is not granted is refused.
//
// Beneath the runtime the task opens nothing natively, because the kernel would not look
// whether a file has a second name in the data or is a named pipe: the supervisor does.
// Only to execute the program, the kernel has to be allowed to read it and its
// interpreters.
func taskPerimeter(on machine, spec Spec) (perimeter, error) {
	if on.landlock < neededLandlock {
		return perimeter{}, fmt.Errorf("found Landlock ABI %d, need ABI %d (Linux 6.7): %w", on.landlock,
			neededLandlock, ErrUnsupported)
	}
	domain := perimeter{Files: handledFiles(on.landlock), Network: accessNetwork}
	if on.landlock >= scopedLandlock {
		domain.Scope = scopeAbstract | scopeSignal
	}
	runtime := Execute
	if spec.waived&execRefusal != 0 {
		runtime |= Read // of the other programs
	}
	for _, path := range spec.Runtime {
		domain.Grants = append(domain.Grants, grant{path, accessOf(runtime)})
	}
	for _, path := range on.executed {
		domain.Grants = append(domain.Grants, grant{path, accessReadFile})
	}
	for _, directory := range spec.Perimeter {
		domain.Grants = append(domain.Grants, grant{directory.Path, accessOf(directory.Rights)})
	}
	return domain, nil
}

// readPerimeter computes the layer with which a worker restricts itself to its session.
// It handles reading only: a layer refuses a right that it handles everywhere it does not
// grant it again, and what a task may write was settled when it started. Every layer
// refuses REFER unless it grants it (renames between directories would fail with EXDEV),
// so directories that are both readable and writable get it again.
func readPerimeter(directories []Directory) perimeter {
	layer := perimeter{Files: accessReadFile | accessReadDir, Grants: make([]grant, 0, len(directories))}
	if slices.ContainsFunc(directories, func(d Directory) bool { return accessOf(d.Rights)&accessRefer != 0 }) {
		layer.Files |= accessRefer
	}
	for _, directory := range directories {
		access := accessOf(directory.Rights) & layer.Files
		if access != 0 {
			layer.Grants = append(layer.Grants, grant{directory.Path, access})
		}
	}
	return layer
}

// accessOf translates rights. It never grants making devices, sockets, pipes or symbolic
// links, nor ioctls on devices. Files are moved and linked between directories only where
// they may be read, too: to move a file that the task may not read would be a flow that
// nobody has decided on.
func accessOf(rights Rights) uint64 {
	var access uint64
	if rights&Read != 0 {
		access |= accessReadFile | accessReadDir
	}
	if rights&List != 0 {
		access |= accessReadDir
	}
	if rights&Write != 0 {
		access |= accessWriteFile | accessTruncate | accessRemove | accessRemoveDir | accessMakeFile |
			accessMakeDir
	}
	if rights&(Read|Write) == Read|Write {
		access |= accessRefer
	}
	if rights&Execute != 0 {
		access |= accessExecute
	}
	return access
}

func handledFiles(abi int) uint64 {
	handled := uint64(accessFirstABI)
	if abi >= 2 {
		handled |= accessRefer
	}
	if abi >= 3 {
		handled |= accessTruncate
	}
	if abi >= 5 {
		handled |= accessIoctl
	}
	return handled
}
