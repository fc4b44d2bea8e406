/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Descriptor channels and the receiver check.
 */
#include <sys/event.h>
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/signal.h>
#include <sys/stat.h>
#include <sys/unistd.h>

#include "check.h"

int
open_conduit(const char *path, int flags, struct shai_conduit *conduit)
{
	struct stat status;
	int descriptor = open_file(path, O_RDWR | O_CREAT, 0600);

	REQUIRE(descriptor >= 0);
	REQUIRE_EQUAL(CALL3(SYS_write, descriptor, path + 5, 1), 1);
	REQUIRE_EQUAL(CALL2(SYS_fstat, descriptor, &status), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, descriptor), 0);
	*conduit = (struct shai_conduit){.device = status.st_dev,
	    .file = status.st_ino,
	    .rights =
		flags == O_RDONLY ? SHAI_CONDUIT_READ : SHAI_CONDUIT_READ | SHAI_CONDUIT_WRITE};
	return open_file(path, flags, 0);
}

static void
set_nonblocking(int descriptor)
{
	REQUIRE_EQUAL(CALL3(SYS_fcntl, descriptor, F_SETFL, O_NONBLOCK), 0);
}

static void
transfer(void)
{
	struct shai_conduit one, two, three;
	int64_t withheld = read_variable("shai.count.withheld");
	int ends[2], sent[3], received[4] = {-1, -1, -1, -1};
	char byte;

	sent[0] = open_conduit("/tmp/1", O_RDONLY, &one);
	sent[1] = open_conduit("/tmp/2", O_RDONLY, &two);
	sent[2] = open_conduit("/tmp/3", O_RDONLY, &three);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	set_nonblocking(ends[0]);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 3), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 4), -ESRCH); /* without contexts */
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &three, 1), 0);
	for (int round = 0; round < 2; round++) {
		if (round == 1)
			REQUIRE_EQUAL(shai_send(ends[1], sent, 3), 0);
		REQUIRE_EQUAL(shai_receive(ends[0], received, 4), 2);
		REQUIRE(received[2] == -1);
		for (int i = 0; i < 2; i++) {
			REQUIRE_EQUAL(CALL2(SYS_fcntl, received[i], F_GETFD), FD_CLOEXEC);
			REQUIRE_EQUAL(CALL4(SYS_pread, received[i], &byte, 1, 0), 1);
			REQUIRE_EQUAL(byte, i == 0 ? '1' : '3');
		}
	}
	REQUIRE_EQUAL(read_variable("shai.count.withheld"), withheld + 2);
	/* Of what it may not have at all, the receiver learns nothing. */
	REQUIRE_EQUAL(shai_send(ends[1], sent + 1, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 1), 1);
	REQUIRE_EQUAL(shai_send(ends[1], sent + 1, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 1), -EAGAIN);
	REQUIRE_EQUAL(read_variable("shai.count.withheld"), withheld + 4);
}

/* A descriptor that can write needs the right to write. */
static void
rights_of_a_conduit(void)
{
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDWR, &one), received;

	REQUIRE_EQUAL(shai_channel(ends), 0);
	set_nonblocking(ends[0]);
	one.rights = SHAI_CONDUIT_READ;
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), -EAGAIN);
	one.rights = SHAI_CONDUIT_WRITE; /* added to the other */
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), 1);
}

static void
no_data(void)
{
	struct shai_conduit one;
	int ends[2], other[2], descriptor, data = open_conduit("/tmp/1", O_RDONLY, &one);
	char byte = 'x';

	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(CALL3(SYS_write, ends[1], &byte, 1), -EOPNOTSUPP);
	REQUIRE(CALL3(SYS_read, ends[0], &byte, 1) < 0);
	REQUIRE(CALL3(SYS_write, ends[0], &byte, 1) < 0);
	REQUIRE(CALL3(SYS_read, ends[1], &byte, 1) < 0);
	/* Only regular files: no pipe, no directory, no channel. */
	REQUIRE_EQUAL(CALL2(SYS_pipe2, other, 0), 0);
	REQUIRE_EQUAL(shai_send(ends[1], other, 1), -EOPNOTSUPP);
	REQUIRE_EQUAL(shai_send(ends[1], ends, 1), -EOPNOTSUPP);
	descriptor = open_file("/tmp", O_RDONLY | O_DIRECTORY, 0);
	REQUIRE_EQUAL(shai_send(ends[1], &descriptor, 1), -EOPNOTSUPP);
	descriptor = 999;
	REQUIRE_EQUAL(shai_send(ends[1], &descriptor, 1), -EBADF);
	REQUIRE_EQUAL(shai_send(ends[0], &data, 1), -EBADF); /* the wrong end */
	REQUIRE_EQUAL(shai_receive(ends[1], &descriptor, 1), -EBADF);
	REQUIRE_EQUAL(shai_send(data, &data, 1), -EINVAL);
	REQUIRE_EQUAL(shai_send(ends[1], &data, -1), -EINVAL);
	REQUIRE_EQUAL(shai_send(ends[1], &data, SHAI_TRANSFER_MAX + 1), -EINVAL);
	REQUIRE_EQUAL(shai_send(ends[1], NULL, 1), -EFAULT);
	REQUIRE_EQUAL(shai_channel(NULL), -EFAULT);
}

static void
full_empty_closed(void)
{
	struct shai_conduit one;
	int ends[2], sent[2], received[2];

	sent[0] = sent[1] = open_conduit("/tmp/1", O_RDONLY, &one);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	set_nonblocking(ends[0]);
	set_nonblocking(ends[1]);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 2), -EAGAIN);
	for (int i = 0; i < 16; i++)
		REQUIRE_EQUAL(shai_send(ends[1], sent, 2), 0);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 2), -EAGAIN);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 1), -EMSGSIZE); /* it stays */
	/* A delivery that cannot be reported does not happen: no descriptor remains. */
	REQUIRE_EQUAL(shai_receive(ends[0], NULL, 2), -EFAULT);
	REQUIRE_EQUAL(CALL2(SYS_fcntl, ends[1] + 1, F_GETFD), -EBADF);
	/* After the sender has closed, the rest can be received, and then the end. */
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	for (int i = 1; i < 16; i++) {
		REQUIRE_EQUAL(shai_receive(ends[0], received, 2), 2);
		REQUIRE_EQUAL(CALL1(SYS_close, received[0]), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, received[1]), 0);
	}
	REQUIRE_EQUAL(shai_receive(ends[0], received, 2), -ENOTCONN);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 2), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0); /* with a transfer in it */
	REQUIRE_EQUAL(shai_send(ends[1], sent, 2), -EPIPE);
}

static void
too_many_descriptors(void)
{
	struct rlimit limit = {.rlim_cur = 12, .rlim_max = 12};
	struct shai_conduit one;
	int ends[2], sent[20], received[20], first;

	for (int i = 0; i < 20; i++)
		sent[i] = i == 0 ? open_conduit("/tmp/1", O_RDONLY, &one) : sent[0];
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 20), 0);
	REQUIRE_EQUAL(CALL2(SYS_setrlimit, RLIMIT_NOFILE, &limit), 0);
	first = open_file("/dev/null", O_RDONLY, 0);
	REQUIRE_EQUAL(shai_receive(ends[0], received, 20), -EMFILE);
	/* All descriptors that were installed have been closed. */
	REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), first + 1);
}

static void
polled_and_watched(void)
{
	struct shai_conduit one;
	struct pollfd wanted;
	struct kevent event;
	struct {
		long seconds, nanoseconds;
	} none = {0, 0};
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one), received;
	long queue = CALL0(SYS_kqueue);

	REQUIRE_EQUAL(shai_channel(ends), 0);
	wanted = (struct pollfd){.fd = ends[0], .events = POLLIN};
	memset(&event, 0, sizeof(event));
	event.ident = (uintptr_t)ends[0];
	event.filter = EVFILT_READ;
	event.flags = EV_ADD;
	REQUIRE_EQUAL(CALL6(SYS_kevent, queue, &event, 1, NULL, 0, NULL), 0);
	REQUIRE_EQUAL(CALL3(SYS_poll, &wanted, 1, 0), 0);
	REQUIRE_EQUAL(CALL6(SYS_kevent, queue, NULL, 0, &event, 1, &none), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(CALL3(SYS_poll, &wanted, 1, 1000), 1);
	REQUIRE_EQUAL(CALL6(SYS_kevent, queue, NULL, 0, &event, 1, NULL), 1);
	REQUIRE_EQUAL(event.data, 1); /* not how many */
	for (int i = 0; i < 2; i++)
		REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), 1);
	REQUIRE_EQUAL(CALL3(SYS_poll, &wanted, 1, 0), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(CALL3(SYS_poll, &wanted, 1, 0), 1);
	REQUIRE((wanted.revents & POLLHUP) != 0);
	REQUIRE_EQUAL(CALL6(SYS_kevent, queue, NULL, 0, &event, 1, NULL), 1);
	REQUIRE((event.flags & EV_EOF) != 0);
	REQUIRE_EQUAL(CALL3(SYS_write, ends[0], "x", 1) < 0, 1);
}

/* A search engine and a worker: separate processes, the worker in a confined context. */
static void
between_processes(void)
{
	struct shai_conduit alice, bob;
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ends[2], sent[2], received[2];
	long engine;
	char byte;

	sent[0] = open_conduit("/tmp/alice", O_RDONLY, &alice);
	sent[1] = open_conduit("/tmp/bob", O_RDONLY, &bob);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	engine = CALL0(SYS_fork);
	if (engine == 0) {
		REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
		for (int i = 0; i < 200; i++)
			REQUIRE_EQUAL(shai_send(ends[1], sent, 2), 0);
		leave(0);
	}
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, sent[0]), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, sent[1]), 0);
	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		/* The worker cannot grant itself anything. */
		REQUIRE_EQUAL(shai_grant(LWC_SELF, &bob, 1), -EPERM);
		for (int i = 0; i < 200; i++) {
			REQUIRE_EQUAL(shai_receive(ends[0], received, 2), 1);
			REQUIRE_EQUAL(CALL4(SYS_pread, received[0], &byte, 1, 0), 1);
			REQUIRE_EQUAL(byte, 'a');
			REQUIRE_EQUAL(CALL1(SYS_close, received[0]), 0);
		}
		REQUIRE_EQUAL(shai_receive(ends[0], received, 2), -ENOTCONN);
		(void)lwc_switch(LWC_CALLER, 1, 0, &event);
		leave(1);
	}
	REQUIRE_EQUAL(shai_grant(event.descriptor, &alice, 1), 0);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
	REQUIRE_EQUAL(wait_for(engine), 0);
}

static void
many_conduits(void)
{
	static struct shai_conduit batch[SHAI_GRANT_MAX];
	struct shai_conduit one;
	int64_t limit = read_variable("shai.limit.conduits_per_context");
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one), received;

	for (uint64_t i = 0; i < 20; i++) {
		for (uint64_t k = 0; k < SHAI_GRANT_MAX; k++)
			batch[k] = (struct shai_conduit){.device = one.device,
			    .file = one.file + 1 + i * SHAI_GRANT_MAX + k,
			    .rights = SHAI_CONDUIT_READ};
		REQUIRE_EQUAL(shai_grant(LWC_SELF, batch, SHAI_GRANT_MAX), 0);
	}
	REQUIRE_EQUAL(shai_channel(ends), 0);
	set_nonblocking(ends[0]);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), -EAGAIN);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), 1);
	/* A conduit that is granted again counts once; at the limit nothing is added. */
	REQUIRE_EQUAL(
	    write_variable("shai.limit.conduits_per_context", 20 * SHAI_GRANT_MAX + 1), 0);
	one.file = 1;
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), -EAGAIN);
	REQUIRE_EQUAL(write_variable("shai.limit.conduits_per_context", (uint32_t)limit), 0);
	one.rights = 0;
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), -EINVAL);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, NULL, 1), -EFAULT);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, batch, 0), -EINVAL);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, batch, SHAI_GRANT_MAX + 1), -EINVAL);
}

static void
killed_while_waiting(void)
{
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one), received;
	struct {
		long seconds, nanoseconds;
	} delay = {0, 100000000};
	long child;

	for (int receives = 0; receives < 2; receives++) {
		REQUIRE_EQUAL(shai_channel(ends), 0);
		child = CALL0(SYS_fork);
		if (child == 0) {
			if (receives && shai_grant(LWC_SELF, &one, 1) == 0)
				(void)shai_receive(ends[0], &received, 1);
			for (;;)
				(void)shai_send(ends[1], &sent, 1);
		}
		(void)CALL2(SYS_nanosleep, &delay, NULL);
		REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
		REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
		REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	}
}

const struct check channel_checks[] = {
    {"only conduits granted are delivered", transfer, 0},
    {"to write, the right to write", rights_of_a_conduit, 0},
    {"no data, no other kinds of file", no_data, 0},
    {"full, empty, closed", full_empty_closed, 0},
    {"no room for the descriptors", too_many_descriptors, 0},
    {"poll and kqueue", polled_and_watched, 0},
    {"an engine and a confined worker", between_processes, 0},
    {"20,481 conduits", many_conduits, 0},
    {"killed while waiting", killed_while_waiting, 0},
    {NULL, NULL, 0},
};
