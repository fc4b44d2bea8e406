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
#include "transfers.h"

static struct shai_session session;
static struct shai_document documents[SHAI_BATCH_MAX];

/* A bound session that holds classes 1..class_count and their directories. */
static void
bind_session(const struct fake_monitor *fake, enum shai_mode mode, uint32_t class_count)
{
	session.state = SHAI_SESSION_BOUND;
	session.mode = mode;
	session.channel = mode == SHAI_MODE_BASELINE ? SHAI_FD_CHANNEL : SHAI_FD_MONITOR;
	session.timeout_milliseconds = 5000;
	session.class_count = class_count;
	session.directory_count = class_count;
	for (uint32_t i = 0; i < class_count; i++) {
		session.classes[i] = i + 1;
		session.directories[i] = fake_class_directory(fake, i + 1);
	}
}

static void
queue_opened(struct fake_monitor *fake, uint32_t count, const int32_t *status)
{
	struct shai_opened answer;
	int descriptors[SHAI_BATCH_MAX];
	size_t granted = 0;

	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_OPENED, sizeof(answer), fake->sequence);
	answer.count = count;
	memcpy(answer.status, status, count * sizeof(status[0]));
	for (uint32_t i = 0; i < count; i++)
		if (status[i] == 0)
			descriptors[granted++] = fake_descriptor();
	fake_send(fake, &answer, sizeof(answer), descriptors, granted);
	for (size_t i = 0; i < granted; i++)
		EXPECT(close(descriptors[i]) == 0);
}

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
expect_document(size_t i, uint32_t conduit)
{
	char wanted[32], text[32] = "";

	(void)snprintf(wanted, sizeof(wanted), "document %u\n", conduit);
	EXPECT(documents[i].conduit == conduit);
	EXPECT(read(documents[i].descriptor, text, sizeof(text) - 1) > 0);
	EXPECT(strcmp(text, wanted) == 0);
	EXPECT(fcntl(documents[i].descriptor, F_GETFD) == FD_CLOEXEC);
}

static void
covered_conduits_open_natively(struct fake_monitor *fake, size_t variant)
{
	static const uint32_t conduits[] = {1100, 5, 1024, 1, 1023};

	bind_session(fake, variant == 0 ? SHAI_MODE_SHAI : SHAI_MODE_AUDIT, FAKE_CLASSES);
	fake_transfer(fake, 7, conduits, 5);
	EXPECT(shai_channel_receive(&session, 7, documents, 4) == 4);
	for (size_t i = 0; i < 4; i++)
		expect_document(i, conduits[i]);
	EXPECT(session.withheld == 0);
	expect_not_asked(fake);
	EXPECT(shai_counters()->fast_opens == 4 && shai_counters()->transfers == 5);
}

static void
stale_answers_are_discarded(struct fake_monitor *fake, size_t variant)
{
	(void)variant;
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
	fake_transfer(fake, 6, (uint32_t[]){1, 2, 3}, 3);
	fake_transfer(fake, 8, (uint32_t[]){4}, 1);
	fake_transfer(fake, 7, (uint32_t[]){5}, 1);
	EXPECT(shai_channel_receive(&session, 7, documents, 10) == 1);
	expect_document(0, 5);
	EXPECT(shai_counters()->transfers == 1);
	session.timeout_milliseconds = 1;
	EXPECT(shai_channel_receive(&session, 9, documents, 10) == -1 && errno == ETIMEDOUT);
	EXPECT(session.state == SHAI_SESSION_BOUND);
	fake_transfer(fake, 9, (uint32_t[]){1}, 1); /* too late */
	fake_transfer(fake, 10, (uint32_t[]){0}, 0);
	EXPECT(shai_channel_receive(&session, 10, documents, 10) == 0);
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
	bind_session(fake, SHAI_MODE_SHAI, 2); /* classes 1 and 2: conduits 5, 10, … and 1, 6, … */
	fake_transfer(fake, 1, conduits, 6);
	queue_opened(fake, 4, (int32_t[]){EACCES, ENOENT, 0, EACCES});
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == 2);
	expect_document(0, 1);
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

	(void)variant;
	bind_session(fake, SHAI_MODE_DYNAMIC, FAKE_CLASSES); /* which are nothing in this mode */
	before = fake_descriptor_count();
	fake_transfer(fake, 1, (uint32_t[]){1, 2, 3, 4}, 4);
	queue_opened(fake, 2, (int32_t[]){0, EACCES});
	queue_opened(fake, 1, (int32_t[]){0});
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
	bind_session(fake, SHAI_MODE_SHAI, 2);
	before = fake_descriptor_count();
	queue_opened(fake, 2, (int32_t[]){0, 0});
	EXPECT(shai_open(&session, (uint32_t[]){2, 1, 3}, 3, documents, 2) == 2);
	EXPECT(documents[0].conduit == 2 && documents[1].conduit == 1);
	EXPECT(session.withheld == 0);
	EXPECT(fake_descriptor_count() == before + 2);
}

/* The monitor opens documents of classes whose directories the session does not hold. */
static void
directories_that_are_not_held_are_asked_for(struct fake_monitor *fake, size_t variant)
{
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
	session.directory_count = (uint32_t)variant;
	queue_opened(fake, FAKE_CLASSES - (uint32_t)variant, (int32_t[]){0, 0, 0, 0, 0});
	EXPECT(shai_open(&session, (uint32_t[]){5, 1, 2, 3, 4}, 5, documents, 5) == 5);
	for (size_t i = 0; i < variant; i++)
		expect_document(i, (uint32_t[]){5, 1, 2, 3, 4}[i]);
	expect_asked(fake, FAKE_CLASSES - (uint32_t)variant, (uint32_t[]){5, 1, 2, 3, 4} + variant);
	EXPECT(session.withheld == 0 && shai_counters()->fast_opens == variant);
}

static void
baseline_never_asks(struct fake_monitor *fake, size_t variant)
{
	const uint32_t transfer[] = {1, 0, 3, 999, 2}; /* 999 has a class and no file */

	(void)variant;
	bind_session(fake, SHAI_MODE_BASELINE, 0);
	EXPECT(write(fake->channel, transfer, sizeof(transfer)) == sizeof(transfer));
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == 2);
	expect_document(0, 3);
	expect_document(1, 2);
	EXPECT(session.withheld == 1);
	expect_not_asked(fake);
}

static void
a_moved_conduit_is_found_in_its_new_class(struct fake_monitor *fake, size_t variant)
{
	uint32_t moved = 2, class = 5;
	char from[64], to[64];

	bind_session(fake, SHAI_MODE_SHAI, 4); /* not class 5 */
	/* The table is mapped by a first open, and changes afterwards. */
	EXPECT(shai_open(&session, &moved, 1, documents, 1) == 1);
	(void)snprintf(from, sizeof(from), "%s/view/3/0/2", fake->directory);
	(void)snprintf(to, sizeof(to), "%s/view/%d/0/2", fake->directory, variant == 0 ? 4 : 5);
	EXPECT(rename(from, to) == 0);
	if (variant == 0) {
		class = 4;
		EXPECT(pwrite(SHAI_FD_CLASSES, &class, 4, 4 * 2) == 4);
		EXPECT(shai_open(&session, &moved, 1, documents, 1) == 1);
		expect_document(0, 2);
		expect_not_asked(fake);
		return;
	}
	if (variant == 1) /* into a class outside the set; variant 2: not yet in the table */
		EXPECT(pwrite(SHAI_FD_CLASSES, &class, 4, 4 * 2) == 4);
	queue_opened(fake, 1, (int32_t[]){EACCES});
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
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
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
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
	(void)snprintf(path, sizeof(path), "%s/view/5/0/999", fake->directory);
	EXPECT(symlink("/etc/passwd", path) == 0);
	queue_opened(fake, 1, (int32_t[]){EACCES});
	EXPECT(shai_open(&session, &linked, 1, documents, 1) == 0 && session.withheld == 1);
}

#define SPOILED_TRANSFERS 5
#define OTHER_RECORDS 4

/* Nothing but ids may come of a channel: no text, no descriptors, not even one byte. */
static void
a_spoiled_transfer_breaks(struct fake_monitor *fake, size_t variant)
{
	static const size_t lengths[SPOILED_TRANSFERS] = {7, 9, 13, 265, 4080};
	size_t length = lengths[variant / 2];
	uint8_t bytes[4096] = {1};
	size_t before;

	bind_session(fake, variant % 2 == 0 ? SHAI_MODE_SHAI : SHAI_MODE_BASELINE, FAKE_CLASSES);
	before = fake_descriptor_count();
	if (variant % 2 == 0)
		fake_pass_on(fake, bytes, length);
	else
		EXPECT(write(fake->channel, bytes, length) == (ssize_t)length);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == -1 && errno == EPROTO);
	EXPECT(session.state == SHAI_SESSION_BROKEN);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == -1 && errno == ENOTCONN);
	EXPECT(fake_descriptor_count() == before);
}

static void
passed_descriptors_do_not_arrive(struct fake_monitor *fake, size_t variant)
{
	struct shai_transfer transfer = {.query = 1, .conduit = {1}};
	int descriptor = fake_descriptor();
	size_t before;

	(void)variant;
	bind_session(fake, SHAI_MODE_BASELINE, FAKE_CLASSES);
	before = fake_descriptor_count();
	fake->socket = fake->channel;
	fake_send(fake, &transfer, 12, &descriptor, 1);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == 1);
	EXPECT(fake_descriptor_count() == before + 1);
}

/* A supervisor passes nothing but transfers on, and no descriptors. */
static void
another_record_breaks(struct fake_monitor *fake, size_t variant)
{
	static const int types[OTHER_RECORDS] = {
	    SHAI_TRANSFER, SHAI_OPENED, SHAI_CONNECTED, SHAI_RESET};
	struct {
		struct shai_header header;
		uint32_t transfer[3];
	} record = {.transfer = {1, 0, 1}};
	int descriptor = fake_descriptor();
	size_t before;

	shai_encode_header(&record.header, types[variant], sizeof(record.header) + 12, 0);
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
	before = fake_descriptor_count();
	fake_send(fake, &record, record.header.size, &descriptor, variant == 0);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == -1 && errno == EPROTO);
	EXPECT(session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

static void
a_gone_sender_breaks(struct fake_monitor *fake, size_t variant)
{
	bind_session(fake, variant == 0 ? SHAI_MODE_SHAI : SHAI_MODE_BASELINE, FAKE_CLASSES);
	EXPECT(close(variant == 0 ? fake->socket : fake->channel) == 0);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == -1);
	EXPECT(errno == (variant == 0 ? ECONNRESET : EPIPE));
	EXPECT(session.state == SHAI_SESSION_BROKEN);
}

/* Both come on one socket, and the answer is the one that is waited for. */
static void
transfers_among_answers_wait(struct fake_monitor *fake, size_t variant)
{
	uint32_t others = SHAI_TRANSFERS_KEPT + (uint32_t)variant;

	bind_session(fake, SHAI_MODE_DYNAMIC, 0);
	fake_transfer(fake, 100, (uint32_t[]){1}, 1);
	for (uint32_t query = 1; query <= others; query++)
		fake_transfer(fake, query, (uint32_t[]){query, query + 1}, 2);
	queue_opened(fake, 1, (int32_t[]){0});
	EXPECT(shai_channel_receive(&session, 100, documents, 10) == 1);
	queue_opened(fake, 2, (int32_t[]){0, 0});
	/* Of one too many, the oldest is gone. */
	EXPECT(shai_channel_receive(&session, 1 + (uint32_t)variant, documents, 10) == 2);
	EXPECT(documents[0].conduit == 1 + variant && documents[1].conduit == 2 + variant);
	queue_opened(fake, 2, (int32_t[]){0, 0});
	EXPECT(shai_channel_receive(&session, others, documents, 10) == 2);
	EXPECT(documents[0].conduit == others && documents[1].conduit == others + 1);
	session.timeout_milliseconds = 1;
	EXPECT(shai_channel_receive(&session, others, documents, 10) == -1 && errno == ETIMEDOUT);
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

	bind_session(fake, SHAI_MODE_SHAI, 2);
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
	bind_session(fake, SHAI_MODE_DYNAMIC, 0);
	before = fake_descriptor_count();
	queue_opened(fake, 2, (int32_t[]){0, EACCES});
	queue_opened(fake, 2, (int32_t[]){0, 0}); /* to a question about one */
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
	bind_session(fake, SHAI_MODE_DYNAMIC, 0);
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
	bind_session(fake, SHAI_MODE_SHAI, FAKE_CLASSES);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX + 1, documents, 1) == -1);
	EXPECT(errno == EINVAL);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX, documents, SHAI_BATCH_MAX) ==
	       SHAI_BATCH_MAX);
	EXPECT(shai_open(&session, conduits, SHAI_BATCH_MAX, documents, 0) == 0);
	EXPECT(session.state == SHAI_SESSION_BOUND);
	expect_not_asked(fake);
}

RUN(covered_conduits_open_natively, 2)
RUN(stale_answers_are_discarded, 1)
RUN(uncovered_conduits_are_asked_for_once, 1)
RUN(later_conduits_replace_dropped_ones, 1)
RUN(what_is_not_needed_is_closed, 1)
RUN(directories_that_are_not_held_are_asked_for, FAKE_CLASSES)
RUN(baseline_never_asks, 1)
RUN(a_moved_conduit_is_found_in_its_new_class, 3)
RUN(a_grown_table_is_mapped_anew, 1)
RUN(links_are_not_followed, 1)
RUN(a_spoiled_transfer_breaks, 2 * SPOILED_TRANSFERS)
RUN(passed_descriptors_do_not_arrive, 1)
RUN(another_record_breaks, OTHER_RECORDS)
RUN(a_gone_sender_breaks, 2)
RUN(transfers_among_answers_wait, 2)
RUN(a_spoiled_answer_leaves_nothing_open, SPOILED_OPENED)
RUN(a_later_spoiled_answer_leaves_nothing_open, 1)
RUN(surplus_descriptors_are_refused, 1)
RUN(limits_are_checked, 1)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_covered_conduits_open_natively),
	    cmocka_unit_test(test_stale_answers_are_discarded),
	    cmocka_unit_test(test_uncovered_conduits_are_asked_for_once),
	    cmocka_unit_test(test_later_conduits_replace_dropped_ones),
	    cmocka_unit_test(test_what_is_not_needed_is_closed),
	    cmocka_unit_test(test_directories_that_are_not_held_are_asked_for),
	    cmocka_unit_test(test_baseline_never_asks),
	    cmocka_unit_test(test_a_moved_conduit_is_found_in_its_new_class),
	    cmocka_unit_test(test_a_grown_table_is_mapped_anew),
	    cmocka_unit_test(test_links_are_not_followed),
	    cmocka_unit_test(test_a_spoiled_transfer_breaks),
	    cmocka_unit_test(test_passed_descriptors_do_not_arrive),
	    cmocka_unit_test(test_another_record_breaks),
	    cmocka_unit_test(test_a_gone_sender_breaks),
	    cmocka_unit_test(test_transfers_among_answers_wait),
	    cmocka_unit_test(test_a_spoiled_answer_leaves_nothing_open),
	    cmocka_unit_test(test_a_later_spoiled_answer_leaves_nothing_open),
	    cmocka_unit_test(test_surplus_descriptors_are_refused),
	    cmocka_unit_test(test_limits_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
