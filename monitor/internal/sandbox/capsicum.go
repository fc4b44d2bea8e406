// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/wire"
)

// Capsicum's rights on descriptors, as in sys/capsicum.h: bit 57 or 58 says which word
// a right is in.
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
	capSetOption    = firstWord | 1<<37
	capShutDown     = firstWord | 1<<38
	capLinkFrom     = firstWord | 1<<41
	capRenameTo     = firstWord | 1<<42
	capPoll         = secondWord | 1<<5
	capDevice       = secondWord | 1<<7 // ioctl(2), of calls that are named apart
)

// rights is what a descriptor may be used for; nil is nothing at all.
type rights []uint64

var (
	lookRights    = rights{capStatus, capSystemStatus, capControl, capLimits}
	readRights    = join(lookRights, rights{capRead, capSeek, capMap, capPoll, capLock})
	writeRights   = join(lookRights, rights{capWrite, capSeek, capPoll, capLock, capSync, capTruncate})
	runtimeRights = join(readRights, rights{capLookUp, capMapExecute})
	// What is made beneath a directory are files and directories: no devices, sockets,
	// pipes or symbolic links. Modes and times of files stay as they are.
	changeRights = join(writeRights, rights{capLookUp, capMap, capCreate, capMakeDir, capUnlink,
		capRenameFrom, capRenameTo, capLinkFrom, capLinkTo})
	socketRights = rights{capStatus, capControl, capPoll, capGetOption, capSetOption, capPeerName, capSocketName,
		capShutDown}
	streamRights = join(socketRights, rights{capRead, capWrite})
)

func join(sets ...rights) rights { return slices.Concat(sets...) }

// capsicum is what confines a task on FreeBSD, as data: in capability mode it reaches
// what it holds and nothing by name.
type capsicum struct {
	// Rights of the descriptors at the reserved numbers; a number that is not named may
	// be used for nothing.
	Rights map[int]rights
	// Unrestricted numbers keep all rights: what a test waives.
	Unrestricted []int
	Mode         bool     // enter capability mode
	Programs     rights   // of the program, and of the directories of libraries
	Runtime      []string // hierarchies in which program and run-time linker lie
	Libraries    []string // directories that the run-time linker searches
	Preloads     []string // libraries that it loads first
}

// standardLibraries is where the run-time linker looks by itself, had it paths.
var standardLibraries = []string{"/lib", "/usr/lib", "/usr/local/lib"}

// capsicumPlanOf checks a specification and computes what to do on FreeBSD. It does no
// I/O.
func capsicumPlanOf(spec Spec) (plan, error) {
	result, err := commonPlanOf(spec)
	if err != nil || !spec.Confined {
		return result, err
	}
	domain := &capsicum{Rights: map[int]rights{}, Mode: spec.waived&perimeterDomain == 0,
		Programs: runtimeRights, Runtime: spec.Runtime}
	if spec.waived&execRefusal != 0 {
		domain.Programs = join(runtimeRights, rights{capExecute})
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

// rightsAt are those of a reserved number of a task. What is passed to it may have
// fewer; it never gets more.
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
	case number >= wire.FDChannel && waived&channelGate != 0:
		return streamRights
	case number >= wire.FDChannel:
		// Who is handed a channel's reading end is a stub, not a task.
		return join(socketRights, rights{capWrite})
	}
	return streamRights
}

// granted is what the perimeter grants on a whole hierarchy.
func (spec Spec) granted(path string) Rights {
	var granted Rights
	for _, directory := range spec.Perimeter {
		if beneath(filepath.Clean(path), filepath.Clean(directory.Path)) {
			granted |= directory.Rights
		}
	}
	return granted
}

// directoryRights are those of a capability. Where the hierarchy is not granted as a
// whole, opens beneath it are refused, and the task asks for each.
func directoryRights(granted Rights) rights {
	result := lookRights
	if granted&Read != 0 {
		result = join(result, readRights, rights{capLookUp})
	}
	if granted&Write != 0 {
		result = join(result, changeRights)
	}
	if granted&List != 0 {
		result = join(result, rights{capRead, capSeek, capPoll})
	}
	return result
}

// takeLoader turns what the environment tells the run-time linker by path into files
// that it gets as descriptors. What is not part of the runtime it could not open.
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
			return fmt.Errorf("environment variable %s; only LD_PRELOAD and LD_LIBRARY_PATH are for tasks", name)
		default:
			rest = append(rest, variable)
		}
	}
	todo.Environment = rest
	for _, path := range c.Preloads {
		if !beneathAny(path, c.Runtime) {
			return fmt.Errorf("%s is to be loaded first and not part of the runtime", path)
		}
	}
	c.Libraries = slices.DeleteFunc(append(c.Libraries, standardLibraries...), func(path string) bool {
		return !beneathAny(path, c.Runtime)
	})
	return nil
}

func isPreloadSeparator(c rune) bool { return c == ':' || c == ' ' || c == ';' || c == '\t' }
