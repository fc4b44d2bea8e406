// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	files = PathMediation | Perimeter // two lines of defence: each alone holds
	all   = SyscallFilter | Perimeter
)

var attacks = []attack{
	// Opening and looking.
	{"open $S/secret.txt", files, unix.EACCES},
	{"open-write $S/secret.txt", files, unix.EACCES},
	{"create $S/new.txt", files, unix.EACCES},
	{"creat $S/new.txt", files, unix.EACCES},
	{"creat $S/secret.txt", files, unix.EACCES},
	{"creat $G/new.txt", files, unix.EACCES},
	{"openat $S/secret.txt", files, unix.EACCES},
	{"openat2 $S/secret.txt", files, unix.EACCES},
	{"map $S/secret.txt", files, 0},
	{"openat-capability $S/secret.txt", Perimeter, unix.EACCES},
	{"openat-capability ../secret/secret.txt", Perimeter, unix.EACCES},
	{"openat-capability escape", Perimeter, unix.EACCES},
	{"openat2-capability ../secret/secret.txt", files, unix.EACCES},
	{"create-capability ../secret/new.txt", Perimeter, unix.EACCES},
	{"create-capability ../granted/new.txt", Perimeter, unix.EACCES},
	{"pin $S/secret.txt", PathMediation, unix.EACCES},
	{"open $G/escape", files, unix.EACCES},
	{"open /proc/self/root$S/secret.txt", files, unix.EACCES},
	{"open /proc/thread-self/root$S/secret.txt", files, unix.EACCES},
	{"openat /proc/self/cwd/$S/secret.txt", files, unix.EACCES},
	{"stat $S/secret.txt", PathMediation, unix.EACCES},
	{"lstat $S/link", PathMediation, unix.EACCES},
	{"newfstatat $S/secret.txt", PathMediation, unix.EACCES},
	{"newfstatat-capability ../secret/secret.txt", PathMediation, unix.EACCES},
	{"newfstatat-empty $S/secret.txt", PathMediation, unix.EACCES},
	{"statx $S/secret.txt", PathMediation, unix.EACCES},
	{"statfs $S/secret.txt", PathMediation, unix.EACCES},
	{"access $S/secret.txt", PathMediation, unix.EACCES},
	{"faccessat $S/secret.txt", PathMediation, unix.EACCES},
	{"faccessat2 $S/secret.txt", PathMediation, unix.EACCES},
	{"readlink $S/link", PathMediation, unix.EACCES},
	{"readlinkat $S/link", PathMediation, unix.EACCES},
	{"handle $S/secret.txt", SyscallFilter, 0},
	{"open_by_handle_at", SyscallFilter, 0},
	{"inotify $S", PathMediation, 0},
	// Changing.
	{"mkdir $S/new", files, unix.EACCES},
	{"mkdirat-capability ../secret/new", Perimeter, unix.EACCES},
	{"mknod $S/new", files, unix.EACCES},
	{"mknodat-capability new", Perimeter, unix.EACCES},
	{"link $S/secret.txt $W/new", files, unix.EACCES},
	{"linkat-capability ../secret/secret.txt new", Perimeter, 0},
	{"symlink $S/secret.txt $W/new", files, unix.EACCES},
	{"symlinkat-capability $S/secret.txt new", Perimeter, unix.EACCES},
	{"rename $S/secret.txt $W/new", files, unix.EACCES},
	{"renameat2-out ../secret/secret.txt new", Perimeter, 0},
	{"unlink $S/secret.txt", files, unix.EACCES},
	{"unlinkat-capability ../secret/secret.txt 1", Perimeter, unix.EACCES},
	{"unlinkat-capability allowed.txt 0", Perimeter, unix.EACCES},
	{"rmdir $S/empty", files, unix.EACCES},
	{"truncate $S/secret.txt", files, unix.EACCES},
	{"truncate $G/allowed.txt", files, unix.EACCES},
	{"chdir $S", PathMediation, unix.EACCES},
	{"chmod $S/secret.txt", PathMediation, unix.EACCES},
	{"fchmod $G/allowed.txt", PathMediation, unix.EACCES},
	{"fchmodat allowed.txt", PathMediation, unix.EACCES},
	{"chown $G/allowed.txt", PathMediation, unix.EACCES},
	{"utimensat allowed.txt", PathMediation, unix.EACCES},
	{"getxattr $S/secret.txt", PathMediation, unix.EACCES},
	// Other processes.
	{"ptrace $P", all, unix.EPERM},
	{"process_vm_readv $P $A", all, unix.EPERM},
	{"kill $P", all, unix.EPERM},
	{"sigqueue $P", all, unix.EPERM},
	{"pidfd_open $P", SyscallFilter, unix.EPERM},
	{"pidfd_getfd", SyscallFilter, unix.EPERM},
	{"kcmp", SyscallFilter, unix.EPERM},
	{"setsid", SyscallFilter, 0},
	// The network, and descriptors by messages.
	{"connect $N", all, 0},
	{"socket-unix", SyscallFilter, unix.EPERM},
	{"socketpair 2", SyscallFilter, unix.EPERM},
	{"socketpair 5", SyscallFilter, unix.EPERM},
	{"bind", SyscallFilter, unix.EPERM},
	{"pass-descriptor", SyscallFilter, unix.EPERM},
	{"sendmsg 7", SyscallFilter, unix.EPERM},
	{"recvmsg 7", SyscallFilter, unix.EPERM},
	// Programs.
	{"exec /bin/true", ExecRefusal | files, unix.EACCES},
	{"exec $V", ExecRefusal, unix.EACCES},
	{"execveat $V", ExecRefusal, unix.EACCES},
	{"fork-exec $V", ExecRefusal, 0},
	// Channels and reserved numbers.
	{"read 96", ChannelGate, unix.EACCES},
	{"read 128", ChannelGate, unix.EACCES},
	{"readv 96", ChannelGate, unix.EACCES},
	{"preadv2 96", ChannelGate, unix.EACCES},
	{"recvfrom 96", ChannelGate, unix.EACCES},
	{"recvmsg 96", SyscallFilter, unix.EPERM},
	{"splice 96", ChannelGate, 0},
	{"sendfile 96", ChannelGate, unix.EPERM},
	{"dup-read 96", ReservedFDs, 0},
	{"dup 128", ReservedFDs, unix.EPERM},
	{"dup 8", ReservedFDs, unix.EPERM},
	{"dup2 8", ReservedFDs, unix.EPERM},
	{"dup3 128", ReservedFDs, unix.EPERM},
	{"dup2 10", ReservedFDs, unix.EPERM},
	{"dupfd 96", ReservedFDs, unix.EPERM},
	{"setown 7", SyscallFilter, unix.EPERM},
	{"write 8", SyscallFilter, unix.EPERM},
	{"writev 8", SyscallFilter, unix.EPERM},
	{"sendto 8", SyscallFilter, unix.EPERM},
	{"sendmsg 8", SyscallFilter, unix.EPERM},
	{"write 128", SyscallFilter, unix.EPERM},
	// The machine.
	{"io_uring_setup", SyscallFilter, unix.EPERM},
	{"io_uring_enter", SyscallFilter, unix.EPERM},
	{"io_uring_register", SyscallFilter, unix.EPERM},
	{"io_setup", SyscallFilter, unix.EPERM},
	{"dumpable", SyscallFilter, unix.EPERM},
	{"setns", SyscallFilter, unix.EPERM},
	{"unshare", SyscallFilter, unix.EPERM},
	{"clone-namespace", SyscallFilter, unix.EPERM},
	{"clone3", SyscallFilter, unix.ENOSYS},
	{"bpf", SyscallFilter, unix.EPERM},
	{"memfd_create", SyscallFilter, unix.EPERM},
	{"userfaultfd", SyscallFilter, unix.EPERM},
	{"perf_event_open", SyscallFilter, unix.EPERM},
	{"keyctl", SyscallFilter, unix.EPERM},
	{"mount", all, unix.EPERM},
	{"chroot /", PathMediation | SyscallFilter, unix.EPERM},
	{"seccomp", SyscallFilter, unix.EPERM},
	{"landlock_create", SyscallFilter, unix.EPERM},
	{"setuid", SyscallFilter, unix.EPERM},
	{"shmget", SyscallFilter, unix.EPERM},
	{"affinity", SyscallFilter, unix.EPERM},
	{"int80", SyscallFilter, killed},
}

// twins are what the same program may do, confined as it is.
var twins = []string{
	"open $G/allowed.txt", "open $G/link", "openat $W/old.txt", "openat2 $G/allowed.txt", "map $G/allowed.txt",
	"open-write $W/old.txt", "create $W/new.txt", "creat $W/new.txt",
	"openat-capability allowed.txt", "openat2-capability allowed.txt", "openat-capability link",
	"create-capability new.txt", "pin allowed.txt", "open /proc/self/maps", "open /proc/thread-self/status", "open /dev/null",
	"openat /proc/self/task/../status", "open /dev/../$G/./allowed.txt",
	"stat $G/allowed.txt", "lstat $G/escape", "newfstatat $G/allowed.txt", "newfstatat-capability allowed.txt", "newfstatat-empty allowed.txt",
	"statx $G/allowed.txt", "statfs $G", "access $G/allowed.txt", "faccessat $G/allowed.txt", "faccessat2 $G/allowed.txt",
	"readlink $G/escape", "readlinkat $G/link", "readlink /proc/self/exe", "readlink /proc/self", "readlink /proc/self/fd/1",
	"fstat-held 1", "fstat-held 0", "stat /", "is-file 0",
	"mkdirat-capability new", "renameat-capability old.txt new.txt", "unlinkat-capability old.txt 1",
	"kill-own", "fork", "socketpair 1", "prctl-name", "read-by-gate 96", "read 7", "write 7", "sendmsg 3", "recvmsg 3", "write 96",
	"dup 1", "dup2 200",
}

// world makes a specification for an attempt, with every kind of descriptor and
// a bystander.
func world(t *testing.T, try string) (Spec, *scripted) {
	t.Helper()
	g := newGround(t)
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { listen.Close() })
	process, address := bystander(t)
	try = strings.NewReplacer("$P", fmt.Sprint(process), "$A", address, "$V", victim(t),
		"$N", fmt.Sprint(listen.Addr().(*net.TCPAddr).Port)).Replace(try)
	spec := g.spec(t, try)
	channels(t, &spec)
	return spec, g.decider()
}

// TestEachLineHolds: where two protections stand in an attack's way, waiving one
// must not be enough.
func TestEachLineHolds(t *testing.T) {
	for _, attack := range attacks {
		if attack.off != files {
			continue
		}
		for _, off := range []Protection{PathMediation, Perimeter} {
			t.Run(fmt.Sprintf("%s without %d", attack.try, off), func(t *testing.T) {
				spec, decider := world(t, attack.try)
				spec.Waived = off
				if succeeded, _, got := attempt(t, spec, decider); succeeded || strings.Contains(got.output, "secret") {
					t.Errorf("succeeded: %s", got.output)
				}
			})
		}
	}
}

// TestUnscopedSignals: where Landlock does not scope signals (here: waived), the
// supervisor lets a task signal itself and nobody else.
func TestUnscopedSignals(t *testing.T) {
	for try, want := range map[string]bool{"kill $P": false, "kill-own": true} {
		spec, decider := world(t, try)
		spec.Waived = Perimeter
		if succeeded, errno, got := attempt(t, spec, decider); succeeded != want {
			t.Errorf("%s: succeeded %v, errno %v: %v %s", try, succeeded, errno, got.err, got.output)
		}
	}
}

// TestRefusedCallsAreReported: a denial without a trace makes people switch
// enforcement off.
func TestRefusedCallsAreReported(t *testing.T) {
	for try, call := range map[string]string{"bpf": "bpf", "read 96": "read", "mkdir $S/new": "mkdir", "unknown 5000": "system call 5000"} {
		spec, decider := world(t, try)
		if attempt(t, spec, decider); !decider.heard(call) {
			t.Errorf("%s: heard only %v", try, decider.refused)
		}
	}
}

// TestX32 is apart, because few kernels have that entry: without it, the call
// fails with ENOSYS outside the sandbox; inside, the process is killed.
func TestX32(t *testing.T) {
	spec, decider := world(t, "x32")
	if succeeded, errno, got := attempt(t, spec, decider); succeeded || errno != killed {
		t.Errorf("ended with %v, errno %v", got.err, errno)
	}
	spec, decider = world(t, "x32")
	spec.Waived = SyscallFilter
	if _, errno, got := attempt(t, spec, decider); errno == killed {
		t.Errorf("killed without a filter: %v", got.err)
	}
}
