// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"golang.org/x/sys/unix"
)

var attacks = []attack{
	// By name: there are no names.
	{"open $S/secret.txt", Perimeter, unix.ECAPMODE},
	{"open $G/allowed.txt", Perimeter, unix.ECAPMODE},
	{"open /dev/zero", Perimeter, unix.ECAPMODE},
	{"stat $S/secret.txt", Perimeter, unix.ECAPMODE},
	{"chdir $S", Perimeter, unix.ECAPMODE},
	{"exec $V", Perimeter, unix.ECAPMODE},
	{"shared-memory /shai-test", Perimeter, unix.ECAPMODE},
	// Out of a directory.
	{"openat-capability ../secret/secret.txt", Perimeter, unix.ENOTCAPABLE},
	{"openat-capability escape", Perimeter, unix.ENOTCAPABLE},
	{"openat-capability $S/secret.txt", Perimeter, unix.ENOTCAPABLE},
	// More than was granted on it.
	{"openat-withheld secret.txt", Perimeter, unix.ENOTCAPABLE},
	{"list-withheld", Perimeter, unix.ENOTCAPABLE},
	{"write-capability allowed.txt", Perimeter, unix.ENOTCAPABLE},
	{"create-capability new.txt", Perimeter, unix.ENOTCAPABLE},
	{"unlink-capability allowed.txt", Perimeter, unix.ENOTCAPABLE},
	{"mkdir-capability new", Perimeter, unix.ENOTCAPABLE},
	{"rename-into allowed.txt", Perimeter, unix.ENOTCAPABLE},
	{"link-into allowed.txt", Perimeter, unix.ENOTCAPABLE},
	{"symlink-written new", Perimeter, unix.ENOTCAPABLE},
	{"fifo-written new", Perimeter, unix.ENOTCAPABLE},
	{"chmod-written old.txt", Perimeter, unix.ENOTCAPABLE},
	{"fexecve-capability program", Perimeter, unix.ENOTCAPABLE},
	// Other processes, the network, the machine.
	{"kill $P", Perimeter, unix.ECAPMODE},
	{"ptrace $P", Perimeter, unix.ECAPMODE},
	{"procctl", Perimeter, unix.ECAPMODE},
	{"connect $N", Perimeter, unix.ECAPMODE},
	{"bind", Perimeter, unix.ECAPMODE},
	{"sysctl-write", Perimeter, unix.EPERM},
	// Descriptors that are held for something else.
	{"write 8", ReservedFDs, unix.ENOTCAPABLE},
	{"send 8", ReservedFDs, unix.ENOTCAPABLE},
	{"dup-write 8", ReservedFDs, unix.ENOTCAPABLE},
	{"write 128", ReservedFDs, unix.ENOTCAPABLE},
	{"read 128", ReservedFDs, unix.ENOTCAPABLE},
	{"read 96", ChannelGate, unix.ENOTCAPABLE},
}

// twins are what the same program may do, confined as it is.
var twins = []string{
	"openat-capability allowed.txt", "openat-capability link", "openat-written old.txt", "list-capability",
	"write-written old.txt", "create-written new.txt", "unlink-written old.txt", "mkdir-written new", "rename-written old.txt",
	"fork-wait", "read 7", "write 7", "write 96", "write 3", "nothing",
	"ask $G/allowed.txt", "ask allowed.txt", "ask $G/link", "ask /shai/view/allowed.txt", "ask $G/../granted/./allowed.txt",
	"ask $W/new.txt 0x201", "ask $W/old.txt 0x401", "ask /dev/null 1", "ask $G/allowed.txt 0x400000", "ask / 0x400000",
	"ask-from 17 ../granted/allowed.txt", "ask-from 18 ../granted/allowed.txt",
}
