// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import "fmt"

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
	ownRoot := on.givesRoot(spec)
	if ownRoot {
		// A rule on a directory does not hold beneath a detached mount of another one in it.
		// The root, the filter and the mounts limit what is read.
		domain.Files &^= accessReadFile | accessReadDir
	}
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
	for _, file := range on.executed {
		// In a root of its own, the file is not beneath the runtime.
		access := choose(ownRoot, accessExecute, accessReadFile)
		domain.Grants = append(domain.Grants, grant{file.Path, uint64(access)})
	}
	for _, directory := range spec.Perimeter {
		if access := accessOf(directory.Rights) & domain.Files; access != 0 {
			domain.Grants = append(domain.Grants, grant{directory.Path, access})
		}
	}
	return domain, nil
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
