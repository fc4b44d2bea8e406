/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Making, switching, restricting and closing contexts.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/stat.h>

#include "check.h"

static volatile int shared_looking = 1;

static void
switch_and_return(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t created;

	if (create(&spec, &event)) {
		for (uint64_t n = 0;; n++) {
			REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
			REQUIRE_EQUAL(event.argument, 1000 + n);
			REQUIRE_EQUAL(event.descriptor, -1);
			REQUIRE_EQUAL(lwc_switch(LWC_CALLER, 2000 + n, 0, &event), 0);
		}
	}
	created = event.context;
	for (uint64_t n = 0; n < 100; n++) {
		int descriptor = n == 0 ? event.descriptor : 3;

		REQUIRE_EQUAL(lwc_switch(descriptor, 1000 + n, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
		REQUIRE_EQUAL(event.argument, 2000 + n);
		REQUIRE_EQUAL(event.context, created);
	}
}

static void
memory_is_copied(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int descriptor;

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(shared_looking, 1);
		shared_looking = 3;
		(void)lwc_switch(LWC_CALLER, (uint64_t)shared_looking, LWC_CALL, &event);
		REQUIRE_EQUAL(shared_looking, 3);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	descriptor = event.descriptor;
	shared_looking = 2;
	REQUIRE_EQUAL(lwc_switch(descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 3);
	REQUIRE_EQUAL(shared_looking, 2);
	shared_looking = 4;
	REQUIRE_EQUAL(lwc_switch(descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(shared_looking, 4);
}

/* A clean context is a template: each session starts in its state. */
static void
snapshot_and_roll_back(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(4);
	int template;

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(page[0], 0);
		for (size_t i = 0; i < 4; i++)
			page[i * 4096] = (char)event.argument;
		(void)lwc_switch(LWC_CALLER, (uint64_t)page[4096], 0, &event);
		leave(1);
	}
	template = event.descriptor;
	spec.source = template;
	for (int i = 1; i <= 100; i++) {
		int session;

		REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
		session = event.descriptor;
		REQUIRE_EQUAL(lwc_switch(session, (uint64_t)i, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(event.argument, i);
		REQUIRE_EQUAL(page[0], 0);
		REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
		REQUIRE_EQUAL(read_variable("shai.count.contexts"), 2);
	}
}

static void
callers_are_forgotten(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	REQUIRE_EQUAL(lwc_switch(3, 0, 0, &event), -ESRCH); /* no contexts at all */
	if (create(&spec, &event)) {
		/* Not a call, so there is no context to return to. */
		REQUIRE_EQUAL(lwc_switch(LWC_CALLER, 0, 0, &event), -ESRCH);
		leave(0);
	}
	REQUIRE_EQUAL(lwc_switch(LWC_CALLER, 0, 0, &event), -ESRCH);
	(void)lwc_switch(event.descriptor, 0, 0, &event);
	leave(1);
}

static void
create_errors(void)
{
	static const struct lwc_range odd = {.start = 4096, .length = 100};
	static const struct lwc_range wraps = {.start = 4096, .length = (uint64_t)-4096};
	static const struct lwc_descriptors backwards = {.first = 5, .last = 4};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	REQUIRE_EQUAL(lwc_create(NULL, &event), -EFAULT);
	spec.version = 99;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EPROTONOSUPPORT);
	spec = plain_spec();
	spec.flags = 0x80;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EINVAL);
	spec = plain_spec();
	spec.source = 77;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EBADF);
	spec.source = 0; /* the console */
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EINVAL);
	spec = plain_spec();
	spec.range_count = 1;
	spec.ranges = &odd;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EINVAL);
	spec.ranges = &wraps;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EINVAL);
	spec.ranges = (const void *)8;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EFAULT);
	spec.range_count = LWC_RANGES_MAX + 1;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -E2BIG);
	spec = plain_spec();
	spec.descriptor_count = 1;
	spec.descriptors = &backwards;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EINVAL);
	spec = plain_spec();
	spec.flags = LWC_MONITORED;
	spec.monitor = 77;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EBADF);
	/* The event cannot be written: no context and no descriptor remain. */
	spec = plain_spec();
	REQUIRE_EQUAL(lwc_create(&spec, NULL), -EFAULT);
	REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFD), -EBADF);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
}

static void
switch_errors(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_message message = {.flags = 0x10};
	struct lwc_event event;
	int descriptor;

	if (create(&spec, &event))
		leave(1);
	descriptor = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(LWC_SELF, 0, 0, &event), -EBUSY);
	REQUIRE_EQUAL(lwc_switch(99, 0, 0, &event), -EBADF);
	REQUIRE_EQUAL(lwc_switch(-7, 0, 0, &event), -EBADF);
	REQUIRE_EQUAL(lwc_switch(1, 0, 0, &event), -EINVAL);
	REQUIRE_EQUAL(CALL3(calls.switch_to, descriptor, NULL, &event), -EFAULT);
	REQUIRE_EQUAL(CALL3(calls.switch_to, descriptor, &message, &event), -EINVAL);
	message = (struct lwc_message){.error = -1};
	REQUIRE_EQUAL(CALL3(calls.switch_to, descriptor, &message, &event), -EINVAL);
}

/* The event's address is invalid when the context is resumed: its call fails there. */
static void
unwritable_event(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(lwc_switch(LWC_CALLER, 1, LWC_CALL, (void *)8), -EFAULT);
		leave(0);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	leave(1);
}

static void
rights_only_shrink(void)
{
	static const struct lwc_overlay overlay = {
	    .start = 4096, .length = 4096, .here = 0x100000000};
	static const struct shai_conduit conduit = {.rights = SHAI_CONDUIT_READ};
	struct lwc_restriction restriction = {.rights = 0};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int descriptor;

	if (create(&spec, &event))
		leave(1);
	descriptor = event.descriptor;
	restriction.rights = 0x1000;
	REQUIRE_EQUAL(lwc_restrict(descriptor, &restriction), -EINVAL);
	restriction.rights = 0;
	REQUIRE_EQUAL(lwc_restrict(descriptor, &restriction), 0);
	restriction.rights = LWC_RIGHTS_ALL;
	REQUIRE_EQUAL(lwc_restrict(descriptor, &restriction), 0);
	REQUIRE_EQUAL(lwc_switch(descriptor, 0, 0, &event), -ENOTCAPABLE);
	REQUIRE_EQUAL(lwc_overlay(descriptor, &overlay), -ENOTCAPABLE);
	REQUIRE_EQUAL(lwc_syscall(descriptor, LWC_USE_FILES, SYS_getpid, 0, 0, 0), -ENOTCAPABLE);
	REQUIRE_EQUAL(shai_grant(descriptor, &conduit, 1), -ENOTCAPABLE);
	spec.source = descriptor;
	REQUIRE_EQUAL(lwc_create(&spec, &event), -ENOTCAPABLE);
	restriction.redirected[0] = 2;
	REQUIRE_EQUAL(lwc_restrict(descriptor, &restriction), -ENOTCAPABLE);
}

/* Closes a chain: each context has the only descriptor of the next. */
static void
chain_is_closed(void)
{
	static const struct lwc_descriptors share = {.first = 3, .last = 3, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.descriptors = &share;
	for (int i = 0; i < 40; i++) {
		int next;

		spec.descriptor_count = i == 0 ? 0 : 1;
		if (create(&spec, &event))
			leave(1);
		next = event.descriptor;
		if (next != 3) {
			REQUIRE_EQUAL(CALL2(SYS_dup2, next, 3), 3);
			REQUIRE_EQUAL(CALL1(SYS_close, next), 0);
		}
	}
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 41);
	REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
}

/*
 * The current context continues after its last descriptor is closed, and is discarded
 * when it is left.
 */
static void
current_is_closed(void)
{
	static const struct lwc_descriptors share = {.first = 3, .last = 10, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	if (create(&spec, &event)) { /* 3: the closer, closes what it calls */
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		leave(1);
	}
	spec.descriptors = &share;
	spec.descriptor_count = 1;
	if (create(&spec, &event)) { /* 4: goes to 3 when nobody holds it */
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		leave(1);
	}
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 3);
	REQUIRE_EQUAL(lwc_switch(4, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, 4), 0);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 2);
	REQUIRE_EQUAL(lwc_switch(4, 0, 0, &event), -EBADF);
}

static void
descriptor_can_do_nothing_else(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct stat status;
	char byte;
	int descriptor;

	if (create(&spec, &event))
		leave(1);
	descriptor = event.descriptor;
	REQUIRE(CALL3(SYS_read, descriptor, &byte, 1) < 0);
	REQUIRE(CALL3(SYS_write, descriptor, "x", 1) < 0);
	REQUIRE(CALL2(SYS_ftruncate, descriptor, 0) < 0);
	REQUIRE_EQUAL(CALL2(SYS_fstat, descriptor, &status), 0);
	REQUIRE_EQUAL(CALL2(SYS_fcntl, descriptor, F_GETFD), FD_CLOEXEC);
	REQUIRE(CALL6(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, descriptor, 0) < 0);
}

const struct check context_checks[] = {
    {"switch to a context and return, with arguments", switch_and_return, 0},
    {"memory is copied on write, in both directions", memory_is_copied, 0},
    {"snapshot, 100 sessions rolled back", snapshot_and_roll_back, 0},
    {"no caller without a call", callers_are_forgotten, 0},
    {"errors of lwc_create", create_errors, 0},
    {"errors of lwc_switch", switch_errors, 0},
    {"unwritable event", unwritable_event, 0},
    {"rights of a descriptor only shrink", rights_only_shrink, 0},
    {"a chain of 40 contexts is closed at once", chain_is_closed, 0},
    {"close while called", current_is_closed, 0},
    {"a context's descriptor does nothing else", descriptor_can_do_nothing_else, 0},
    {NULL, NULL, 0},
};
