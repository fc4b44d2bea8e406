/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a context has of its own: memory, descriptors, directories, credentials,
 * signals, registers.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/stat.h>
#include <sys/unistd.h>

#include "check.h"

static void
shared_range(void)
{
	char *pages = map_pages(3);
	struct lwc_range range = {
	    .start = (uint64_t)pages + 4096, .length = 4096, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int descriptor;

	pages[0] = pages[4096] = pages[8192] = 'a';
	spec.ranges = &range;
	spec.range_count = 1;
	if (create(&spec, &event)) {
		pages[0] = pages[4096] = pages[8192] = 'b';
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		(void)lwc_switch(LWC_CALLER, (uint64_t)pages[4096], 0, &event);
	}
	descriptor = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE(pages[0] == 'a' && pages[4096] == 'b' && pages[8192] == 'a');
	/*
	 * Shared memory stays shared in another copy of the context, without being
	 * named.
	 */
	spec.range_count = 0;
	if (create(&spec, &event))
		leave(1);
	pages[4096] = 'c';
	REQUIRE_EQUAL(lwc_switch(descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 'c');
}

static void
omitted_range(void)
{
	char *pages = map_pages(3);
	struct lwc_range range = {
	    .start = (uint64_t)pages + 4096, .length = 4096, .mode = LWC_OMIT};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.ranges = &range;
	spec.range_count = 1;
	pages[0] = pages[4096] = 'a';
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(pages[0], 'a');
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		pages[4096] = 'x'; /* ends the process */
		leave(1);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(pages[4096], 'a');
	(void)lwc_switch(3, 0, 0, &event);
}

static int64_t
offset(int descriptor)
{
	return CALL3(SYS_lseek, descriptor, 0, SEEK_CUR);
}

static void
descriptors_shared_copied_omitted(void)
{
	static const struct lwc_descriptors modes[] = {
	    {.first = 4, .last = 4, .mode = LWC_COPY}, {.first = 5, .last = 9, .mode = LWC_OMIT}};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	for (int i = 3; i <= 6; i++) {
		REQUIRE_EQUAL(open_file("/tmp/check", O_RDWR | O_CREAT, 0600), i);
		REQUIRE_EQUAL(CALL3(SYS_write, i, "0123456789", 10), 10);
	}
	spec.descriptors = modes;
	spec.descriptor_count = 2;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(offset(3), 10);
		REQUIRE_EQUAL(offset(4), 0); /* opened again */
		REQUIRE_EQUAL(offset(5), -EBADF);
		REQUIRE_EQUAL(offset(6), -EBADF);
		REQUIRE_EQUAL(CALL3(SYS_lseek, 3, 1, SEEK_SET), 1);
		REQUIRE_EQUAL(CALL3(SYS_lseek, 4, 2, SEEK_SET), 2);
		REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
		REQUIRE_EQUAL(CALL2(SYS_fcntl, 7, F_GETFD), -EBADF); /* its own descriptor */
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	REQUIRE_EQUAL(event.descriptor, 7);
	REQUIRE_EQUAL(lwc_switch(7, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(offset(3), 1);
	REQUIRE_EQUAL(offset(4), 10);
	REQUIRE_EQUAL(offset(5), 10);
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/check"), 0);
}

#define COMMANDS 256 /* a list of 2 KiB */

/* A descriptor that is opened again keeps its limits and flags, and leaves nothing behind. */
static void
opened_again(void)
{
	static const char *const zones[] = {
	    "vm.uma.malloc_2048.stats.current", "vm.uma.TMPFS_node.stats.current"};
	static const struct lwc_descriptors mode = {.first = 3, .last = 4, .mode = LWC_COPY};
	static unsigned long commands[COMMANDS], found[COMMANDS];
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int64_t before[2];

	REQUIRE_EQUAL(open_file("/tmp/again", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 3);
	REQUIRE_EQUAL(open_file("/tmp", O_PATH | O_DIRECTORY, 0), 4);
	for (size_t i = 0; i < COMMANDS; i++)
		commands[i] = i;
	REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_limit, 3, commands, COMMANDS), 0);
	spec.descriptors = &mode;
	spec.descriptor_count = 1;
	for (int round = 0; round < 500; round++) {
		if (round == 10)
			for (int i = 0; i < 2; i++)
				before[i] = read_variable(zones[i]);
		if (create(&spec, &event)) {
			REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFD), FD_CLOEXEC);
			REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFL), O_RDWR | O_APPEND);
			REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_get, 3, found, COMMANDS), COMMANDS);
			REQUIRE_EQUAL(memcmp(found, commands, sizeof(found)), 0);
			REQUIRE_EQUAL(CALL2(SYS_fchmod, 4, 0700), -EBADF); /* still O_PATH */
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		}
		if (round == 0)
			REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, 5), 0);
		if (round % 100 == 0) {
			REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/again"), 0);
			REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
			REQUIRE_EQUAL(
			    open_file("/tmp/again", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
			    3);
			REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_limit, 3, commands, COMMANDS), 0);
		}
	}
	for (int i = 0; i < 2; i++) {
		int64_t now = read_variable(zones[i]);

		REQUIRE(before[i] > 0);
		if (now > before[i] + (i == 0 ? 40 : 0)) /* others use the first zone, too */
			require_equal(now, before[i], "opened_again", zones[i]);
	}
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/again"), 0);
}

static void
no_copy_of_a_pipe(void)
{
	static const struct lwc_descriptors mode = {.first = 3, .last = 3, .mode = LWC_COPY};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ends[2];

	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	spec.descriptors = &mode;
	spec.descriptor_count = 1;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EOPNOTSUPP);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
}

/* The last writer of a pipe is a context: its end closes the pipe. */
static void
closing_closes_files(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ends[2];
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, O_NONBLOCK), 0);
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(CALL3(SYS_read, ends[0], &byte, 1), -EAGAIN);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	REQUIRE_EQUAL(CALL3(SYS_read, ends[0], &byte, 1), 0);
}

static void
directories(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	REQUIRE_EQUAL(CALL1(SYS_chdir, "/"), 0);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL1(SYS_chdir, "/dev"), 0);
		REQUIRE(open_file("null", O_RDWR, 0) >= 0);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(open_file("null", O_RDWR, 0), -ENOENT);
}

static void
credentials(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context;

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL1(SYS_setuid, 1001), 0);
		for (;;) {
			REQUIRE_EQUAL(CALL0(SYS_getuid), 1001);
			REQUIRE_EQUAL(CALL1(SYS_setuid, 0), -EPERM);
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		}
	}
	context = event.descriptor;
	for (int i = 0; i < 3; i++) {
		long child;

		REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(CALL0(SYS_getuid), 0);
		REQUIRE_EQUAL(CALL1(SYS_seteuid, 0), 0);
		/* A child now shares the credentials that are exchanged. */
		child = CALL0(SYS_fork);
		if (child == 0)
			leave(0);
		REQUIRE_EQUAL(wait_for(child), 0);
	}
}

/* A child keeps a context's credentials in use while the context is left and entered. */
static void
credentials_in_use(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int go[2], context;
	long child;
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, go, 0), 0);
	if (create(&spec, &event)) {
		for (;;)
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	context = event.descriptor;
	child = CALL0(SYS_fork);
	if (child == 0) {
		(void)CALL1(SYS_close, go[1]);
		(void)CALL3(SYS_read, go[0], &byte, 1);
		leave(0);
	}
	for (int i = 0; i < 10; i++)
		REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, go[1]), 0);
	/* The context has the writing end too. */
	REQUIRE_EQUAL(CALL1(SYS_close, context), 0);
	REQUIRE_EQUAL(wait_for(child), 0);
}

static void
capability_mode(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int free, mode = -1;

	spec.flags = LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL1(SYS_cap_getmode, &mode), 0);
		REQUIRE_EQUAL(mode, 1);
		REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), -ECAPMODE);
		REQUIRE_EQUAL(CALL2(SYS_kill, 1, 0), -ECAPMODE);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	free = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(free, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(CALL1(SYS_cap_getmode, &mode), 0);
	REQUIRE_EQUAL(mode, 0);
	REQUIRE(open_file("/dev/null", O_RDONLY, 0) >= 0);
	/* Of itself, irrevocably; the contexts that it creates are in it too. */
	REQUIRE_EQUAL(
	    lwc_restrict(LWC_SELF, &(struct lwc_restriction){.flags = LWC_CAPABILITY_MODE}), 0);
	REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), -ECAPMODE);
	spec.flags = 0;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), -ECAPMODE);
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, 0, &event);
}

static volatile int handled;

static void
handler_one(int number)
{
	(void)number;
	handled += 1;
}

static void
handler_two(int number)
{
	(void)number;
	handled += 100;
}

static void
handle(void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, SIGUSR1, &action, NULL), 0);
}

static void
signal_self(void)
{
	REQUIRE_EQUAL(CALL2(SYS_kill, CALL0(SYS_getpid), SIGUSR1), 0);
}

static void
signal_actions(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	handle(handler_one);
	if (create(&spec, &event)) {
		handle(handler_two);
		signal_self();
		REQUIRE_EQUAL(handled, 100);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(handled, 0);
	signal_self();
	REQUIRE_EQUAL(handled, 1);
}

/*
 * A signal that one context blocks is delivered as soon as a context is current that
 * does not block it.
 */
static void
signal_masks(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	sigset_t set;

	handle(handler_one);
	memset(&set, 0, sizeof(set));
	set.__bits[0] = 1u << (SIGUSR1 - 1);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(handled, 0);
		REQUIRE_EQUAL(CALL3(SYS_sigprocmask, SIG_BLOCK, &set, NULL), 0);
		signal_self();
		REQUIRE_EQUAL(handled, 0);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(handled, 1);
}

const struct check resource_checks[] = {
    {"shared range", shared_range, 0},
    {"omitted range", omitted_range, SIGSEGV},
    {"descriptors shared, copied, omitted", descriptors_shared_copied_omitted, 0},
    {"descriptors opened again leave nothing behind", opened_again, 0},
    {"no copy of a pipe", no_copy_of_a_pipe, 0},
    {"closing a context closes its files", closing_closes_files, 0},
    {"working directory of its own", directories, 0},
    {"credentials of its own", credentials, 0},
    {"credentials that a child uses too", credentials_in_use, 0},
    {"capability mode of its own", capability_mode, 0},
    {"signal actions of its own", signal_actions, 0},
    {"signal mask of its own", signal_masks, 0},
    {NULL, NULL, 0},
};
