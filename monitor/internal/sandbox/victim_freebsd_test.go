// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// The victim is this very test program, which is linked statically: with victimMarker
// for its first argument it attempts what the second one names, and says what came of it: exit
// status 0 when it succeeded, otherwise 1, with "errno N" on standard output.
const victimMarker = "victim"

const (
	granted  = wire.FDCapability     // read
	written  = wire.FDCapability + 1 // read and write
	withheld = wire.FDCapability + 2 // not granted as a whole
)

func playVictim(arguments []string) {
	try, known := attempts[arguments[0]]
	if !known {
		fmt.Println("no attempt", arguments[0])
		os.Exit(3)
	}
	err := try(arguments[1:])
	var errno unix.Errno
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &errno):
		fmt.Println(err)
		fmt.Printf("errno %d\n", int(errno))
		os.Exit(1)
	}
	fmt.Println(err)
	os.Exit(2)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

// show copies what a descriptor has to standard output.
func show(descriptor int, err error) error {
	if err != nil {
		return err
	}
	buffer := make([]byte, 4096)
	count, err := unix.Read(descriptor, buffer)
	if err == nil {
		_, err = os.Stdout.Write(buffer[:count])
	}
	return err
}

// path calls a function with the first argument.
func path(try func(string) error) func([]string) error {
	return func(arguments []string) error { return try(arguments[0]) }
}

// beneathOf opens beneath a capability.
func beneathOf(capability, flags int) func([]string) error {
	return path(func(name string) error {
		descriptor, err := unix.Openat(capability, name, flags|unix.O_CLOEXEC, 0o644)
		if err != nil || flags&accessMode != unix.O_RDONLY {
			return err
		}
		return show(descriptor, nil)
	})
}

func systemCall(number uintptr, arguments ...uintptr) error {
	var a [6]uintptr
	copy(a[:], arguments)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func loopback(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func socket(use func(socket int) error) error {
	descriptor, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return use(descriptor)
}

// attempts are what a victim can try, by name.
var attempts = map[string]func([]string) error{}

func init() {
	for _, some := range []map[string]func([]string) error{fileAttempts(), systemAttempts(), descriptorAttempts(),
		askingAttempts(), servingAttempts()} {
		maps.Copy(attempts, some)
	}
}

// fileAttempts use paths and directories.
func fileAttempts() map[string]func([]string) error {
	const creating = unix.O_CREAT | unix.O_WRONLY
	return map[string]func([]string) error{
		"open":              path(func(name string) error { return show(unix.Open(name, unix.O_RDONLY, 0)) }),
		"openat-capability": beneathOf(granted, unix.O_RDONLY),
		"openat-written":    beneathOf(written, unix.O_RDONLY),
		"openat-withheld":   beneathOf(withheld, unix.O_RDONLY),
		"write-capability":  beneathOf(granted, unix.O_WRONLY),
		"write-written":     beneathOf(written, unix.O_WRONLY),
		"create-capability": beneathOf(granted, creating),
		"create-written":    beneathOf(written, creating),
		"unlink-capability": path(func(name string) error { return unix.Unlinkat(granted, name, 0) }),
		"unlink-written":    path(func(name string) error { return unix.Unlinkat(written, name, 0) }),
		"mkdir-capability":  path(func(name string) error { return unix.Mkdirat(granted, name, 0o755) }),
		"mkdir-written":     path(func(name string) error { return unix.Mkdirat(written, name, 0o755) }),
		"symlink-written":   path(func(name string) error { return unix.Symlinkat("old.txt", written, name) }),
		"fifo-written": path(func(name string) error {
			return unix.Mknodat(written, name, unix.S_IFIFO|0o600, 0)
		}),
		"chmod-written":      path(func(name string) error { return unix.Fchmodat(written, name, 0o600, 0) }),
		"rename-into":        path(func(name string) error { return unix.Renameat(granted, name, written, name) }),
		"rename-written":     path(func(name string) error { return unix.Renameat(written, name, written, "new.txt") }),
		"link-into":          path(func(name string) error { return unix.Linkat(granted, name, written, name, 0) }),
		"stat":               path(func(name string) error { return unix.Stat(name, &unix.Stat_t{}) }),
		"chdir":              path(unix.Chdir),
		"list-capability":    func([]string) error { return list(granted) },
		"list-withheld":      func([]string) error { return list(withheld) },
		"fexecve-capability": path(executeBeneath),
		"exec": path(func(name string) error {
			return unix.Exec(name, []string{name, victimMarker, "nothing"}, nil)
		}),
	}
}

// systemAttempts use the network, other processes and the system.
func systemAttempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"connect": path(func(port string) error {
			return socket(func(s int) error { return unix.Connect(s, loopback(number(port))) })
		}),
		"bind": func([]string) error {
			return socket(func(s int) error { return unix.Bind(s, loopback(0)) })
		},
		"kill": path(func(process string) error { return unix.Kill(number(process), unix.SIGCONT) }),
		"ptrace": path(func(process string) error {
			return systemCall(unix.SYS_PTRACE, 10, uintptr(number(process)), 0, 0)
		}),
		"procctl":       func([]string) error { return becomeReaper() },
		"sysctl-write":  func([]string) error { return writeSysctl() },
		"shared-memory": path(func(name string) error { return sharedMemory(name) }),
		"ktrace": func([]string) error {
			return systemCall(unix.SYS_KTRACE, 0, 1, 0, uintptr(os.Getpid()))
		},
		"fork-wait":   func([]string) error { return forkAndWait(func() syscall.Errno { return 0 }) },
		"nothing":     func([]string) error { return nil },
		"sleep":       func([]string) error { return stay() },
		"breed":       path(breed),
		"map-much":    func([]string) error { return mapMuch() },
		"open-many":   func([]string) error { return openMany() },
		"processors":  func([]string) error { _, err := fmt.Println(runtime.NumCPU()); return err },
		"ignore-term": func([]string) error { signal.Ignore(unix.SIGTERM); return stay() },
	}
}

// descriptorAttempts use what the task was given.
func descriptorAttempts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"read": path(func(text string) error { return show(number(text), nil) }),
		"write": path(func(text string) error {
			_, err := unix.Write(number(text), []byte("message!"))
			return err
		}),
		"send":        path(func(text string) error { return unix.Send(number(text), []byte("message!"), 0) }),
		"dup-write":   path(duplicateAndWrite),
		"setsockopt":  path(setOption),
		"descriptors": func([]string) error { return printDescriptors() },
	}
}

func setOption(socket string) error {
	return unix.SetsockoptInt(number(socket), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}

func list(directory int) error {
	_, err := unix.ReadDirent(directory, make([]byte, 4096))
	return err
}

// writeSysctl sets a variable to what it is already.
func writeSysctl() error {
	value, err := unix.SysctlUint32("kern.logsigexit")
	if err != nil {
		value = 1
	}
	name := []byte("kern.logsigexit\x00")
	const byName = 570 // __sysctlbyname(2)
	return systemCall(byName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), 0, 0,
		uintptr(unsafe.Pointer(&value)), 4)
}

func sharedMemory(name string) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return systemCall(571, uintptr(unsafe.Pointer(text)), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0)
}

func executeBeneath(name string) error {
	descriptor, err := unix.Openat(granted, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return executeDescriptor(descriptor, []string{name, victimMarker, "nothing"}, os.Environ())
}

func duplicateAndWrite(text string) error {
	duplicate, err := unix.Dup(number(text))
	if err != nil {
		return err
	}
	_, err = unix.Write(duplicate, []byte("message!"))
	return err
}

// forkAndWait runs a function in a forked process, and returns its error. The function
// may only make raw system calls, since only this thread continues there.
func forkAndWait(do func() syscall.Errno) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	result := []byte{0}
	child, _, errno := unix.RawSyscall(unix.SYS_FORK, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		result[0] = byte(do())
		unix.RawSyscall(unix.SYS_WRITE, uintptr(ends[1]), uintptr(unsafe.Pointer(&result[0])), 1)
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	// Not wait4(2), which capability mode refuses.
	if _, err := unix.Read(ends[0], result); err != nil {
		return err
	}
	if result[0] != 0 {
		return syscall.Errno(result[0])
	}
	return nil
}

func mapMuch() error {
	_, err := unix.Mmap(-1, 0, 4<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

func openMany() error {
	for range 200 {
		if _, err := unix.Dup(2); err != nil {
			return err
		}
	}
	return nil
}

func breed(text string) error {
	for range number(text) {
		child, _, errno := unix.RawSyscall(unix.SYS_FORK, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		for child == 0 { // in the child
			unix.RawSyscall(unix.SYS_SIGSUSPEND, uintptr(unsafe.Pointer(&[4]uint32{})), 0, 0)
		}
	}
	return stay()
}

// stay says that it is there, and stays until it is killed.
func stay() error {
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}

func printDescriptors() error {
	var open []string
	for descriptor := range 4096 {
		if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0); err != unix.EBADF {
			open = append(open, strconv.Itoa(descriptor))
		}
	}
	fmt.Println(strings.Join(open, " "))
	return nil
}
