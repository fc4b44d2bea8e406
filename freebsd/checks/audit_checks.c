/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records of audit(4): what contexts do for each other is recorded as the calls that it is.
 */
#include <sys/fcntl.h>
#include <sys/poll.h>

#include <bsm/audit.h>
#include <bsm/audit_kevents.h>

#include "check.h"

/*
 * The end of a record: a subject with seven numbers and a terminal, how the call ended, and
 * the length.
 */
#define TRAILER 7
#define RETURN 6
#define SUBJECT 37

struct record {
	long event, user, error; /* effective user */
};

static long
number_at(const unsigned char *bytes, int size)
{
	long number = 0;

	for (int i = 0; i < size; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* Waits for the kernel's auditor, which writes records some time after the calls. */
static void
read_all(int pipe, unsigned char *bytes, long size)
{
	struct pollfd wanted = {.fd = pipe, .events = POLLIN};

	for (long part; size > 0; bytes += part, size -= part) {
		REQUIRE_EQUAL(CALL3(SYS_poll, &wanted, 1, 20000), 1);
		part = CALL3(SYS_read, pipe, bytes, size);
		REQUIRE(part > 0);
	}
}

static struct record
next_record(int pipe)
{
	static unsigned char bytes[8192];
	const unsigned char *subject;
	long length;

	read_all(pipe, bytes, 5);
	length = number_at(bytes + 1, 4);
	REQUIRE(length > TRAILER + RETURN + SUBJECT && length <= (long)sizeof(bytes));
	read_all(pipe, bytes + 5, length - 5);
	subject = bytes + length - TRAILER - RETURN - SUBJECT;
	REQUIRE_EQUAL(*subject, 0x24);
	return (struct record){.event = number_at(bytes + 6, 2),
	    .user = number_at(subject + 5, 4),
	    .error = subject[SUBJECT + 1]};
}

static void
require_record(int pipe, long user, bool failed)
{
	struct record record = next_record(pipe);

	REQUIRE_EQUAL(record.event, AUE_OPEN_R);
	REQUIRE_EQUAL(record.user, user);
	REQUIRE_EQUAL(record.error != 0, failed);
}

static void
set_mask(unsigned mask)
{
	au_mask_t both = {mask, mask};

	REQUIRE_EQUAL(CALL3(SYS_auditon, A_SETKMASK, &both, sizeof(both)), 0);
}

/* Records every open from now on, and returns the pipe on which the records can be read. */
static int
begin_audit(void)
{
	static const int events[] = {AUE_OPEN_R, AUE_OPEN_RWTC};
	int pipe = open_file("/dev/auditpipe", O_RDONLY, 0);

	REQUIRE(pipe >= 0);
	for (int i = 0; i < 2; i++) {
		au_evclass_map_t map = {.ec_number = (au_event_t)events[i], .ec_class = 1};

		REQUIRE_EQUAL(CALL3(SYS_auditon, A_SETCLASS, &map, sizeof(map)), 0);
	}
	REQUIRE_EQUAL(CALL1(SYS_close, open_file("/tmp/trail", O_RDWR | O_CREAT, 0600)), 0);
	REQUIRE_EQUAL(CALL1(SYS_auditctl, "/tmp/trail"), 0);
	set_mask(1);
	return pipe;
}

static void
end_audit(void)
{
	int64_t condition = AUC_DISABLED;

	set_mask(0);
	REQUIRE_EQUAL(CALL3(SYS_auditon, A_SETCOND, &condition, sizeof(condition)), 0);
}

/* With another's credentials: one record says whose they were, and one who made the call. */
static void
both_credentials_are_recorded(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context, pipe;

	REQUIRE(open_file("/tmp/audited", O_RDWR | O_CREAT, 0600) >= 0);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL1(SYS_setuid, 1001), 0);
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		leave(1);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	pipe = begin_audit();
	REQUIRE(lwc_syscall(
		    context, LWC_USE_CREDENTIALS, SYS_open, (long)"/dev/null", O_RDONLY, 0) >= 0);
	REQUIRE_EQUAL(
	    lwc_syscall(context, LWC_USE_CREDENTIALS, SYS_open, (long)"/tmp/audited", O_RDONLY, 0),
	    -EACCES);
	REQUIRE(lwc_syscall(context, LWC_USE_FILES, SYS_open, (long)"/dev/null", O_RDONLY, 0) >= 0);
	end_audit();
	require_record(pipe, 1001, false);
	require_record(pipe, 0, false);
	require_record(pipe, 1001, true);
	require_record(pipe, 0, true);
	require_record(pipe, 0, false);
}

/* A redirected call is recorded as refused, and what the monitor does for it as done. */
static void
redirected_calls_are_recorded(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int pipe;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		(void)open_file("/dev/null", O_RDONLY, 0);
		leave(1);
	}
	pipe = begin_audit();
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_open);
	REQUIRE(lwc_syscall(LWC_CALLER, LWC_USE_MEMORY | LWC_USE_FILES, SYS_open,
		    (long)event.arguments[0], O_RDONLY, 0) >= 0);
	end_audit();
	require_record(pipe, 0, true);
	require_record(pipe, 0, false);
}

const struct check audit_checks[] = {
    {"audit: both credentials of a call for another", both_credentials_are_recorded, 0},
    {"audit: a redirected call is recorded as refused", redirected_calls_are_recorded, 0},
    {NULL, NULL, 0},
};
