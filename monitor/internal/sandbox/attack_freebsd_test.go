// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"golang.org/x/sys/unix"
)

var attacks = []attack{
	// By name: there are no names.
	{"open $S/secret.txt", perimeterDomain, unix.ECAPMODE},
	{"open $G/allowed.txt", perimeterDomain, unix.ECAPMODE},
	{"open /dev/zero", perimeterDomain, unix.ECAPMODE},
	{"stat $S/secret.txt", perimeterDomain, unix.ECAPMODE},
	{"chdir $S", perimeterDomain, unix.ECAPMODE},
	{"exec $V", perimeterDomain, unix.ECAPMODE},
	{"shared-memory /shai-test", perimeterDomain, unix.ECAPMODE},
	// Out of a directory.
	{"openat-capability ../secret/secret.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"openat-capability escape", perimeterDomain, unix.ENOTCAPABLE},
	{"openat-capability $S/secret.txt", perimeterDomain, unix.ENOTCAPABLE},
	// More than was granted on it.
	{"openat-withheld secret.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"list-withheld", perimeterDomain, unix.ENOTCAPABLE},
	{"write-capability allowed.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"create-capability new.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"unlink-capability allowed.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"mkdir-capability new", perimeterDomain, unix.ENOTCAPABLE},
	{"rename-into allowed.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"link-into allowed.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"symlink-written new", perimeterDomain, unix.ENOTCAPABLE},
	{"fifo-written new", perimeterDomain, unix.ENOTCAPABLE},
	{"chmod-written old.txt", perimeterDomain, unix.ENOTCAPABLE},
	{"fexecve-capability program", perimeterDomain, unix.ENOTCAPABLE},
	// Other processes, the network, the machine.
	{"kill $P", perimeterDomain, unix.ECAPMODE},
	{"ptrace $P", perimeterDomain, unix.ECAPMODE},
	{"procctl", perimeterDomain, unix.ECAPMODE},
	{"connect $N", perimeterDomain, unix.ECAPMODE},
	{"bind", perimeterDomain, unix.ECAPMODE},
	{"sysctl-write", perimeterDomain, unix.EPERM},
	// Descriptors that are held for something else.
	{"write 8", reservedNumbers, unix.ENOTCAPABLE},
	{"send 8", reservedNumbers, unix.ENOTCAPABLE},
	{"dup-write 8", reservedNumbers, unix.ENOTCAPABLE},
	{"write 128", reservedNumbers, unix.ENOTCAPABLE},
	{"read 128", reservedNumbers, unix.ENOTCAPABLE},
	{"read 96", unreadChannels, unix.ENOTCAPABLE},
	{"setsockopt 7", reservedNumbers, unix.ENOTCAPABLE},
}

// twins are the actions that the same program may do under the same confinement.
var twins = []string{
	"openat-capability allowed.txt", "openat-capability link", "openat-written old.txt", "list-capability",
	"write-written old.txt", "create-written new.txt", "unlink-written old.txt", "mkdir-written new",
	"rename-written old.txt",
	"fork-wait", "read 7", "write 7", "write 96", "write 3", "nothing",
	"ask $G/allowed.txt", "ask allowed.txt", "ask $G/link", "ask /shai/view/allowed.txt",
	"ask $G/../granted/./allowed.txt",
	"ask $W/new.txt 0x201", "ask $W/old.txt 0x401", "ask /dev/null 1", "ask $G/allowed.txt 0x400000", "ask / 0x400000",
	"ask-from 17 ../granted/allowed.txt", "ask-from 18 ../granted/allowed.txt",
}
