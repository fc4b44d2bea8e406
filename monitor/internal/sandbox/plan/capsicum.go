// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

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

// CapRights are the operations that a descriptor allows; nil allows none.
type CapRights []uint64

// Rights of descriptors that the monitor passes to tasks and stubs, and keeps for them.
var (
	// LookRights are for looking at a file's metadata.
	LookRights = CapRights{capStatus, capSystemStatus, capControl, capLimits}
	// ViewRights are for opening documents beneath a directory, and nothing for writing.
	ViewRights = join(readRights, CapRights{capLookUp})
	// DecisionsRights are those of the list that a stub answers from.
	DecisionsRights = CapRights{capRead, capSeek, capMap, capStatus}
	// CheckedRights are those of a connection or channel while something is written to it.
	CheckedRights = join(socketRights, CapRights{capWrite})
	// ReaderRights and WriterRights make a pipe work in one direction.
	ReaderRights = join(pipeRights, CapRights{capRead})
	WriterRights = join(pipeRights, CapRights{capWrite})
	// ClosedRights are those of the null device, open for reading, in the place of a file that
	// was closed: a write fails with EBADF.
	ClosedRights = join(readRights, CapRights{capWrite})
	// InputRights and OutputRights are those of standard input, and of output and error.
	InputRights  = join(standardRights, CapRights{capRead})
	OutputRights = join(standardRights, CapRights{capWrite})
)

var (
	readRights    = join(LookRights, CapRights{capRead, capSeek, capMap, capPoll, capLock})
	writeRights   = join(LookRights, CapRights{capWrite, capSeek, capPoll, capLock, capSync, capTruncate})
	runtimeRights = join(readRights, CapRights{capMapExecute})
	// The run-time linker opens libraries in their directories by itself: before libshai is
	// loaded, nobody could ask the monitor for them.
	programRights = join(runtimeRights, CapRights{capLookUp})
	// Beneath a directory, tasks make only files and directories: no devices, sockets,
	// pipes or symbolic links. They cannot change modes and times of files.
	changeRights = join(writeRights, CapRights{capLookUp, capMap, capCreate, capMakeDir, capUnlink,
		capRenameTo, capLinkTo})
	// A file is moved only from where the task may read it, too, and linked only with the right to.
	moveRights = CapRights{capRenameFrom}
	linkRights = CapRights{capLinkFrom}
	// Without CAP_SETSOCKOPT: options of IP put data into packets without a write, and
	// Capsicum does not tell options apart.
	socketRights = CapRights{capStatus, capControl, capPoll, capGetOption, capPeerName, capSocketName, capShutDown}
	streamRights = join(socketRights, CapRights{capRead, capWrite})
	pipeRights   = CapRights{capPoll, capStatus, capControl, capGetOption}
	// Waiting for what becomes a standard descriptor, and asking what it is.
	standardRights = CapRights{capPoll, capStatus, capDevice}
)

func join(sets ...CapRights) CapRights { return slices.Concat(sets...) }

// Capsicum is the confinement of a task on FreeBSD, as data. In capability mode, a task
// can use the descriptors that it holds, and can open nothing by name.
type Capsicum struct {
	// Rights of the descriptors at the reserved numbers. A number without an entry has no
	// rights.
	Rights map[int]CapRights
	// Unrestricted numbers keep all rights. Only tests fill this.
	Unrestricted []int
	Mode         bool      // enter capability mode
	Programs     CapRights // of the program, and of the directories of libraries
	Runtime      []string  // hierarchies in which program and run-time linker lie
	Libraries    []string  // directories that the run-time linker searches
	Preloads     []string  // libraries that it loads first
}

// standardLibraries are the directories that the run-time linker searches by default,
// outside of capability mode.
var standardLibraries = []string{"/lib", "/usr/lib", "/usr/local/lib"}

// ForFreeBSD checks the input and computes the plan for FreeBSD.
func ForFreeBSD(in Input) (Plan, error) {
	result, err := in.common()
	if err != nil || !in.Confined {
		return result, err
	}
	domain := &Capsicum{Rights: map[int]CapRights{}, Mode: !in.waives(PerimeterDomain),
		Programs: programRights, Runtime: in.Runtime}
	if in.waives(ExecRefusal) {
		domain.Programs = join(programRights, CapRights{capExecute})
	}
	for _, number := range in.Numbers {
		domain.Rights[number] = rightsAt(number, in.Waived)
		if in.waives(ReservedNumbers) {
			domain.Unrestricted = append(domain.Unrestricted, number)
		}
	}
	for i, capability := range in.Capabilities {
		domain.Rights[wire.FDCapability+i] = directoryRights(in.granted(capability.Path))
		if in.waives(PerimeterDomain) {
			domain.Unrestricted = append(domain.Unrestricted, wire.FDCapability+i)
		}
	}
	if err := domain.takeLoader(&result); err != nil {
		return Plan{}, fmt.Errorf("task %s: %w", in.Name, err)
	}
	result.Capsicum = domain
	return result, nil
}

// RightsAt returns the rights of a descriptor that is placed at a number of a running task.
func RightsAt(number int) CapRights {
	if number < wire.FDMonitor || number >= wire.FDReservedEnd {
		return ClosedRights
	}
	return rightsAt(number, 0)
}

// rightsAt returns the rights of a task's reserved number. A descriptor that is passed to
// the task may have fewer rights, never more.
func rightsAt(number int, waived Protection) CapRights {
	switch {
	case number == wire.FDClasses:
		// And to be opened anew: a session has an offset of its own.
		return join(readRights, CapRights{capLookUp})
	case number == wire.FDListen:
		return CapRights{capStatus, capPoll}
	case number == wire.FDConnectionChecked:
		return join(socketRights, CapRights{capRead})
	case number == wire.FDRequests:
		return CapRights{capWrite, capPoll, capStatus, capGetOption}
	case number >= wire.FDPipe && number < wire.FDPipe+wire.FDPipeCount:
		return CapRights{capRead, capWrite, capPoll, capStatus, capControl}
	case number >= wire.FDChannelChecked:
		return socketRights
	case number >= wire.FDChannel && waived&UnreadChannels != 0:
		return streamRights
	case number >= wire.FDChannel:
		// A channel's reading end goes to a stub, not to a task.
		return join(socketRights, CapRights{capWrite})
	}
	return streamRights
}

// granted returns the rights that the perimeter grants on a whole hierarchy.
func (spec Spec) granted(hierarchy string) Rights {
	var granted Rights
	for _, directory := range spec.Perimeter {
		if Beneath(path.Clean(hierarchy), path.Clean(directory.Path)) {
			granted |= directory.Rights
		}
	}
	return granted
}

// directoryRights returns the rights of a capability. If the hierarchy is not granted as
// a whole, the kernel refuses opens beneath it, and the task asks the monitor about each.
func directoryRights(granted Rights) CapRights {
	result := LookRights
	if granted&Read != 0 {
		result = join(result, readRights, CapRights{capLookUp})
	}
	if granted&Write != 0 {
		result = join(result, changeRights)
	}
	if granted&(Read|Write) == Read|Write {
		result = join(result, moveRights)
		if granted&Move != 0 {
			result = join(result, linkRights)
		}
	}
	if granted&List != 0 {
		result = join(result, CapRights{capRead, capSeek, capPoll})
	}
	return result
}

// OpenedRights returns the rights of a file that the monitor opens for a task. Beneath a
// directory, every open needs a decision of its own. This includes the directories of the
// runtime: a file there may be a document by another name, or a named pipe.
func OpenedRights(reads, writes, isRuntime bool) CapRights {
	result := LookRights
	if reads {
		result = join(result, readRights)
		if isRuntime {
			result = join(result, runtimeRights)
		}
	}
	if writes {
		result = join(result, writeRights)
	}
	return result
}

// takeLoader replaces the paths in the run-time linker's environment variables by files
// that the linker gets as descriptors. It leaves out directories of libraries that are
// outside of the runtime.
func (c *Capsicum) takeLoader(todo *Plan) error {
	var rest []string
	for _, variable := range todo.Environment {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "LD_LIBRARY_PATH":
			c.Libraries = append(c.Libraries, strings.FieldsFunc(value, isListSeparator)...)
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
		if !Beneath(path, c.Runtime...) {
			return fmt.Errorf("LD_PRELOAD names %s, which is not part of the runtime", path)
		}
	}
	c.Libraries = slices.DeleteFunc(append(c.Libraries, standardLibraries...), func(path string) bool {
		return !Beneath(path, c.Runtime...)
	})
	return nil
}

func isListSeparator(c rune) bool { return c == ':' }

func isPreloadSeparator(c rune) bool { return c == ':' || c == ' ' || c == ';' || c == '\t' }
