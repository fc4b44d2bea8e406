/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a transfer is made of: open files, and nothing else that a sender could choose. And who
 * widens what a context may receive.
 */
#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "check.h"

static int
pass(const int ends[2], int sent)
{
	int received = -1;

	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), 1);
	return received;
}

/* An empty transfer would be a message: that there is one. */
static void
no_empty_transfers(void)
{
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one), received;

	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 0), -EINVAL);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 0), -EINVAL);
}

/* Sender and receiver do not share an open file: neither sees what the other does with it. */
static void
no_shared_file(void)
{
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDWR, &one), received;

	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(CALL3(SYS_lseek, sent, 4711, SEEK_SET), 4711);
	REQUIRE_EQUAL(CALL3(SYS_fcntl, sent, F_SETFL, O_APPEND | O_NONBLOCK), 0);
	received = pass(ends, sent);
	REQUIRE_EQUAL(CALL3(SYS_lseek, received, 0, SEEK_CUR), 0);
	REQUIRE_EQUAL(CALL2(SYS_fcntl, received, F_GETFL), O_RDWR);
	REQUIRE_EQUAL(CALL3(SYS_lseek, received, 12, SEEK_SET), 12);
	REQUIRE_EQUAL(CALL3(SYS_lseek, sent, 0, SEEK_CUR), 4711);
	REQUIRE_EQUAL(CALL3(SYS_lseek, sent, 13, SEEK_SET), 13);
	REQUIRE_EQUAL(CALL3(SYS_lseek, received, 0, SEEK_CUR), 12);
}

#define COMMANDS 8

static void
limits_of(int descriptor, cap_rights_t *rights)
{
	unsigned long commands[COMMANDS];
	uint32_t fcntls = 0;

	REQUIRE_EQUAL(CALL3(SYS___cap_rights_get, CAP_RIGHTS_VERSION_00, descriptor, rights), 0);
	REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_get, descriptor, commands, COMMANDS), 0);
	REQUIRE_EQUAL(CALL2(SYS_cap_fcntls_get, descriptor, &fcntls), 0);
	REQUIRE_EQUAL(fcntls, CAP_FCNTL_GETFL);
}

/* The limits of a sender's descriptor are for it alone: 2 KiB of them could be text. */
static void
no_limits_of_the_sender(void)
{
	static const unsigned long text[COMMANDS] = {0x6c6c6548, 0x6f};
	cap_rights_t rights, plain, limited;
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one), received;
	char byte;

	memset(&rights, 0, sizeof(rights));
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	limits_of(pass(ends, sent), &plain);
	REQUIRE_EQUAL(CALL3(SYS_cap_ioctls_limit, sent, text, COMMANDS), 0);
	rights.cr_rights[0] = CAPRIGHT(0, 0) | CAP_MMAP_R | CAP_FSTAT | CAP_FCNTL | CAP_FLOCK;
	rights.cr_rights[1] = CAPRIGHT(1, 0) | CAP_IOCTL;
	REQUIRE_EQUAL(CALL2(SYS_cap_rights_limit, sent, &rights), 0);
	received = pass(ends, sent);
	limits_of(received, &limited);
	REQUIRE_EQUAL(memcmp(&plain, &limited, sizeof(plain)), 0);
	/* What is there is for reading. */
	REQUIRE_EQUAL(CALL4(SYS_pread, received, &byte, 1, 0), 1);
	REQUIRE(CALL6(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, received, 0) > 0);
	REQUIRE_EQUAL(CALL2(SYS_flock, received, 1), -ENOTCAPABLE);
	REQUIRE_EQUAL(CALL2(SYS_fchmod, received, 0666), -ENOTCAPABLE);
	REQUIRE_EQUAL(CALL2(SYS_futimes, received, NULL), -ENOTCAPABLE);
	REQUIRE_EQUAL(CALL3(SYS_fcntl, received, F_SETFL, O_APPEND), -ENOTCAPABLE);
	REQUIRE_EQUAL(CALL4(SYS_openat, received, "", O_RDWR | O_EMPTY_PATH, 0), -ENOTCAPABLE);
	/* A receiver has no right that the sender lacks. */
	rights.cr_rights[0] = CAPRIGHT(0, 0) | CAP_FSTAT;
	rights.cr_rights[1] = CAPRIGHT(1, 0);
	REQUIRE_EQUAL(CALL2(SYS_cap_rights_limit, sent, &rights), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), -ENOTCAPABLE);
}

/* A descriptor that only names a file, or executes it, is not passed on. */
static void
no_names(void)
{
	struct shai_conduit one;
	int ends[2], sent = open_conduit("/tmp/1", O_RDONLY, &one);

	REQUIRE_EQUAL(shai_channel(ends), 0);
	sent = open_file("/tmp/1", O_PATH, 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), -EOPNOTSUPP);
	sent = open_file(own_path, O_EXEC, 0);
	REQUIRE(sent >= 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), -EOPNOTSUPP);
}

/* The copy of a monitored context could receive for it. */
static void
monitored_grants_nothing(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct shai_conduit secret;

	(void)open_conduit("/tmp/secret", O_RDONLY, &secret);
	spec.flags = LWC_MONITORED;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(shai_grant(LWC_SELF, &secret, 1), -EPERM);
		spec = plain_spec();
		if (create(&spec, &event))
			leave(1);
		REQUIRE_EQUAL(shai_grant(event.descriptor, &secret, 1), -EPERM);
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
	leave(1);
}

/* In capability mode, conduits are granted only to contexts whose calls one decides about. */
static void
confined_grants_as_a_monitor(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct shai_conduit one;

	(void)open_conduit("/tmp/1", O_RDONLY, &one);
	REQUIRE_EQUAL(CALL0(SYS_cap_enter), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), -EPERM);
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(shai_grant(event.descriptor, &one, 1), -EPERM);
	spec.flags = LWC_MONITORED;
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(shai_grant(event.descriptor, &one, 1), 0);
}

const struct check transfer_checks[] = {
    {"no empty transfer", no_empty_transfers, 0},
    {"a transfer shares no offset and no flags", no_shared_file, 0},
    {"a transfer carries no limits of the sender", no_limits_of_the_sender, 0},
    {"no names in a transfer", no_names, 0},
    {"a monitored context grants nothing, to nobody", monitored_grants_nothing, 0},
    {"a confined context grants as a monitor only", confined_grants_as_a_monitor, 0},
    {NULL, NULL, 0},
};
