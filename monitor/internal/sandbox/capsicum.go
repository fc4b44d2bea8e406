// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/wire"
)

// Capsicum's rights on descriptors, from sys/capsicum.h. Bit 57 or 58 is the number of
// the word that a right belongs to.
const (
	firstWord, secondWord = 1 << 57, 1 << 58

	capRead         = firstWord | 1<<0 // receiving, too
	capWrite        = firstWord | 1<<1 // sending, too
	capSeek         = firstWord | 1<<2 | 1<<3
	capMap          = firstWord | 1<<4
	capMapExecute   = firstWord | 1<<5
	capCreate       = firstWord | 1<<6
	capExecute      = firstWord | 1<<7
	capSync         = firstWord | 1<<8
	capTruncate     = firstWord | 1<<9
	capLookUp       = firstWord | 1<<10
	capControl      = firstWord | 1<<15 // fcntl(2)
	capLock         = firstWord | 1<<16
	capLimits       = firstWord | 1<<17 // fpathconf(2)
	capStatus       = firstWord | 1<<19
	capSystemStatus = firstWord | 1<<20
	capLinkTo       = firstWord | 1<<22
	capMakeDir      = firstWord | 1<<23
	capRenameFrom   = firstWord | 1<<26
	capUnlink       = firstWord | 1<<28
	capPeerName     = firstWord | 1<<32
	capSocketName   = firstWord | 1<<33
	capGetOption    = firstWord | 1<<34
	capShutDown     = firstWord | 1<<38
	capLinkFrom     = firstWord | 1<<41
	capRenameTo     = firstWord | 1<<42
	capPoll         = secondWord | 1<<5
	capDevice       = secondWord | 1<<7 // ioctl(2), of calls that are named apart
)

// rights are the operations that a descriptor allows; nil allows none.
type rights []uint64

var (
	lookRights    = rights{capStatus, capSystemStatus, capControl, capLimits}
	readRights    = join(lookRights, rights{capRead, capSeek, capMap, capPoll, capLock})
	writeRights   = join(lookRights, rights{capWrite, capSeek, capPoll, capLock, capSync, capTruncate})
	runtimeRights = join(readRights, rights{capMapExecute})
	// The run-time linker opens libraries in their directories by itself: before libshai is
	// loaded, nobody could ask the monitor for them.
	programRights = join(runtimeRights, rights{capLookUp})
	// Beneath a directory, tasks make only files and directories: no devices, sockets,
	// pipes or symbolic links. They cannot change modes and times of files.
	changeRights = join(writeRights, rights{capLookUp, capMap, capCreate, capMakeDir, capUnlink,
		capRenameTo, capLinkTo})
	// A file is moved and linked only from where the task may read it, too.
	moveRights = rights{capRenameFrom, capLinkFrom}
	// Without CAP_SETSOCKOPT: options of IP put data into packets without a write, and
	// Capsicum does not tell options apart.
	socketRights = rights{capStatus, capControl, capPoll, capGetOption, capPeerName, capSocketName, capShutDown}
	streamRights = join(socketRights, rights{capRead, capWrite})
)

func join(sets ...rights) rights { return slices.Concat(sets...) }

// capsicum is the confinement of a task on FreeBSD, as data. In capability mode, a task
// can use the descriptors that it holds, and can open nothing by name.
type capsicum struct {
	// Rights of the descriptors at the reserved numbers. A number without an entry has no
	// rights.
	Rights map[int]rights
	// Unrestricted numbers keep all rights. Only tests fill this.
	Unrestricted []int
	Mode         bool     // enter capability mode
	Programs     rights   // of the program, and of the directories of libraries
	Runtime      []string // hierarchies in which program and run-time linker lie
	Libraries    []string // directories that the run-time linker searches
	Preloads     []string // libraries that it loads first
}

// standardLibraries are the directories that the run-time linker searches by default,
// outside of capability mode.
var standardLibraries = []string{"/lib", "/usr/lib", "/usr/local/lib"}

// capsicumPlanOf checks a specification and computes the plan for FreeBSD. It does no
// I/O.
func capsicumPlanOf(spec Spec) (plan, error) {
	result, err := commonPlanOf(spec)
	if err != nil || !spec.Confined {
		return result, err
	}
	domain := &capsicum{Rights: map[int]rights{}, Mode: spec.waived&perimeterDomain == 0,
		Programs: programRights, Runtime: spec.Runtime}
	if spec.waived&execRefusal != 0 {
		domain.Programs = join(programRights, rights{capExecute})
	}
	for number := range spec.Descriptors {
		domain.Rights[number] = rightsAt(number, spec.waived)
		if spec.waived&reservedNumbers != 0 {
			domain.Unrestricted = append(domain.Unrestricted, number)
		}
	}
	for i, capability := range spec.Capabilities {
		domain.Rights[wire.FDCapability+i] = directoryRights(spec.granted(capability.Path))
		if spec.waived&perimeterDomain != 0 {
			domain.Unrestricted = append(domain.Unrestricted, wire.FDCapability+i)
		}
	}
	if err := domain.takeLoader(&result); err != nil {
		return plan{}, fmt.Errorf("task %s: %w", spec.Name, err)
	}
	result.Capsicum = domain
	return result, nil
}

// rightsAt returns the rights of a task's reserved number. A descriptor that is passed to
// the task may have fewer rights, never more.
func rightsAt(number int, waived protection) rights {
	switch {
	case number == wire.FDClasses:
		return readRights
	case number == wire.FDListen:
		return rights{capStatus, capPoll}
	case number == wire.FDConnectionChecked:
		return join(socketRights, rights{capRead})
	case number == wire.FDRequests:
		return rights{capWrite, capPoll, capStatus, capGetOption}
	case number >= wire.FDPipe && number < wire.FDPipe+wire.FDPipeCount:
		return rights{capRead, capWrite, capPoll, capStatus, capControl}
	case number >= wire.FDChannelChecked:
		return socketRights
	case number >= wire.FDChannel && waived&unreadChannels != 0:
		return streamRights
	case number >= wire.FDChannel:
		// A channel's reading end goes to a stub, not to a task.
		return join(socketRights, rights{capWrite})
	}
	return streamRights
}

// granted returns the rights that the perimeter grants on a whole hierarchy.
func (spec Spec) granted(path string) Rights {
	var granted Rights
	for _, directory := range spec.Perimeter {
		if beneath(filepath.Clean(path), filepath.Clean(directory.Path)) {
			granted |= directory.Rights
		}
	}
	return granted
}

// directoryRights returns the rights of a capability. If the hierarchy is not granted as
// a whole, the kernel refuses opens beneath it, and the task asks the monitor about each.
func directoryRights(granted Rights) rights {
	result := lookRights
	if granted&Read != 0 {
		result = join(result, readRights, rights{capLookUp})
	}
	if granted&Write != 0 {
		result = join(result, changeRights)
	}
	if granted&(Read|Write) == Read|Write {
		result = join(result, moveRights)
	}
	if granted&List != 0 {
		result = join(result, rights{capRead, capSeek, capPoll})
	}
	return result
}

// openedRights returns the rights of a file that the monitor opens for a task. Beneath a
// directory, every open needs a decision of its own. This includes the directories of the
// runtime: a file there may be a document by another name, or a named pipe.
func openedRights(access int, isRuntime bool) rights {
	result := lookRights
	if access != syscall.O_WRONLY {
		result = join(result, readRights)
		if isRuntime {
			result = join(result, runtimeRights)
		}
	}
	if access != syscall.O_RDONLY {
		result = join(result, writeRights)
	}
	return result
}

// takeLoader replaces the paths in the run-time linker's environment variables by files
// that the linker gets as descriptors. It leaves out directories of libraries that are
// outside of the runtime.
func (c *capsicum) takeLoader(todo *plan) error {
	var rest []string
	for _, variable := range todo.Environment {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "LD_LIBRARY_PATH":
			c.Libraries = append(c.Libraries, filepath.SplitList(value)...)
		case name == "LD_PRELOAD":
			c.Preloads = append(c.Preloads, strings.FieldsFunc(value, isPreloadSeparator)...)
		case strings.HasPrefix(name, "LD_"):
			return fmt.Errorf("environment variable %s is not allowed; of LD_*, set only LD_PRELOAD or LD_LIBRARY_PATH",
				name)
		default:
			rest = append(rest, variable)
		}
	}
	todo.Environment = rest
	for _, path := range c.Preloads {
		if !beneathAny(path, c.Runtime) {
			return fmt.Errorf("LD_PRELOAD names %s, which is not part of the runtime", path)
		}
	}
	c.Libraries = slices.DeleteFunc(append(c.Libraries, standardLibraries...), func(path string) bool {
		return !beneathAny(path, c.Runtime)
	})
	return nil
}

func isPreloadSeparator(c rune) bool { return c == ':' || c == ' ' || c == ';' || c == '\t' }
