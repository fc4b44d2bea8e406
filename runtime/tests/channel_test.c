/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "records.h"
#include "transfers.h"

static struct shai_session session;
static struct shai_document documents[SHAI_BATCH_MAX];

static void
stale_answers_are_discarded(struct fake_monitor *fake, size_t variant)
{
	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	fake_transfer(fake, 6, (uint32_t[]){1, 2, 3}, 3);
	fake_transfer(fake, 8, (uint32_t[]){4}, 1);
	fake_transfer(fake, 7, (uint32_t[]){5}, 1);
	EXPECT(shai_channel_receive(&session, 7, documents, 10) == 1);
	fake_expect_document(&documents[0], 5);
	EXPECT(shai_counters()->transfers == 1);
	session.timeout_milliseconds = 1;
	EXPECT(shai_channel_receive(&session, 9, documents, 10) == -1 && errno == ETIMEDOUT);
	EXPECT(session.state == SHAI_SESSION_BOUND);
	fake_transfer(fake, 9, (uint32_t[]){1}, 1); /* too late */
	fake_transfer(fake, 10, (uint32_t[]){0}, 0);
	EXPECT(shai_channel_receive(&session, 10, documents, 10) == 0);
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

	fake_bind(
	    fake, &session, variant % 2 == 0 ? SHAI_MODE_SHAI : SHAI_MODE_BASELINE, FAKE_CLASSES);
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
	fake_bind(fake, &session, SHAI_MODE_BASELINE, FAKE_CLASSES);
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
	fake_bind(fake, &session, SHAI_MODE_SHAI, FAKE_CLASSES);
	before = fake_descriptor_count();
	fake_send(fake, &record, record.header.size, &descriptor, variant == 0);
	EXPECT(shai_channel_receive(&session, 1, documents, 10) == -1 && errno == EPROTO);
	EXPECT(session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

static void
a_gone_sender_breaks(struct fake_monitor *fake, size_t variant)
{
	fake_bind(fake, &session, variant == 0 ? SHAI_MODE_SHAI : SHAI_MODE_BASELINE, FAKE_CLASSES);
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

	fake_bind(fake, &session, SHAI_MODE_DYNAMIC, 0);
	fake_transfer(fake, 100, (uint32_t[]){1}, 1);
	for (uint32_t query = 1; query <= others; query++)
		fake_transfer(fake, query, (uint32_t[]){query, query + 1}, 2);
	fake_queue_opened(fake, 1, (int32_t[]){0});
	EXPECT(shai_channel_receive(&session, 100, documents, 10) == 1);
	fake_queue_opened(fake, 2, (int32_t[]){0, 0});
	/* Of one too many, the oldest is gone. */
	EXPECT(shai_channel_receive(&session, 1 + (uint32_t)variant, documents, 10) == 2);
	EXPECT(documents[0].conduit == 1 + variant && documents[1].conduit == 2 + variant);
	fake_queue_opened(fake, 2, (int32_t[]){0, 0});
	EXPECT(shai_channel_receive(&session, others, documents, 10) == 2);
	EXPECT(documents[0].conduit == others && documents[1].conduit == others + 1);
	session.timeout_milliseconds = 1;
	EXPECT(shai_channel_receive(&session, others, documents, 10) == -1 && errno == ETIMEDOUT);
}

RUN(stale_answers_are_discarded, 1)
RUN(a_spoiled_transfer_breaks, 2 * SPOILED_TRANSFERS)
RUN(passed_descriptors_do_not_arrive, 1)
RUN(another_record_breaks, OTHER_RECORDS)
RUN(a_gone_sender_breaks, 2)
RUN(transfers_among_answers_wait, 2)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stale_answers_are_discarded),
	    cmocka_unit_test(test_a_spoiled_transfer_breaks),
	    cmocka_unit_test(test_passed_descriptors_do_not_arrive),
	    cmocka_unit_test(test_another_record_breaks),
	    cmocka_unit_test(test_a_gone_sender_breaks),
	    cmocka_unit_test(test_transfers_among_answers_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
