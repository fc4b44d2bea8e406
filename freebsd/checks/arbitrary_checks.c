/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls of an ordinary user with arguments at random, in contexts that copy, switch to,
 * redirect, overlay, share and close each other at random. Their results do not matter: the
 * kernel survives them, with all its assertions, and nothing is left of them.
 */
#include <sys/capsicum.h>
#include <sys/event.h>
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/mqueue.h>
#include <sys/signal.h>
#include <sys/socket.h>
#include <sys/specialfd.h>
#include <sys/uio.h>
#include <sys/unistd.h>

#include "check.h"

#define PROCESSES 120
#define CALLS_OF_EACH 400
#define DESCRIPTORS 24
#define PAGES 16
#define DURATION 3000000000u

/* In memory that all contexts and processes share. */
static volatile struct progress {
	uint64_t calls;
	uint32_t random;
} * progress;
static char *arena;

static uint32_t
below(uint32_t bound)
{
	uint32_t state = progress->random;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	progress->random = state;
	return state / 7 % bound;
}

static int
descriptor(void)
{
	return (int)below(DESCRIPTORS + 2) - 2;
}

static void *
pointer(void)
{
	switch (below(12)) {
	case 0:
		return NULL;
	case 1:
		return (void *)~0xfffful;
	case 2:
		return arena + PAGES * 4096 - 8;
	default:
		return arena + below(PAGES) * 4096;
	}
}

static uint64_t
range_length(void)
{
	return (1 + below(PAGES)) * 4096;
}

static long
create_at_random(void)
{
	struct lwc_range range = {
	    .start = (uint64_t)arena, .length = range_length(), .mode = below(3)};
	struct lwc_descriptors some = {.first = (int)below(DESCRIPTORS), .mode = below(3)};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	some.last = some.first + (int)below(6);
	spec.flags = below(4);
	spec.source = below(2) ? LWC_SELF : descriptor();
	spec.monitor = below(2) ? LWC_SELF : descriptor();
	spec.ranges = &range;
	spec.descriptors = &some;
	spec.range_count = below(3) == 0;
	spec.descriptor_count = below(2);
	spec.redirected[below(10)] = below(16) == 0 ? 1ull << below(64) : 0;
	return lwc_create(&spec, below(20) == 0 ? pointer() : &event);
}

static long
on_behalf_at_random(void)
{
	static const short numbers[] = {SYS_close, SYS_dup2, SYS_dup, SYS_mmap, SYS_munmap,
	    SYS_mprotect, SYS_minherit, SYS_mlock, SYS_munlock, SYS_fcntl, SYS_pipe2, SYS_open,
	    SYS_close_range, SYS_cap_enter, SYS_fchdir, SYS_chdir, SYS_write, SYS_socketpair,
	    SYS_setuid, SYS_fstat, SYS_sendmsg, SYS_recvmsg, SYS_shm_open2, SYS_madvise, SYS_execve,
	    SYS_fork, SYS_exit, SYS_ftruncate, SYS_umask, SYS_poll};
	int number = numbers[below(sizeof(numbers) / sizeof(numbers[0]))];
	long first = below(2) ? (long)descriptor() : (long)pointer();
	long second = below(2) ? (long)range_length() : (long)descriptor();

	return lwc_syscall(descriptor(), (int)below(8), number, first, second, below(4));
}

static long
on_contexts(void)
{
	struct lwc_restriction restriction = {.rights = below(64), .flags = below(40) == 0};
	struct lwc_overlay overlay = {.start = (uint64_t)pointer(),
	    .length = range_length(),
	    .here = (uint64_t)arena + (1 + below(3)) * (1ul << 32),
	    .flags = below(2)};
	struct lwc_event event;

	switch (below(6)) {
	case 0:
	case 1:
		return lwc_switch(descriptor(), below(4), below(2), &event);
	case 2:
		return lwc_answer(descriptor(), below(4), (int)below(4), pointer());
	case 3:
		return lwc_restrict(descriptor(), &restriction);
	case 4:
		return lwc_overlay(descriptor(), &overlay);
	default:
		return on_behalf_at_random();
	}
}

static long
on_channels(void)
{
	struct shai_conduit conduit = {.device = below(3), .file = below(9), .rights = below(4)};
	int some[3] = {descriptor(), descriptor(), descriptor()};

	switch (below(5)) {
	case 0:
		return shai_channel(below(8) ? some : pointer());
	case 1:
		return shai_grant(descriptor(), &conduit, 1);
	case 2:
		(void)CALL3(SYS_fcntl, some[0], F_SETFL, O_NONBLOCK);
		return shai_receive(some[0], below(8) ? some : pointer(), (int)below(4));
	default:
		(void)CALL3(SYS_fcntl, some[0], F_SETFL, O_NONBLOCK);
		return shai_send(some[0], some + 1, (int)below(4));
	}
}

/* Passes a descriptor over one end of a pair of sockets, which stays in flight. */
static long
put_in_flight(void)
{
	struct {
		struct cmsghdr header;
		int descriptor __attribute__((aligned(8)));
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			 .cmsg_level = SOL_SOCKET,
			 .cmsg_type = SCM_RIGHTS},
	    .descriptor = descriptor()};
	struct iovec part = {"x", 1};
	struct msghdr message = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = CMSG_SPACE(sizeof(int))};

	return CALL3(SYS_sendmsg, descriptor(), &message, MSG_DONTWAIT);
}

static long
open_at_random(void)
{
	int ends[2];
	int version = 0;
	struct specialfd_eventfd event = {.flags = 0};
	struct mq_attr queue = {.mq_maxmsg = 2, .mq_msgsize = 8};

	switch (below(9)) {
	case 0:
		return CALL2(SYS_pipe2, ends, O_NONBLOCK);
	case 1:
		return CALL4(SYS_socketpair, AF_UNIX, below(2) ? SOCK_STREAM : SOCK_DGRAM, 0, ends);
	case 2:
		return CALL0(SYS_kqueue);
	case 3:
		return CALL3(SYS_shm_open2, SHM_ANON, O_RDWR, 0600);
	case 4:
		return CALL3(SYS___specialfd, SPECIALFD_EVENTFD, &event, sizeof(event));
	case 5:
		return CALL4(
		    SYS_kmq_open, "/arbitrary", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &queue);
	case 6:
		return CALL3(SYS_open, "/tmp", O_RDONLY | O_DIRECTORY, 0);
	case 7:
		if (CALL2(SYS_pdfork, &version, 0) == 0)
			leave(0);
		return version;
	default:
		return CALL3(SYS_open, "/tmp/arbitrary", O_RDWR | O_CREAT | O_NONBLOCK, 0666);
	}
}

static long
on_memory(void)
{
	switch (below(6)) {
	case 0:
		return CALL2(SYS_munmap, arena + 8 * 4096, range_length() / 4);
	case 1:
		return CALL6(SYS_mmap, pointer(), range_length(), PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_ANON | (below(2) ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	case 2:
		return CALL6(SYS_mmap, arena + 4096, range_length() / 4, PROT_READ,
		    MAP_FIXED | MAP_SHARED, descriptor(), 0);
	case 3:
		return CALL3(SYS_minherit, pointer(), range_length(), below(4));
	case 4:
		return CALL2(SYS_mlock, pointer(), range_length());
	default:
		return CALL3(SYS_madvise, pointer(), range_length(), below(8));
	}
}

static long
on_the_process(void)
{
	static const int forks[] = {RFPROC | RFFDG, RFPROC | RFCFDG, RFCFDG, RFFDG, RFPROC, RFMEM};
	struct kevent watched = {.ident = (uintptr_t)CALL0(SYS_getpid),
	    .filter = below(2) ? EVFILT_PROC : EVFILT_READ,
	    .flags = EV_ADD,
	    .fflags = below(2) ? NOTE_EXIT | NOTE_FORK : 0};
	const long self = CALL0(SYS_getpid);
	sigset_t set = {{below(2) ? 0x40000000u : 0, 0, 0, 0}};
	long child;

	switch (below(8)) {
	case 0:
		/* The children end at once; without RFPROC there is none. */
		child = CALL1(SYS_rfork, forks[below(6)]);
		if (child == 0 && CALL0(SYS_getpid) != self)
			leave(0);
		return child;
	case 1:
		if (watched.filter == EVFILT_READ)
			watched.ident = (uintptr_t)descriptor();
		return CALL6(SYS_kevent, descriptor(), &watched, 1, NULL, 0, NULL);
	case 2:
		return CALL3(SYS_sigprocmask, 1 + below(3), &set, NULL);
	case 3:
		return CALL2(SYS_kill, CALL0(SYS_getpid), SIGUSR1);
	case 4:
		return CALL1(SYS_umask, below(512));
	case 5:
		return CALL4(SYS_wait4, -1, NULL, 1 /* WNOHANG */, NULL);
	case 6:
		return below(60) == 0 ? CALL0(SYS_cap_enter) : 0;
	default:
		if (below(150) == 0)
			execute("nothing");
		return 0;
	}
}

static _Noreturn void
call_at_random(void)
{
	while (progress->calls < CALLS_OF_EACH) {
		progress->calls++;
		switch (below(12)) {
		case 0:
		case 1:
			(void)create_at_random();
			break;
		case 2:
		case 3:
		case 4:
			(void)on_contexts();
			break;
		case 5:
			(void)on_channels();
			break;
		case 6:
			(void)put_in_flight();
			break;
		case 7:
			(void)open_at_random();
			break;
		case 8:
			(void)on_memory();
			break;
		case 9:
			(void)CALL2(SYS_dup2, descriptor(), 3 + below(DESCRIPTORS));
			break;
		case 10:
			(void)CALL1(SYS_close, 3 + below(DESCRIPTORS));
			break;
		default:
			(void)on_the_process();
		}
	}
	leave(0);
}

static void
run_one(uint32_t seed)
{
	int status;
	long child;
	uint64_t end = nanoseconds() + DURATION;

	progress->calls = 0;
	progress->random = seed * 2654435761u + 1;
	child = CALL0(SYS_fork);
	if (child == 0) {
		REQUIRE_EQUAL(CALL1(SYS_setuid, 1001), 0);
		ignore_signal(SIGUSR1);
		ignore_signal(SIGPIPE);
		arena = map_pages(PAGES);
		call_at_random();
	}
	/* It may wait for something that never comes, for example for itself. */
	while (CALL4(SYS_wait4, child, &status, 1 /* WNOHANG */, NULL) != child) {
		if (nanoseconds() > end)
			(void)CALL2(SYS_kill, child, SIGKILL);
		(void)CALL0(SYS_sched_yield);
	}
}

static void
calls_at_random(void)
{
	progress = (struct progress *)CALL6(
	    SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
	for (uint32_t i = 0; i < PROCESSES; i++)
		run_one(i);
	(void)CALL1(SYS_unlink, "/tmp/arbitrary");
}

const struct check arbitrary_checks[] = {
    {"calls at random of an ordinary user", calls_at_random, 0},
    {NULL, NULL, 0},
};
