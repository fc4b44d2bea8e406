// SPDX-License-Identifier: BSD-2-Clause

package plan

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

// Versions of Landlock.
const (
	NeededLandlock = 4 // the first ABI with network rules
	ScopedLandlock = 6 // the first ABI that scopes signals
)

// AccessOnFiles are the rights that a rule on a file (anything but a directory) may name.
const AccessOnFiles = accessExecute | accessWriteFile | accessReadFile | accessTruncate | accessIoctl

// Perimeter is a Landlock domain as data: every handled right is refused, except where it
// is granted.
type Perimeter struct {
	Files   uint64 // handled file system rights
	Network uint64 // handled network rights; none is ever granted
	Scope   uint64
	Grants  []Grant
}

// Grant is one rule of a perimeter.
type Grant struct {
	Path   string
	Access uint64
}

// taskPerimeter computes the domain of a task for a machine's Landlock. It handles all
// rights that the kernel knows, so that everything that is not granted is refused.
//
// Beneath the runtime the task opens nothing natively, because the kernel would not look
// whether a file has a second name in the data or is a named pipe: the monitor does.
// Only to execute the program, the kernel has to be allowed to read it and its
// interpreters.
func taskPerimeter(in Input) (Perimeter, error) {
	if in.Machine.Landlock < NeededLandlock {
		return Perimeter{}, fmt.Errorf("found Landlock ABI %d, need ABI %d (Linux 6.7): %w", in.Machine.Landlock,
			NeededLandlock, ErrUnsupported)
	}
	domain := Perimeter{Files: handledFiles(in.Machine.Landlock), Network: accessNetwork}
	ownRoot := in.givesRoot()
	if ownRoot {
		// A rule on a directory does not hold beneath a detached mount of another one in it.
		// The root, the filter and the mounts limit what is read. The kernel looks for the right
		// to truncate at every open, up to the root: without it, an open of a document does not
		// look at all. It is granted only together with the right to write, and the filter asks
		// about opens that truncate without writing.
		domain.Files &^= accessReadFile | accessReadDir | accessTruncate
	}
	if in.Machine.Landlock >= ScopedLandlock {
		domain.Scope = scopeAbstract | scopeSignal
	}
	runtime := Execute
	if in.waives(ExecRefusal) {
		runtime |= Read // of the other programs
	}
	for _, path := range in.Runtime {
		domain.Grants = append(domain.Grants, Grant{path, accessOf(runtime)})
	}
	for _, file := range in.Machine.Executed {
		// In a root of its own, the file is not beneath the runtime.
		access := choose(ownRoot, accessExecute, accessReadFile)
		domain.Grants = append(domain.Grants, Grant{file.Path, uint64(access)})
	}
	for _, directory := range in.Perimeter {
		if access := accessOf(directory.Rights) & domain.Files; access != 0 {
			domain.Grants = append(domain.Grants, Grant{directory.Path, access})
		}
	}
	return domain, nil
}

// accessOf translates rights. It never grants making devices, sockets, pipes or symbolic
// links, nor ioctls on devices. Files are moved and linked between directories only with the
// right to, and where they may be read, too: to move a file that the task may not read would be a
// flow that nobody has decided on.
func accessOf(rights Rights) uint64 {
	var access uint64
	if rights&Read != 0 {
		access |= accessReadFile | accessReadDir
	}
	if rights&List != 0 {
		access |= accessReadDir
	}
	if rights&Write != 0 {
		access |= accessWriteFile | accessTruncate
	}
	if rights&(Write|Names) != 0 {
		access |= accessRemove | accessRemoveDir | accessMakeFile | accessMakeDir
	}
	if rights&Move != 0 && (rights&(Read|Write) == Read|Write || rights&(List|Names) == List|Names) {
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
