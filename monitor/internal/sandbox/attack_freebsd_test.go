// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

var attacks = []attack{
	// By name: there are no names.
	{"open $S/secret.txt", plan.PerimeterDomain, unix.ECAPMODE},
	{"open $G/allowed.txt", plan.PerimeterDomain, unix.ECAPMODE},
	{"open /dev/zero", plan.PerimeterDomain, unix.ECAPMODE},
	{"stat $S/secret.txt", plan.PerimeterDomain, unix.ECAPMODE},
	{"chdir $S", plan.PerimeterDomain, unix.ECAPMODE},
	{"exec $V", plan.PerimeterDomain, unix.ECAPMODE},
	{"shared-memory /shai-test", plan.PerimeterDomain, unix.ECAPMODE},
	// Out of a directory.
	{"openat-capability ../secret/secret.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"openat-capability escape", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"openat-capability $S/secret.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	// More than was granted on it.
	{"openat-withheld secret.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"list-withheld", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"write-capability allowed.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"create-capability new.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"unlink-capability allowed.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"mkdir-capability new", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"rename-into allowed.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"link-into allowed.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"symlink-written new", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"fifo-written new", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"chmod-written old.txt", plan.PerimeterDomain, unix.ENOTCAPABLE},
	{"fexecve-capability program", plan.PerimeterDomain, unix.ENOTCAPABLE},
	// Other processes, the network, the machine.
	{"kill $P", plan.PerimeterDomain, unix.ECAPMODE},
	{"ptrace $P", plan.PerimeterDomain, unix.ECAPMODE},
	{"procctl", plan.PerimeterDomain, unix.ECAPMODE},
	{"rfork", plan.PerimeterDomain, unix.ECAPMODE},
	{"connect $N", plan.PerimeterDomain, unix.ECAPMODE},
	{"bind", plan.PerimeterDomain, unix.ECAPMODE},
	{"sysctl-write", plan.PerimeterDomain, unix.EPERM},
	// Descriptors that are held for something else.
	{"write 8", plan.ReservedNumbers, unix.ENOTCAPABLE},
	{"send 8", plan.ReservedNumbers, unix.ENOTCAPABLE},
	{"dup-write 8", plan.ReservedNumbers, unix.ENOTCAPABLE},
	{"write 128", plan.ReservedNumbers, unix.ENOTCAPABLE},
	{"read 128", plan.ReservedNumbers, unix.ENOTCAPABLE},
	{"read 96", plan.UnreadChannels, unix.ENOTCAPABLE},
	{"setsockopt 7", plan.ReservedNumbers, unix.ENOTCAPABLE},
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
