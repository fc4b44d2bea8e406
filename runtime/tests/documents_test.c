/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "records.h"

static struct shai_session session;
static struct shai_document documents[SHAI_BATCH_MAX];

static void
expect_asked(struct fake_monitor *fake, uint32_t count, const uint32_t *conduits)
{
	struct shai_open request;

	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_OPEN && request.count == count);
	EXPECT(memcmp(request.conduit, conduits, count * sizeof(conduits[0])) == 0);
}

static void
expect_not_asked(const struct fake_monitor *fake)
{
	uint8_t byte;

	EXPECT(recv(fake->socket, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void
covered_conduits_open_natively(struct fake_monitor *fake, size_t variant)
{
	static const uint32_t conduits[] = {1100, 5, 1024, 1, 1023};

	fake_bind(fake, &session, variant == 0 ? SHAI_MODE_SHAI : SHAI_MODE_AUDIT, FAKE_CLASSES);
	fake_transfer(fake, 7, conduits, 5);
	EXPECT(shai_channel_receive(&session, 7, documents, 4) == 4);
	for (size_t i = 0; i < 4; i++)
		fake_expect_document(&documents[i], conduits[i]);
	EXPECT(session.withheld == 0);
	expect_not_asked(fake);
	EXPECT(shai_counters()->fast_opens == 4 && shai_counters()->transfers == 5);
}

/*
 * 0 has no class. The monitor decides about a class outside the set, and about ids
 * beyond the table.
 */
static void
uncovered_conduits_are_asked_for_once(struct fake_monitor *fake, size_t variant)
{
	static const uint32_t conduits[] = {4, 0, 1, 2000000000, 2, 1023};

	(void)variant;
	fake_bind(
	    fake, &session, SHAI_MODE_SHAI, 2); /* classes 1 and 2: conduits 5, 10, … and 1, 6, … */
	fake_transfer(fake, 1, conduits, 6);
	fake_queue_opened(fake, 4, (int32_t[]){EACCES, ENOENT, 0, EACCES});
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == 2);
	fake_expect_document(&documents[0], 1);
	EXPECT(documents[1].conduit == 2); /* a grant, in its place */
	EXPECT(session.withheld == 4);
	expect_asked(fake, 4, (uint32_t[]){4, 2000000000, 2, 1023});
	expect_not_asked(fake);
	EXPECT(shai_counters()->dropped_transfers == 4 && shai_counters()->slow_opens == 4);
}

/* Later conduits take the place of those that are dropped. */
static void
later_conduits_replace_dropped_ones(struct fake_monitor *fake, size_t variant)
{
	size_t before;

	/* The classes are nothing in these modes. */
	fake_bind(fake, &session, variant == 0 ? SHAI_MODE_DYNAMIC : SHAI_MODE_DYNAMIC_LAZY,
	    FAKE_CLASSES);
	before = fake_descriptor_count();
	fake_transfer(fake, 1, (uint32_t[]){1, 2, 3, 4}, 4);
	fake_queue_opened(fake, 2, (int32_t[]){0, EACCES});
	fake_queue_opened(fake, 1, (int32_t[]){0});
	EXPECT(shai_channel_receive(&session, 1, documents, 2) == 2);
	EXPECT(documents[0].conduit == 1 && documents[1].conduit == 3);
	EXPECT(session.withheld == 1);
	expect_asked(fake, 2, (uint32_t[]){1, 2});
	expect_asked(fake, 1, (uint32_t[]){3});
	expect_not_asked(fake);
	EXPECT(fake_descriptor_count() == before + 2);
}

/* The monitor was asked about two because either might have been refused. */
static void
what_is_not_needed_is_closed(struct fake_monitor *fake, size_t variant)
{
	size_t before;

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	before = fake_descriptor_count();
	fake_queue_opened(fake, 2, (int32_t[]){0, 0});
	EXPECT(shai_open(&session, (uint32_t[]){2, 1, 3}, 3, documents, 2) == 2);
	EXPECT(documents[0].conduit == 2 && documents[1].conduit == 1);
	EXPECT(session.withheld == 0);
	EXPECT(fake_descriptor_count() == before + 2);
}

/* The monitor opens documents of classes whose directories the session does not hold. */
static void
directories_that_are_not_held_are_asked_for(struct fake_monitor *fake, size_t variant)
{
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	session.directory_count = (uint32_t)variant;
	fake_queue_opened(fake, FAKE_CLASSES - (uint32_t)variant, (int32_t[]){0, 0, 0, 0, 0});
	EXPECT(shai_open(&session, (uint32_t[]){5, 1, 2, 3, 4}, 5, documents, 5) == 5);
	for (size_t i = 0; i < variant; i++)
		fake_expect_document(&documents[i], (uint32_t[]){5, 1, 2, 3, 4}[i]);
	expect_asked(fake, FAKE_CLASSES - (uint32_t)variant, (uint32_t[]){5, 1, 2, 3, 4} + variant);
	EXPECT(session.withheld == 0 && shai_counters()->fast_opens == variant);
}

static void
baseline_never_asks(struct fake_monitor *fake, size_t variant)
{
	const uint32_t transfer[] = {1, 0, 3, 999, 2}; /* 999 has a class and no file */

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_BASELINE, 0);
	EXPECT(write(fake->channel, transfer, sizeof(transfer)) == sizeof(transfer));
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == 2);
	fake_expect_document(&documents[0], 3);
	fake_expect_document(&documents[1], 2);
	EXPECT(session.withheld == 1);
	expect_not_asked(fake);
}

static void
a_moved_conduit_is_found_in_its_new_class(struct fake_monitor *fake, size_t variant)
{
	uint32_t moved = 2, class = 5;
	char from[64], to[64];

	fake_bind(fake, &session, SHAI_MODE_SHAI, 4); /* not class 5 */
	/* The table is mapped by a first open, and changes afterwards. */
	EXPECT(shai_open(&session, &moved, 1, documents, 1) == 1);
	(void)snprintf(from, sizeof(from), "%s/view/3/0/2", fake->directory);
	(void)snprintf(to, sizeof(to), "%s/view/%d/0/2", fake->directory, variant == 0 ? 4 : 5);
	EXPECT(rename(from, to) == 0);
	if (variant == 0) {
		class = 4;
		EXPECT(pwrite(SHAI_FD_CLASSES, &class, 4, 4 * 2) == 4);
		EXPECT(shai_open(&session, &moved, 1, documents, 1) == 1);
		fake_expect_document(&documents[0], 2);
		expect_not_asked(fake);
		return;
	}
	if (variant == 1) /* into a class outside the set; variant 2: not yet in the table */
		EXPECT(pwrite(SHAI_FD_CLASSES, &class, 4, 4 * 2) == 4);
	fake_queue_opened(fake, 1, (int32_t[]){EACCES});
	EXPECT(shai_open(&session, &moved, 1, documents, 1) == 0);
	EXPECT(session.withheld == 1);
	expect_asked(fake, 1, &moved);
}

static void
a_grown_table_is_mapped_anew(struct fake_monitor *fake, size_t variant)
{
	uint32_t added = FAKE_CONDUITS + 1, class = 1, first = 1;
	char from[64], to[64];

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	EXPECT(shai_open(&session, &first, 1, documents, 1) == 1);
	(void)snprintf(from, sizeof(from), "%s/view/2/0/1", fake->directory);
	(void)snprintf(to, sizeof(to), "%s/view/1/1/%u", fake->directory, added);
	EXPECT(link(from, to) == 0);
	EXPECT(pwrite(SHAI_FD_CLASSES, &class, 4, (off_t)(4 * added)) == 4);
	EXPECT(shai_open(&session, &added, 1, documents, 1) == 1);
	expect_not_asked(fake);
}

/* A final symbolic link is never followed: the view holds hard links only. */
static void
links_are_not_followed(struct fake_monitor *fake, size_t variant)
{
	uint32_t linked = 999;
	char path[64];

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	(void)snprintf(path, sizeof(path), "%s/view/5/0/999", fake->directory);
	EXPECT(symlink("/etc/passwd", path) == 0);
	fake_queue_opened(fake, 1, (int32_t[]){EACCES});
	EXPECT(shai_open(&session, &linked, 1, documents, 1) == 0 && session.withheld == 1);
}

#define SPOILED_OPENED 6

/* The answer is wrong after one conduit was opened natively: that one is closed too. */
static void
a_spoiled_answer_leaves_nothing_open(struct fake_monitor *fake, size_t variant)
{
	struct shai_opened answer;
	int descriptors[3] = {fake_descriptor(), fake_descriptor(), fake_descriptor()};
	size_t length = sizeof(answer);
	size_t count = 2;
	size_t before;

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	before = fake_descriptor_count();
	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_OPENED, sizeof(answer), fake->sequence);
	answer.count = 2;
	if (variant == 0)
		count = 1; /* fewer descriptors than grants */
	else if (variant == 1)
		count = 3;
	else if (variant == 2)
		answer.count = 1;
	else if (variant == 3)
		answer.status[0] = -EACCES;
	else if (variant == 4)
		length--;
	else
		answer.header.sequence--; /* the answer to somebody else's question */
	fake_send(fake, &answer, length, descriptors, count);
	EXPECT(shai_open(&session, (uint32_t[]){1, 2, 3}, 3, documents, 3) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

/* The first question is answered well, the second one not: nothing of the first remains. */
static void
a_later_spoiled_answer_leaves_nothing_open(struct fake_monitor *fake, size_t variant)
{
	size_t before;

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_DYNAMIC, 0);
	before = fake_descriptor_count();
	fake_queue_opened(fake, 2, (int32_t[]){0, EACCES});
	fake_queue_opened(fake, 2, (int32_t[]){0, 0}); /* to a question about one */
	EXPECT(shai_open(&session, (uint32_t[]){1, 2, 3}, 3, documents, 2) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

/* A full batch is granted, and more descriptors come than a record may carry. */
static void
surplus_descriptors_are_refused(struct fake_monitor *fake, size_t variant)
{
	struct shai_opened answer;
	uint32_t conduits[SHAI_BATCH_MAX];
	int descriptors[SHAI_BATCH_MAX + 6];
	size_t before;

	(void)variant;
	for (uint32_t i = 0; i < SHAI_BATCH_MAX; i++)
		conduits[i] = i + 1;
	for (size_t i = 0; i < SHAI_BATCH_MAX + 6; i++)
		descriptors[i] = fake_descriptor();
	fake_bind(fake, &session, SHAI_MODE_DYNAMIC, 0);
	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_OPENED, sizeof(answer), fake->sequence);
	answer.count = SHAI_BATCH_MAX;
	before = fake_descriptor_count();
	fake_send(fake, &answer, sizeof(answer), descriptors, SHAI_BATCH_MAX + 6);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX, documents, SHAI_BATCH_MAX) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

static void
limits_are_checked(struct fake_monitor *fake, size_t variant)
{
	uint32_t conduits[SHAI_BATCH_MAX + 1];

	(void)variant;
	for (uint32_t i = 0; i <= SHAI_BATCH_MAX; i++)
		conduits[i] = 1 + i % 10;
	EXPECT(shai_channel_receive(&session, 1, documents, 1) == -1 && errno == ENOTCONN);
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX + 1, documents, 1) == -1);
	EXPECT(errno == EINVAL);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX, documents, SHAI_BATCH_MAX) ==
	       SHAI_BATCH_MAX);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX, documents, 0) == 0);
	EXPECT(session.state == SHAI_SESSION_BOUND);
	expect_not_asked(fake);
}

RUN(covered_conduits_open_natively, 2)
RUN(uncovered_conduits_are_asked_for_once, 1)
RUN(later_conduits_replace_dropped_ones, 2)
RUN(what_is_not_needed_is_closed, 1)
RUN(directories_that_are_not_held_are_asked_for, FAKE_CLASSES)
RUN(baseline_never_asks, 1)
RUN(a_moved_conduit_is_found_in_its_new_class, 3)
RUN(a_grown_table_is_mapped_anew, 1)
RUN(links_are_not_followed, 1)
RUN(a_spoiled_answer_leaves_nothing_open, SPOILED_OPENED)
RUN(a_later_spoiled_answer_leaves_nothing_open, 1)
RUN(surplus_descriptors_are_refused, 1)
RUN(limits_are_checked, 1)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_covered_conduits_open_natively),
	    cmocka_unit_test(test_uncovered_conduits_are_asked_for_once),
	    cmocka_unit_test(test_later_conduits_replace_dropped_ones),
	    cmocka_unit_test(test_what_is_not_needed_is_closed),
	    cmocka_unit_test(test_directories_that_are_not_held_are_asked_for),
	    cmocka_unit_test(test_baseline_never_asks),
	    cmocka_unit_test(test_a_moved_conduit_is_found_in_its_new_class),
	    cmocka_unit_test(test_a_grown_table_is_mapped_anew),
	    cmocka_unit_test(test_links_are_not_followed),
	    cmocka_unit_test(test_a_spoiled_answer_leaves_nothing_open),
	    cmocka_unit_test(test_a_later_spoiled_answer_leaves_nothing_open),
	    cmocka_unit_test(test_surplus_descriptors_are_refused),
	    cmocka_unit_test(test_limits_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
