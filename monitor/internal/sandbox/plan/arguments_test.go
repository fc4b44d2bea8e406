// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"slices"
	"testing"
)

// answered is a call, and what a filter answers.
type answered struct {
	name      string
	arguments []uint64
	want      uint32
}

func checkAnswers(t *testing.T, spec filterSpec, calls []answered) {
	t.Helper()
	filter := interpreter(t, spec)
	for _, call := range calls {
		if got := evaluate(t, filter, x86, numberOf(call.name), call.arguments...); got != call.want {
			t.Errorf("%s%v: %#x, want %#x", call.name, call.arguments, got, call.want)
		}
	}
}

func TestFilterArguments(t *testing.T) {
	checkAnswers(t, filterSpec{signalsScoped: true},
		slices.Concat(transfers, numbers, sockets, paths, others))
}

// What reads and writes.
var transfers = []answered{
	{"read", []uint64{0}, allow},
	{"read", []uint64{95}, allow},
	{"read", []uint64{96}, notify},
	{"read", []uint64{1<<32 | 96}, notify}, // the kernel ignores the high word
	{"read", []uint64{159}, notify},
	{"read", []uint64{160}, allow},
	{"recvfrom", []uint64{100}, notify},
	{"readv", []uint64{100}, notify},
	{"preadv2", []uint64{100}, notify},
	{"preadv2", []uint64{200}, allow},
	{"splice", []uint64{100, 0, 200}, notify},
	{"splice", []uint64{200, 0, 8}, notify},
	{"splice", []uint64{200, 0, 201}, allow},
	{"sendfile", []uint64{200, 100}, notify},
	{"sendfile", []uint64{130, 200}, notify},
	{"tee", []uint64{100, 200}, notify},
	{"copy_file_range", []uint64{200, 0, 8}, notify},
	{"write", []uint64{1}, allow},
	{"write", []uint64{7}, allow},
	{"write", []uint64{8}, notify},
	{"write", []uint64{96}, allow},
	{"write", []uint64{127}, allow},
	{"write", []uint64{128}, notify},
	{"writev", []uint64{159}, notify},
	{"sendto", []uint64{128}, notify},
	{"pwrite64", []uint64{8}, notify},
	{"sendmsg", []uint64{3}, notify},
	{"sendmsg", []uint64{7}, notify},
	{"recvmsg", []uint64{3}, allow},
	{"recvmsg", []uint64{200}, notify},
	{"preadv2", []uint64{200, 0, 1, 0, 0, 8}, eopnotsupp}, // RWF_NOWAIT
	{"pwritev2", []uint64{200, 0, 1, 0, 0, 0}, allow},
	{"pwritev2", []uint64{200, 0, 1, 0, 0, 128}, eopnotsupp},
}

// What uses the number of a descriptor, or changes what is there.
var numbers = []answered{
	{"dup", []uint64{2}, allow},
	{"dup", []uint64{3}, notify},
	{"dup2", []uint64{200, 159}, notify},
	{"dup2", []uint64{200, 201}, allow},
	{"dup3", []uint64{128, 200}, notify},
	{"fcntl", []uint64{96, 0}, notify},
	{"fcntl", []uint64{96, 1030}, notify},
	{"fcntl", []uint64{96, 3}, allow},
	{"fcntl", []uint64{200, 0}, allow},
	{"fcntl", []uint64{200, 8}, notify}, // F_SETOWN
	{"fcntl", []uint64{200, 5}, notify}, // F_GETLK
	{"fcntl", []uint64{200, 6}, notify}, // F_SETLK
	{"fcntl", []uint64{200, 37}, notify},
	{"fcntl", []uint64{200, 4}, allow}, // F_SETFL
	{"fcntl", []uint64{7, 4}, allow},
	{"fcntl", []uint64{1, 4}, allow},
	{"fcntl", []uint64{32, 4}, notify},
	{"fcntl", []uint64{96, 1031}, notify}, // F_SETPIPE_SZ
	{"ioctl", []uint64{200, 0x5421}, allow},
	{"ioctl", []uint64{32, 0x5421}, notify}, // FIONBIO
	{"ioctl", []uint64{32, 0x541b}, allow},  // FIONREAD
	// Who is signalled about the key-value connection: its next user's worker would be, too.
	{"fcntl", []uint64{9, 8}, notify},      // F_SETOWN
	{"fcntl", []uint64{9, 10}, notify},     // F_SETSIG
	{"fcntl", []uint64{9, 15}, notify},     // F_SETOWN_EX
	{"ioctl", []uint64{9, 0x5452}, notify}, // FIOASYNC
	{"ioctl", []uint64{9, 0x8901}, notify}, // FIOSETOWN
	{"ioctl", []uint64{9, 0x8902}, notify}, // SIOCSPGRP
	{"close", []uint64{200}, allow},
	{"close", []uint64{1}, allow},
	{"close", []uint64{16}, untouched},
	{"close", []uint64{159}, untouched},
	{"close_range", []uint64{160, 0xffffffff}, allow},
	{"close_range", []uint64{0, 2}, allow},
	{"close_range", []uint64{0, 3}, untouched},
	{"close_range", []uint64{159, 0xffffffff}, untouched},
	{"close_range", []uint64{3, 0xffffffff, 4}, allow}, // CLOSE_RANGE_CLOEXEC
	{"lseek", []uint64{4}, allow},
	{"lseek", []uint64{200, 9, 1}, allow}, {"lseek", []uint64{200, 9, 2}, allow},
	{"lseek", []uint64{200, 9, 3}, einval}, // SEEK_DATA
	{"lseek", []uint64{200, 9, 4}, einval}, // SEEK_HOLE
	{"lseek", []uint64{200, 9, 1<<32 | 4}, einval},
	{"ioctl", []uint64{1, 0x5401}, allow},
	{"ioctl", []uint64{1, 0x5412}, notify}, // TIOCSTI
	{"ioctl", []uint64{96, 0x541b}, notify},
}

// What sets and asks for options of sockets.
var sockets = []answered{
	{"shutdown", []uint64{7, 1}, allow},
	{"shutdown", []uint64{3, 2}, allow},
	{"shutdown", []uint64{6, 2}, notify},
	{"shutdown", []uint64{96, 0}, notify},
	{"getsockopt", []uint64{96, 1, 3}, allow}, // SO_TYPE
	{"getsockopt", []uint64{7, 6, 1}, allow},
	{"getsockopt", []uint64{7, 6, 11}, notify}, // TCP_INFO
	{"getsockopt", []uint64{7, 0, 64}, notify}, // IPT_SO_GET_INFO
	{"getsockopt", []uint64{7, 1, 55}, notify}, // SO_MEMINFO
	{"getsockopt", []uint64{7, 1, 17}, notify}, // SO_PEERCRED
	{"getsockopt", []uint64{7, 1, 42}, notify}, // SO_PEEK_OFF
	{"setsockopt", []uint64{96, 1, 20}, notify},
	{"setsockopt", []uint64{200, 1, 20}, allow},
	{"socketpair", []uint64{1, 1}, allow},
	{"socketpair", []uint64{1, 2}, notify},
	{"socketpair", []uint64{16, 3}, notify},
	{"setsockopt", []uint64{7, 1, 9}, allow},         // SO_KEEPALIVE
	{"setsockopt", []uint64{7, 6, 1}, allow},         // TCP_NODELAY
	{"setsockopt", []uint64{7, 1<<32 | 6, 1}, allow}, // the kernel ignores the high word
	{"setsockopt", []uint64{7, 0, 4}, notify},        // IP_OPTIONS
	{"setsockopt", []uint64{7, 0, 1}, notify},        // IP_TOS
	{"setsockopt", []uint64{7, 41, 9}, notify},       // of IPv6
	{"setsockopt", []uint64{7, 1, 8}, notify},        // SO_RCVBUF
	{"setsockopt", []uint64{7, 1, 26}, notify},       // SO_ATTACH_FILTER
	{"setsockopt", []uint64{7, 6, 2}, notify},        // TCP_MAXSEG
	{"setsockopt", []uint64{7, 6, 9}, notify},        // an option's number at another level
	{"accept4", []uint64{6}, notify},
}

// What takes a path.
var paths = []answered{
	{"openat", []uint64{16, 0, 0}, allow},
	{"openat", []uint64{31, 0, 0}, allow},
	{"openat", []uint64{16, 0, linuxOpenPath}, notify},
	{"openat", []uint64{15, 0, 0}, notify},
	{"openat", []uint64{32, 0, 0}, notify},
	{"openat", []uint64{0xffffff9c, 0, 0}, notify},
	{"openat2", []uint64{16}, notify},
	{"newfstatat", []uint64{16}, notify},
	{"renameat2", []uint64{16, 0, 17}, allow},
	{"renameat2", []uint64{16, 0, 0xffffff9c}, notify},
	{"linkat", []uint64{200, 0, 16}, notify},
	{"symlinkat", []uint64{0, 200}, notify},
	{"execve", nil, notify},
}

// Processes, memory and locks.
var others = []answered{
	{"mmap", []uint64{0, 4096, 3, 0x21, 0xffffffff}, allow},
	{"cachestat", nil, enosys},
	{"mincore", nil, enosys},
	{"flock", []uint64{200, 2}, notify},
	{"remap_file_pages", nil, notify},
	{"clone", []uint64{0x003d0f00}, allow}, // pthread_create
	{"clone", []uint64{0x10000000 | 17}, notify},
	{"clone", []uint64{0x8000}, notify},
	{"clone", []uint64{17}, allow}, // fork
	{"fork", nil, allow},
	{"clone3", nil, enosys},
	{"prctl", []uint64{15}, allow},
	{"prctl", []uint64{4}, notify}, // PR_SET_DUMPABLE
	{"prctl", []uint64{22}, notify},
	{"prctl", []uint64{1, 9}, allow},  // PR_SET_PDEATHSIG, SIGKILL
	{"prctl", []uint64{1, 0}, notify}, // would be cleared
	{"prctl", []uint64{1, 15}, notify},
	{"prlimit64", []uint64{0}, allow},
	{"prlimit64", []uint64{1}, notify},
	{"get_robust_list", []uint64{0}, allow},
	{"get_robust_list", []uint64{1}, notify},
	{"kill", []uint64{1}, allow},
	{"futex", []uint64{0, 1 | 0x80}, allow}, // FUTEX_WAKE, private
	{"futex", []uint64{0, 1}, notify},
	{"futex", []uint64{0, 5}, notify}, // FUTEX_WAKE_OP
	{"futex", []uint64{0, 9 | 0x100}, allow},
	{"futex_wake", nil, enosys},
	{"clock_gettime", []uint64{1}, allow},
	{"clock_gettime", []uint64{0xfffffffa}, allow}, // of the caller
	{"clock_gettime", []uint64{0xffffffc6}, allow}, // of a thread
	{"clock_gettime", []uint64{0xffffffc2}, notify},
	{"clock_nanosleep", []uint64{0xffffffc2}, notify},
	{"timer_create", []uint64{0xffffffc0}, notify},
	{"rseq", nil, allow}, {"arch_prctl", []uint64{0x1023}, allow},
}

// TestFilterServing: in a task that serves users the supervisor is asked about every
// process, thread and signal, and nothing that workers inherit can be changed.
func TestFilterServing(t *testing.T) {
	const noFile = 0xffffffff
	checkAnswers(t, filterSpec{serving: true, signalsScoped: true}, []answered{
		{"ioctl", []uint64{31, 0x541b}, allow}, // FIONREAD
		{"ioctl", []uint64{32, 0x541b}, notify},
		{"ioctl", []uint64{95, 0x541b}, notify},
		{"ioctl", []uint64{200, 0x541b}, allow},
		{"fork", nil, notify}, {"vfork", nil, notify}, {"clone", []uint64{17}, notify},
		{"clone", []uint64{0x4111}, notify}, // as posix_spawn does
		{"clone", []uint64{0x003d0f00}, notify}, {"clone", []uint64{0x003d0f00 | 0x8000}, notify},
		{"clone", []uint64{0x10000000}, notify}, {"clone3", nil, enosys},
		{"kill", []uint64{1}, notify}, {"tkill", []uint64{1}, notify}, {"tgkill", []uint64{1}, notify},
		{"rt_sigqueueinfo", []uint64{1}, notify}, {"rt_tgsigqueueinfo", []uint64{1}, notify},
		{"mmap", []uint64{0, 4096, 3, 0x22, noFile}, allow}, // MAP_PRIVATE|MAP_ANONYMOUS
		{"mmap", []uint64{0, 4096, 3, 0x02, 200}, allow},
		{"mmap", []uint64{0, 4096, 3, 0x21, noFile}, notify},
		{"mmap", []uint64{0, 4096, 1, 0x01, 200}, notify},
		{"mmap", []uint64{0, 4096, 1, 0x03, 200}, notify}, // MAP_SHARED_VALIDATE
		{"mmap", []uint64{0, 4096, 1, 0x01, 4}, allow},
		{"mmap", []uint64{0, 4096, 3, 0x01, 4}, notify},
		{"mmap", []uint64{0, 4096, 1, 0x21, 4}, notify}, // anonymous, whatever the descriptor
		{"mmap", []uint64{0, 4096, 3, 0x01, 5}, notify},
		{"close", []uint64{1}, untouched}, {"close", []uint64{16}, untouched}, {"close", []uint64{17}, untouched},
		{"close", []uint64{160}, allow}, {"close_range", []uint64{0, 0}, untouched},
		{"dup2", []uint64{200, 1}, notify}, {"fcntl", []uint64{1, 4}, notify}, {"fcntl", []uint64{7, 4}, allow},
		{"futex", []uint64{0, 1}, notify}, {"futex", []uint64{0, 0x81}, allow},
		{"rseq", nil, enosys}, {"arch_prctl", []uint64{0x1002}, allow},
		{"arch_prctl", []uint64{0x1023}, einval}, {"arch_prctl", []uint64{0x5001}, einval}, // AMX, a shadow stack
		{"lseek", []uint64{4}, espipe}, {"lseek", []uint64{200}, allow}, {"lseek", []uint64{200, 0, 4}, einval},
		{"read", []uint64{4}, notify}, {"read", []uint64{7}, allow}, {"preadv2", []uint64{4}, notify},
		{"sendfile", []uint64{200, 4}, notify}, {"splice", []uint64{4, 0, 200}, notify},
	})
}
