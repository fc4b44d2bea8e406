// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

const (
	capabilityFlags = unix.O_RDONLY | unix.O_DIRECTORY
	fillerFlags     = unix.O_RDONLY
)

// image is the program to execute, opened before capability mode, while its path can
// still be used. In capability mode the kernel loads no run-time linker by path. The
// run-time linker itself is therefore executed, and gets the program, the directories of
// libraries and the preloaded libraries as descriptors.
type image struct {
	program              int
	loader               int // -1: the program needs none
	libraries, preloaded []int
}

// open opens the image. It returns nil if the program is executed by its path.
func (p launchPlan) open() (*image, error) {
	if p.Capsicum == nil {
		return nil, nil
	}
	result := &image{loader: -1}
	runtime := p.Capsicum.Runtime
	var err error
	if result.program, err = openWithin(runtime, p.Command[0]); err != nil {
		return nil, err
	}
	loader, err := interpreterOf(p.Command[0])
	if err != nil || loader == "" {
		return result, err
	}
	if result.loader, err = openWithin(runtime, loader); err != nil {
		return nil, err
	}
	for _, path := range p.Capsicum.Libraries {
		directory, err := openHigh(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue // as the run-time linker itself would
		}
		if err != nil {
			return nil, err
		}
		result.libraries = append(result.libraries, directory)
	}
	for _, path := range p.Capsicum.Preloads {
		library, err := openHigh(path, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		result.preloaded = append(result.preloaded, library)
	}
	return result, nil
}

// openWithin opens a file to execute, which must be part of the runtime.
func openWithin(runtime []string, path string) (int, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return -1, fmt.Errorf("execute %s: %w", path, err)
	}
	if !plan.Beneath(real, runtime...) {
		return -1, fmt.Errorf("execute %s: not part of the runtime: %w", path, unix.EACCES)
	}
	return openHigh(real, unix.O_RDONLY)
}

// interpreterOf returns the run-time linker that a program names, or "" if it names none.
func interpreterOf(program string) (string, error) {
	// Not elf.Open: os.File would start the runtime's poller.
	text, err := readWhole(program)
	if err != nil {
		return "", fmt.Errorf("execute %s: %w", program, err)
	}
	linker, err := linkerOf(strings.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("execute %s: %w (name a script's interpreter as the command)", program, err)
	}
	return linker, nil
}

func readWhole(path string) (string, error) {
	descriptor, err := openHigh(path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(descriptor)
	var text strings.Builder
	buffer := make([]byte, 1<<20)
	for {
		count, err := unix.Read(descriptor, buffer)
		if count <= 0 || err != nil {
			return text.String(), err
		}
		text.Write(buffer[:count])
	}
}

// execute confines this process and makes it the task. It only returns with an error.
func (p launchPlan) execute(opened *image, _ int) error {
	if err := p.dropPrivileges(); err != nil {
		return err
	}
	if opened == nil {
		if err := takeLimits(p.Limits); err != nil {
			return err
		}
		err := syscall.Exec(p.Command[0], p.Command, p.Environment)
		return fmt.Errorf("execute %s: %w", p.Command[0], err)
	}
	descriptor, arguments, environment := opened.program, p.Command, p.Environment
	if opened.loader >= 0 {
		var err error
		descriptor = opened.loader
		if arguments, environment, err = p.placeImage(opened); err != nil {
			return err
		}
	}
	if err := limitDescriptors(p.Capsicum); err != nil {
		return err
	}
	if err := takeLimits(p.Limits); err != nil {
		return err
	}
	if p.Capsicum.Mode {
		if err := unix.CapEnter(); err != nil {
			return fmt.Errorf("enter capability mode: %w", err)
		}
	}
	return fmt.Errorf("execute %s: %w", p.Command[0], executeDescriptor(descriptor, arguments, environment))
}

// placeImage places the descriptors that the run-time linker needs above the reserved
// numbers. It passes their numbers in the linker's arguments (direct mode of rtld(1)) and
// environment.
func (p launchPlan) placeImage(opened *image) (arguments, environment []string, err error) {
	next := wire.FDReservedEnd
	place := func(files ...int) string {
		var names []string
		for _, file := range files {
			if err == nil {
				err = unix.Dup2(file, next)
			}
			if err == nil {
				err = limitRights(next, p.Capsicum.Programs)
			}
			names = append(names, strconv.Itoa(next))
			next++
		}
		return strings.Join(names, ":")
	}
	arguments = slices.Concat([]string{p.Command[0], "-f", place(opened.program), "--"}, p.Command)
	environment = slices.Concat(p.Environment, []string{"LD_LIBRARY_PATH_FDS=" + place(opened.libraries...)})
	if len(opened.preloaded) > 0 {
		environment = append(environment, "LD_PRELOAD_FDS="+place(opened.preloaded...))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("place libraries: %w", err)
	}
	return arguments, environment, nil
}

// limitDescriptors limits the rights of the standard descriptors and of the reserved numbers.
func limitDescriptors(c *plan.Capsicum) error {
	if err := limitStandard(0, plan.InputRights); err != nil {
		return err
	}
	for _, number := range []int{standardOutput, standardError} {
		if err := limitStandard(number, plan.OutputRights); err != nil {
			return err
		}
	}
	for number := wire.FDMonitor; number < wire.FDReservedEnd; number++ {
		if slices.Contains(c.Unrestricted, number) {
			continue
		}
		if err := limitRights(number, c.Rights[number]); err != nil {
			return err
		}
	}
	return nil
}

// limitStandard limits what becomes a standard descriptor to these rights, and to asking
// what it is.
func limitStandard(descriptor int, allowed plan.CapRights) error {
	if err := limitRights(descriptor, allowed); err != nil {
		return err
	}
	return limitDeviceCalls(descriptor)
}

// limitRights leaves a descriptor only those of its rights that are allowed.
func limitRights(descriptor int, allowed plan.CapRights) error {
	current, err := unix.CapRightsGet(uintptr(descriptor))
	if err != nil {
		return fmt.Errorf("rights of descriptor %d: %w", descriptor, err)
	}
	wanted, err := unix.CapRightsInit(allowed)
	if err != nil {
		return fmt.Errorf("rights of descriptor %d: %w", descriptor, err)
	}
	for word := range wanted.Rights {
		wanted.Rights[word] &= current.Rights[word]
	}
	if err := unix.CapRightsLimit(uintptr(descriptor), wanted); err != nil {
		return fmt.Errorf("limit the rights of descriptor %d: %w", descriptor, err)
	}
	return nil
}

// terminalCalls ask whether a descriptor is a terminal, and for its size.
var terminalCalls = []uint64{0x402c7413, 0x40087468, 0x4004667a} // TIOCGETA, TIOCGWINSZ, FIODTYPE

func limitDeviceCalls(descriptor int) error {
	_, _, errno := unix.Syscall(unix.SYS_CAP_IOCTLS_LIMIT, uintptr(descriptor),
		uintptr(unsafe.Pointer(&terminalCalls[0])), uintptr(len(terminalCalls)))
	if errno != 0 {
		return fmt.Errorf("limit device calls of descriptor %d: %w", descriptor, errno)
	}
	return nil
}

// executeDescriptor calls fexecve(2). It only returns with an error.
func executeDescriptor(descriptor int, arguments, environment []string) error {
	argv, err := syscall.SlicePtrFromStrings(arguments)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(environment)
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall(unix.SYS_FEXECVE, uintptr(descriptor),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	return errno
}

func pin(cpus []int) error {
	const (
		levelWhich, whichProcess = 3, 2 // CPU_LEVEL_WHICH, CPU_WHICH_PID
		self                     = ^uintptr(0)
	)
	var set [16]uint64
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= len(set)*64 {
			return fmt.Errorf("no CPU %d: %w", cpu, os.ErrInvalid)
		}
		set[cpu/64] |= 1 << (cpu % 64)
	}
	_, _, errno := unix.Syscall6(unix.SYS_CPUSET_SETAFFINITY, levelWhich, whichProcess, self,
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// closeOnExecFrom marks every descriptor from number on to be closed by exec.
func closeOnExecFrom(number uint) error {
	const closeOnExec = 1 << 2 // CLOSE_RANGE_CLOEXEC
	_, _, errno := unix.Syscall(unix.SYS_CLOSE_RANGE, uintptr(number), uintptr(^uint32(0)), closeOnExec)
	if errno != 0 {
		return errno
	}
	return nil
}
