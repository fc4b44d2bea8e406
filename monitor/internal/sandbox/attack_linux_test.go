// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

const (
	files = plan.PathMediation | plan.PerimeterDomain // two lines of defence: each alone holds
	all   = plan.SyscallFilter | plan.PerimeterDomain
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
	{"openat-capability $S/secret.txt", plan.PerimeterDomain, unix.EACCES},
	{"openat-capability ../secret/secret.txt", plan.PerimeterDomain, unix.EACCES},
	{"openat-capability escape", plan.PerimeterDomain, unix.EACCES},
	// In the runtime: by a path beside a capability, the supervisor would not look.
	{"openat-capability $R/linked.txt", plan.PerimeterDomain, unix.EACCES},
	{"openat-capability-at-once $R/pipe", plan.PerimeterDomain, unix.EACCES},
	{"openat-capability-at-once $R", plan.PerimeterDomain, unix.EACCES},
	{"open $R/linked.txt", files, unix.EACCES},
	{"openat2-capability ../secret/secret.txt", files, unix.EACCES},
	{"create-capability ../secret/new.txt", plan.PerimeterDomain, unix.EACCES},
	{"create-capability ../granted/new.txt", plan.PerimeterDomain, unix.EACCES},
	{"pin $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"open $G/escape", files, unix.EACCES},
	{"open /proc/self/root$S/secret.txt", files, unix.EACCES},
	{"open /proc/thread-self/root$S/secret.txt", files, unix.EACCES},
	{"openat /proc/self/cwd/$S/secret.txt", files, unix.EACCES},
	// Which pages of a file others have mapped.
	{"open /proc/self/smaps", files, unix.EACCES},
	{"open /proc/self/smaps_rollup", files, unix.EACCES},
	{"openat /proc/thread-self/smaps", files, unix.EACCES},
	{"stat $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"lstat $S/link", plan.PathMediation, unix.EACCES},
	{"newfstatat $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"newfstatat-capability ../secret/secret.txt", plan.PathMediation, unix.EACCES},
	{"newfstatat-empty $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"statx $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"statfs $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"access $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"faccessat $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"faccessat2 $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"readlink $S/link", plan.PathMediation, unix.EACCES},
	{"readlinkat $S/link", plan.PathMediation, unix.EACCES},
	{"handle $S/secret.txt", plan.SyscallFilter, 0},
	{"open_by_handle_at", plan.SyscallFilter, 0},
	{"inotify $S", plan.PathMediation, 0},
	// Changing.
	{"mkdir $S/new", files, unix.EACCES},
	{"mkdirat-capability ../secret/new", plan.PerimeterDomain, unix.EACCES},
	{"mknod $S/new", files, unix.EACCES},
	{"mknodat-capability new", plan.PerimeterDomain, unix.EACCES},
	{"link $S/secret.txt $W/new", files, unix.EACCES},
	{"linkat-capability ../secret/secret.txt new", plan.PerimeterDomain, 0},
	{"symlink $S/secret.txt $W/new", files, unix.EACCES},
	{"symlinkat-capability $S/secret.txt new", plan.PerimeterDomain, unix.EACCES},
	{"rename $S/secret.txt $W/new", files, unix.EACCES},
	{"renameat2-out ../secret/secret.txt new", plan.PerimeterDomain, 0},
	{"unlink $S/secret.txt", files, unix.EACCES},
	{"unlinkat-capability ../secret/secret.txt 1", plan.PerimeterDomain, unix.EACCES},
	{"unlinkat-capability allowed.txt 0", plan.PerimeterDomain, unix.EACCES},
	{"rmdir $S/empty", files, unix.EACCES},
	{"truncate $S/secret.txt", files, unix.EACCES},
	{"truncate $G/allowed.txt", files, unix.EACCES},
	{"chdir $S", plan.PathMediation, unix.EACCES},
	{"chmod $S/secret.txt", plan.PathMediation, unix.EACCES},
	{"fchmod $G/allowed.txt", plan.PathMediation, unix.EACCES},
	{"fchmodat allowed.txt", plan.PathMediation, unix.EACCES},
	{"chown $G/allowed.txt", plan.PathMediation, unix.EACCES},
	{"utimensat allowed.txt", plan.PathMediation, unix.EACCES},
	{"getxattr $S/secret.txt", plan.PathMediation, unix.EACCES},
	// Other processes.
	{"ptrace $P", all | plan.NoPrivileges, unix.EPERM},
	{"process_vm_readv $P $A", all | plan.NoPrivileges, unix.EPERM},
	{"kill $P", all, unix.EPERM},
	{"sigqueue $P", all, unix.EPERM},
	{"pidfd_open $P", plan.SyscallFilter, unix.EPERM},
	{"pidfd_getfd", plan.SyscallFilter, unix.EPERM},
	{"kcmp", plan.SyscallFilter, unix.EPERM},
	{"setsid", plan.SyscallFilter, 0},
	{"overhear-list", plan.SyscallFilter, unix.EPERM},
	// The network, and descriptors by messages.
	{"connect $N", all, 0},
	{"socket-unix", plan.SyscallFilter, unix.EPERM},
	{"socketpair 2", plan.SyscallFilter, unix.EPERM},
	{"socketpair 5", plan.SyscallFilter, unix.EPERM},
	{"bind", plan.SyscallFilter, unix.EPERM},
	{"pass-descriptor", plan.SyscallFilter, unix.EPERM},
	{"pass-descriptor-at 3", plan.SyscallFilter, unix.EBUSY},
	{"sendmsg 7", plan.SyscallFilter, unix.EPERM},
	{"recvmsg 7", plan.SyscallFilter, unix.EPERM},
	{"setsockopt 7 0 4", plan.SyscallFilter, unix.EPERM}, // IP_OPTIONS
	{"setsockopt 7 0 1", plan.SyscallFilter, unix.EPERM}, // IP_TOS
	{"setsockopt 7 1 8", plan.SyscallFilter, unix.EPERM}, // SO_RCVBUF
	{"set-flags 96", plan.SyscallFilter, unix.EPERM},
	{"set-nonblocking 96", plan.SyscallFilter, unix.ENOTTY},
	{"setsockopt 96 1 9", plan.SyscallFilter, unix.EPERM},
	{"attach-filter 96", plan.SyscallFilter, unix.EPERM},
	{"firewall 7", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"setsockopt 7 6 19", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM}, // TCP_REPAIR
	{"setsockopt 7 1 33", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM}, // SO_RCVBUFFORCE
	{"setsockopt 7 1 36", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM}, // SO_MARK
	{"getsockopt 7 6 11", plan.SyscallFilter, unix.EPERM},                     // TCP_INFO
	{"getsockopt 7 1 55", plan.SyscallFilter, unix.EPERM},                     // SO_MEMINFO
	{"getsockopt 96 1 17", plan.SyscallFilter, unix.EPERM},                    // SO_PEERCRED
	{"shutdown 96", plan.SyscallFilter, unix.EPERM},
	// Traces at files that others see.
	{"flock $W/old.txt", plan.SyscallFilter, unix.EPERM},
	{"lock-read $G/allowed.txt", plan.LockMediation, unix.EPERM},
	{"lock-write $D/box.txt", plan.LockMediation, unix.EPERM},
	{"lock-description $D/box.txt", plan.LockMediation, unix.EPERM},
	{"look-for-lock $W/old.txt", plan.SyscallFilter, unix.EPERM},
	{"cachestat $G/allowed.txt", plan.CacheHiding, unix.ENOSYS},
	{"mincore $G/allowed.txt", plan.CacheHiding, unix.ENOSYS},
	{"preadv2-nowait $G/allowed.txt", plan.CacheHiding, unix.EOPNOTSUPP},
	{"pwritev2 $D/box.txt", plan.CacheHiding, unix.EOPNOTSUPP},
	{"seek-hole $D/box.txt", plan.HoleHiding, unix.EINVAL},
	{"seek-data $D/box.txt", plan.HoleHiding, unix.EINVAL},
	{"count-processes", plan.PathMediation, unix.ESRCH},
	{"clock-of-parent", plan.SyscallFilter, unix.EPERM},
	{"timer-of-parent", plan.SyscallFilter, unix.EPERM},
	{"wake-everybody", plan.SyscallFilter, unix.EPERM},
	// Programs.
	{"exec /bin/true", plan.ExecRefusal | files, unix.EACCES},
	{"exec $V", plan.ExecRefusal, unix.EACCES},
	{"execveat $V", plan.ExecRefusal, unix.EACCES},
	{"fork-exec $V", plan.ExecRefusal, 0},
	// Channels and reserved numbers.
	{"read 96", plan.UnreadChannels, unix.EACCES},
	{"read 128", plan.UnreadChannels, unix.EACCES},
	{"readv 96", plan.UnreadChannels, unix.EACCES},
	{"preadv2 96", plan.UnreadChannels, unix.EACCES},
	{"recvfrom 96", plan.UnreadChannels, unix.EACCES},
	{"recvmsg 96", plan.SyscallFilter, unix.EPERM},
	{"splice 96", plan.UnreadChannels, 0},
	{"sendfile 96", plan.UnreadChannels, unix.EPERM},
	{"dup-read 96", plan.ReservedNumbers, 0},
	{"dup 128", plan.ReservedNumbers, unix.EPERM},
	{"dup 8", plan.ReservedNumbers, unix.EPERM},
	{"dup2 8", plan.ReservedNumbers, unix.EPERM},
	{"dup3 128", plan.ReservedNumbers, unix.EPERM},
	{"dup2 10", plan.ReservedNumbers, unix.EPERM},
	{"dupfd 96", plan.ReservedNumbers, unix.EPERM},
	{"close 3", plan.ReservedNumbers, unix.EBUSY},
	{"close 16", plan.ReservedNumbers, unix.EBUSY},
	{"close 159", plan.ReservedNumbers, unix.EBUSY},
	{"close-range 3", plan.ReservedNumbers, unix.EBUSY},
	{"close-range 159", plan.ReservedNumbers, unix.EBUSY},
	{"setown 7", plan.SyscallFilter, unix.EPERM},
	{"write 8", plan.SyscallFilter, unix.EPERM},
	{"writev 8", plan.SyscallFilter, unix.EPERM},
	{"sendto 8", plan.SyscallFilter, unix.EPERM},
	{"sendmsg 8", plan.SyscallFilter, unix.EPERM},
	{"write 128", plan.SyscallFilter, unix.EPERM},
	// The machine.
	{"io_uring_setup", plan.SyscallFilter, unix.EPERM},
	{"io_uring_enter", plan.SyscallFilter, unix.EPERM},
	{"io_uring_register", plan.SyscallFilter, unix.EPERM},
	{"io_setup", plan.SyscallFilter, unix.EPERM},
	{"dumpable", plan.SyscallFilter, unix.EPERM},
	{"death-signal 0", plan.SyscallFilter, unix.EPERM},
	{"death-signal 15", plan.SyscallFilter, unix.EPERM},
	{"setns", plan.SyscallFilter, unix.EPERM},
	{"unshare", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"clone-namespace", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"clone3", plan.SyscallFilter, unix.ENOSYS},
	{"bpf", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"memfd_create", plan.SyscallFilter, unix.EPERM},
	{"userfaultfd", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"perf_event_open", plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"keyctl", plan.SyscallFilter, unix.EPERM},
	{"mount", all, unix.EPERM},
	{"chroot /", plan.PathMediation | plan.SyscallFilter | plan.NoPrivileges, unix.EPERM},
	{"seccomp", plan.SyscallFilter, unix.EPERM},
	{"landlock_create", plan.SyscallFilter, unix.EPERM},
	{"setuid", plan.SyscallFilter, unix.EPERM},
	{"shmget", plan.SyscallFilter, unix.EPERM},
	{"affinity", plan.SyscallFilter, unix.EPERM},
	{"int80", plan.SyscallFilter, killed},
}

// twins are the actions that the same program may do under the same confinement.
var twins = []string{
	"open $G/allowed.txt", "open $G/link", "openat $W/old.txt", "openat2 $G/allowed.txt", "map $G/allowed.txt",
	"open-write $W/old.txt", "create $W/new.txt", "creat $W/new.txt",
	"openat-capability allowed.txt", "openat2-capability allowed.txt", "openat-capability link",
	"openat-capability $V", "open $R/allowed.txt", "openat $R/allowed.txt", "openat-capability-at-once .",
	"create-capability new.txt", "pin allowed.txt", "open /proc/self/maps", "open /proc/thread-self/status",
	"open /dev/null",
	"openat /proc/self/task/../status", "open /dev/../$G/./allowed.txt",
	"stat $G/allowed.txt", "lstat $G/escape", "newfstatat $G/allowed.txt", "newfstatat-capability allowed.txt",
	"newfstatat-empty allowed.txt",
	"statx $G/allowed.txt", "statfs $G", "access $G/allowed.txt", "faccessat $G/allowed.txt",
	"faccessat2 $G/allowed.txt",
	"readlink $G/escape", "readlinkat $G/link", "readlink /proc/self/exe", "readlink /proc/self",
	"readlink /proc/self/fd/1",
	"fstat-held 1", "fstat-held 0", "stat /", "is-file 0",
	"mkdirat-capability new", "renameat-capability old.txt new.txt", "unlinkat-capability old.txt 1",
	"kill-own", "fork", "socketpair 1", "prctl-name", "death-signal 9", "read 7", "write 7",
	"sendto 3", "recvmsg 3", "write 96",
	"own-clocks", "wake-own",
	"lock $W/old.txt", "contend $W/old.txt", "preadv2-plain $G/allowed.txt", "seek-end $D/box.txt",
	"close 1", "close-range 160", "closefrom",
	"set-flags 7", "set-flags 1", "set-nonblocking 7", "getsockopt 7 6 1", "getsockopt 96 1 3",
	"shutdown 7", "shutdown 3",
	"dup 1", "dup2 200", "setsockopt 7 6 1", "setsockopt 7 1 9",
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

// TestEachLineHolds: if two protections prevent an attack, waiving one must not be
// enough.
func TestEachLineHolds(t *testing.T) {
	for _, attack := range attacks {
		if attack.off != files {
			continue
		}
		for _, off := range []plan.Protection{plan.PathMediation, plan.PerimeterDomain} {
			t.Run(fmt.Sprintf("%s without %d", attack.try, off), func(t *testing.T) {
				spec, decider := world(t, attack.try)
				spec.waived = off
				if succeeded, _, got := attempt(t, spec, decider); succeeded || strings.Contains(got.output, "secret") {
					t.Errorf("succeeded: %s", got.output)
				}
			})
		}
	}
}

// TestForeignFiles: what has come to belong to somebody else is not opened, though it is in the
// runtime, and neither is what cannot be examined. The refusal is recorded.
func TestForeignFiles(t *testing.T) {
	for name, test := range map[string]struct {
		foreign func(path string) (bool, error)
		opened  bool
	}{
		"nobody's":       {func(string) (bool, error) { return false, nil }, true},
		"somebody's":     {func(path string) (bool, error) { return strings.HasSuffix(path, "/allowed.txt"), nil }, false},
		"not examinable": {func(string) (bool, error) { return false, unix.EIO }, false},
	} {
		for _, try := range []string{"open $R/allowed.txt", "stat $R/allowed.txt"} {
			spec, decider := world(t, try)
			spec.Foreign = test.foreign
			succeeded, errno, got := attempt(t, spec, decider)
			call, _, _ := strings.Cut(try, " ")
			if succeeded != test.opened || !succeeded && errno != unix.EACCES || decider.heard(call) == test.opened {
				t.Errorf("%s, %s: succeeded %v, errno %v: %v %s; recorded %v", name, try, succeeded, errno, got.err, got.output,
					decider.refused)
			}
		}
	}
}

// TestUnscopedSignals: if Landlock does not scope signals (here: waived), the supervisor
// allows a task to signal only itself.
func TestUnscopedSignals(t *testing.T) {
	for try, want := range map[string]bool{"kill $P": false, "kill-own": true} {
		spec, decider := world(t, try)
		spec.waived = plan.PerimeterDomain
		if succeeded, errno, got := attempt(t, spec, decider); succeeded != want {
			t.Errorf("%s: succeeded %v, errno %v: %v %s", try, succeeded, errno, got.err, got.output)
		}
	}
}

// TestRefusedCallsAreReported: a denial without a trace makes people switch
// enforcement off.
func TestRefusedCallsAreReported(t *testing.T) {
	for try, call := range map[string]string{"bpf": "bpf", "read 96": "read", "mkdir $S/new": "mkdir",
		"setsockopt 7 0 4": "setsockopt",
		"unknown 5000":     "system call 5000"} {
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
	spec.waived = plan.SyscallFilter
	if _, errno, got := attempt(t, spec, decider); errno == killed {
		t.Errorf("killed without a filter: %v", got.err)
	}
}
