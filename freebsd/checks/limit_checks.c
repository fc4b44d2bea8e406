/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a user may take: channels and memory that cannot be paged out; and jails, which
 * may take nothing unless they are allowed to.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signal.h>

#include "check.h"

static void
limit_of_channels(void)
{
	int64_t limit = read_variable("shai.limit.channels_per_user");
	int ends[2], more[2];

	REQUIRE(limit > 0);
	REQUIRE_EQUAL(write_variable("shai.limit.channels_per_user", 1), 0);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_channel(more), -EAGAIN);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	REQUIRE_EQUAL(shai_channel(more), -EAGAIN); /* one end is left */
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(shai_channel(more), 0);
	REQUIRE_EQUAL(write_variable("shai.limit.channels_per_user", (uint32_t)limit), 0);
	limit = read_variable("shai.limit.channels");
	REQUIRE_EQUAL(write_variable("shai.limit.channels", 1), 0);
	REQUIRE_EQUAL(shai_channel(ends), -EAGAIN);
	REQUIRE_EQUAL(write_variable("shai.limit.channels", (uint32_t)limit), 0);
}

/* Grants are nodes in the kernel's memory. */
static void
memory_of_grants(void)
{
	static struct shai_conduit conduits[SHAI_GRANT_MAX];
	int64_t limit = read_variable("shai.limit.kibibytes_per_user"), before, now;
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int result;

	REQUIRE(limit > 0);
	for (size_t i = 0; i < SHAI_GRANT_MAX; i++)
		conduits[i] =
		    (struct shai_conduit){.device = 1, .file = i, .rights = SHAI_CONDUIT_READ};
	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	before = read_variable("shai.count.kibibytes");
	REQUIRE_EQUAL(shai_grant(event.descriptor, conduits, SHAI_GRANT_MAX), 0);
	now = read_variable("shai.count.kibibytes");
	REQUIRE(now >= before + SHAI_GRANT_MAX * 24 / 1024);
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)now + 1), 0);
	for (size_t i = 0; i < SHAI_GRANT_MAX; i++)
		conduits[i].device = 2;
	result = (int)shai_grant(event.descriptor, conduits, SHAI_GRANT_MAX);
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)limit), 0);
	REQUIRE_EQUAL(result, -EAGAIN);
	REQUIRE(read_variable("shai.count.kibibytes") <= now + 1);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	REQUIRE(read_variable("shai.count.kibibytes") < now);
}

/* A descriptor can be limited to a list of ioctl(2) requests. */
static void
memory_of_lists(void)
{
	static u_long requests[256];
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int64_t before;

	for (size_t i = 0; i < 256; i++)
		requests[i] = i;
	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	before = read_variable("shai.count.kibibytes");
	for (int i = 0; i < 10; i++) {
		long descriptor = CALL1(SYS_dup, 0);

		REQUIRE(descriptor > 0);
		REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_limit, descriptor, requests, 256), 0);
	}
	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	REQUIRE(read_variable("shai.count.kibibytes") >= before + 10 * 256 * 8 / 1024);
}

/* A table of descriptors grows with its highest number, and stays so. */
static void
memory_of_tables(void)
{
	int64_t limit = read_variable("shai.limit.kibibytes_per_user"), before;
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context;

	REQUIRE(limit > 0);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL2(SYS_dup2, 0, 5000), 5000);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		leave(1);
	}
	context = event.descriptor;
	before = read_variable("shai.count.kibibytes");
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE(read_variable("shai.count.kibibytes") >= before + 5000 * 40 / 1024);
	/* Nothing more can be added, neither a context nor what one would leave behind. */
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)before), 0);
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EAGAIN);
	REQUIRE_EQUAL(CALL2(SYS_dup2, 0, 5000), 5000);
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), -EAGAIN);
	REQUIRE_EQUAL(CALL1(SYS_close, context), 0);
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)limit), 0);
	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
}

/* Locked pages of contexts add up, beyond the limit of the process. */
static void
memory_locked(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *pages = map_pages(64);
	int64_t before;

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL2(SYS_mlock, pages, 64 * 4096), 0);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		leave(1);
	}
	before = read_variable("shai.count.kibibytes");
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE(read_variable("shai.count.kibibytes") >= before + 64 * 4);
}

/* The same of a call on behalf of a context: it is not current afterwards either. */
static void
memory_on_behalf(void)
{
	int64_t limit = read_variable("shai.limit.kibibytes_per_user"), before, now;
	struct lwc_spec spec = plain_spec();
	char *pages = map_pages(64);
	struct lwc_event event;
	long result;

	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	before = read_variable("shai.count.kibibytes");
	REQUIRE_EQUAL(lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_dup2, 0, 5000, 0), 5000);
	now = read_variable("shai.count.kibibytes");
	REQUIRE(now >= before + 5000 * 40 / 1024);
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_MEMORY, SYS_mlock, (long)pages, 64 * 4096, 0), 0);
	REQUIRE(read_variable("shai.count.kibibytes") >= now + 64 * 4);
	/* Who has more than is allowed makes no more such calls. */
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)now), 0);
	result = lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_dup2, 0, 9000, 0);
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes_per_user", (uint32_t)limit), 0);
	REQUIRE_EQUAL(result, -EAGAIN);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	REQUIRE(read_variable("shai.count.kibibytes") <= before);
}

/* All users together: root, also of a jail, can become any of them. */
static void
memory_of_all(void)
{
	int64_t limit = read_variable("shai.limit.kibibytes");
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ends[2];
	long context, channel;

	REQUIRE(limit > 0);
	REQUIRE_EQUAL(
	    write_variable("shai.limit.kibibytes", (uint32_t)read_variable("shai.count.kibibytes")),
	    0);
	context = lwc_create(&spec, &event);
	channel = shai_channel(ends);
	REQUIRE_EQUAL(write_variable("shai.limit.kibibytes", (uint32_t)limit), 0);
	REQUIRE_EQUAL(context, -EAGAIN);
	REQUIRE_EQUAL(channel, -EAGAIN);
}

/* The parameters are pairs of name and value, each with its length. */
struct parameter {
	const void *base;
	size_t length;
};

/* Makes a jail, enters it, and returns 0 or a negative errno. */
static long
enter_jail(bool allowed)
{
	static const char name[] = "name", path[] = "path", persist[] = "persist",
			  allow[] = "allow.shai", ours[] = "limits", root[] = "/";
	const struct parameter parameters[] = {{name, sizeof(name)}, {ours, sizeof(ours)},
	    {path, sizeof(path)}, {root, sizeof(root)}, {persist, sizeof(persist)}, {NULL, 0},
	    {allow, sizeof(allow)}, {NULL, 0}};
	long jail = CALL3(SYS_jail_set, parameters, allowed ? 8 : 6, 0x01 /* JAIL_CREATE */);

	return jail < 0 ? jail : CALL1(SYS_jail_attach, jail) < 0 ? -1 : jail;
}

static void
try_calls(long create_result, long channel_result)
{
	static const struct shai_conduit conduit = {.rights = SHAI_CONDUIT_READ};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ends[2] = {-1, -1}, descriptor = 0;

	/* Root of a jail sets no limits. */
	REQUIRE_EQUAL(write_variable("shai.limit.channels", 1), -EPERM);
	REQUIRE_EQUAL(shai_channel(ends), channel_result);
	REQUIRE_EQUAL(lwc_create(&spec, &event), create_result);
	if (create_result == 0)
		return;
	REQUIRE_EQUAL(lwc_switch(LWC_SELF, 0, 0, &event), create_result);
	REQUIRE_EQUAL(lwc_restrict(LWC_SELF, &(struct lwc_restriction){0}), create_result);
	REQUIRE_EQUAL(lwc_overlay(LWC_SELF, NULL), create_result);
	REQUIRE_EQUAL(lwc_syscall(LWC_SELF, 1, 20, 0, 0, 0), create_result);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &conduit, 1), create_result);
	REQUIRE_EQUAL(shai_send(ends[1], &descriptor, 1), create_result);
	REQUIRE_EQUAL(shai_receive(ends[0], &descriptor, 1), create_result);
	REQUIRE(read_variable("shai.version") < 0); /* as if it were not loaded */
}

static void
in_a_jail(bool allowed)
{
	long jail, child = CALL0(SYS_fork);

	if (child == 0) {
		jail = enter_jail(allowed);
		REQUIRE(jail > 0);
		try_calls(allowed ? 0 : -EPERM, allowed ? 0 : -EPERM);
		leave(0);
	}
	REQUIRE_EQUAL(wait_for(child), 0);
	for (jail = 1; CALL1(SYS_jail_remove, jail) < 0 && jail < 64; jail++)
		continue;
	REQUIRE(jail < 64);
}

static void
jails_need_permission(void)
{
	in_a_jail(false);
}

static void
jails_with_permission(void)
{
	in_a_jail(true);
}

const struct check limit_checks[] = {
    {"limit of channels", limit_of_channels, 0},
    {"grants are memory of the user", memory_of_grants, 0},
    {"lists of requests are memory of the user", memory_of_lists, 0},
    {"tables of descriptors are memory of the user", memory_of_tables, 0},
    {"locked pages are memory of the user", memory_locked, 0},
    {"what a call on behalf keeps is memory of the user", memory_on_behalf, 0},
    {"memory of all users", memory_of_all, 0},
    {"nothing in a jail without allow.shai", jails_need_permission, 0},
    {"everything in a jail with allow.shai", jails_with_permission, 0},
    {NULL, NULL, 0},
};
