/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a worker may say, when, and how often; and what may come over a channel.
 */
#include "testing.h"

#include "channels.h"
#include "worker_records.h"

#define SEQUENCE 42

static _Alignas(8) uint8_t buffer[SHAI_CONTROL_MAX];

static const struct kind {
	uint16_t type;
	size_t size;
} kinds[] = {
    {SHAI_AUTHENTICATE, sizeof(struct shai_authenticate)},
    {SHAI_OPEN, sizeof(struct shai_open)},
    {SHAI_RESET, sizeof(struct shai_reset)},
    {SHAI_WRITE, sizeof(struct shai_write)},
    {SHAI_CHOICES, sizeof(struct shai_choices)},
    {SHAI_CHOOSE, sizeof(struct shai_choose)},
};
static const struct kind forwarded = {SHAI_TRANSFER, sizeof(struct shai_header)};

static struct bytes
valid(const struct kind *kind)
{
	struct shai_open *open = (void *)buffer;

	memset(buffer, 0, sizeof(buffer));
	open->header = (struct shai_header){.version = SHAI_WIRE_VERSION,
	    .type = kind->type,
	    .size = (uint32_t)kind->size,
	    .sequence = SEQUENCE};
	if (kind->type == SHAI_OPEN)
		open->count = 3;
	if (kind->type == SHAI_AUTHENTICATE)
		strcpy(((struct shai_authenticate *)(void *)buffer)->principal, "alice");
	return (struct bytes){buffer, kind->size, 0};
}

static const char *
say(struct bytes message, struct worker_conversation *conversation)
{
	struct worker_record out;

	return worker_decode(message, conversation, &out);
}

static const char *
say_bound(struct bytes message)
{
	struct worker_conversation conversation = {.bound = true};

	return say(message, &conversation);
}

static void
valid_messages_are_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct worker_conversation conversation = {.bound = true};
		struct worker_record out;

		assert_null(worker_decode(valid(&kinds[i]), &conversation, &out));
		assert_int_equal(out.type, kinds[i].type);
		assert_int_equal(out.sequence, SEQUENCE);
		assert_ptr_equal(out.reset, buffer);
	}
}

static void
other_lengths_and_descriptors_are_refused(void **state)
{
	struct shai_header *header = (void *)buffer;

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes message = valid(&kinds[i]);

		message.descriptors = 1;
		assert_non_null(say_bound(message));
		message.descriptors = 0;
		for (size_t length = 0; length <= kinds[i].size + 8; length++) {
			if (length == kinds[i].size)
				continue;
			message.length = length;
			header->size = (uint32_t)kinds[i].size;
			assert_non_null(say_bound(message));
			header->size = (uint32_t)length;
			assert_non_null(say_bound(message));
		}
	}
}

/* Records of every length that the gate receives, from workers that have it. */
static void
records_of_a_channel_come_by_the_gate(void **state)
{
	const size_t most = forwarded.size + sizeof(struct shai_transfer) + 1;
	struct shai_header *header = (void *)buffer;
	struct worker_conversation conversation;

	(void)state;
	for (size_t length = 0; length <= most + 8; length++) {
		struct bytes message = valid(&forwarded);

		message.length = header->size = (uint32_t)length;
		conversation = (struct worker_conversation){.bound = true, .gated = true};
		assert_int_equal(say(message, &conversation) == NULL,
		    length >= forwarded.size && length <= most);
		assert_non_null(say_bound(message));
		conversation = (struct worker_conversation){.gated = true};
		assert_non_null(say(message, &conversation));
	}
}

static void
other_types_and_versions_are_refused(void **state)
{
	const uint16_t types[] = {0, SHAI_REGISTER, SHAI_CHOOSE + 1, SHAI_REGISTERED, SHAI_BOUND,
	    SHAI_TRANSFER, UINT16_MAX};
	struct shai_header *header = (void *)buffer;

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes message = valid(&kinds[i]);

		header->version = SHAI_WIRE_VERSION - 1;
		assert_non_null(say_bound(message));
		header->version = SHAI_WIRE_VERSION;
		for (size_t type = 0; type < COUNT(types); type++) {
			header->type = types[type];
			assert_non_null(say_bound(message));
		}
	}
}

static void
wrong_content_is_refused(void **state)
{
	struct shai_open *open = (void *)buffer;
	struct shai_authenticate *authenticate = (void *)buffer;
	struct shai_write *write = (void *)buffer;
	struct bytes message = valid(&kinds[1]);
	const uint32_t counts[] = {0, SHAI_BATCH_MAX + 1, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		open->count = counts[i];
		assert_non_null(say_bound(message));
	}
	open->count = 1;
	open->reserved = 1;
	assert_non_null(say_bound(message));
	open->reserved = 0;
	open->conduit[1] = 9;
	assert_non_null(say_bound(message));
	open->count = 2;
	assert_null(say_bound(message));

	message = valid(&kinds[3]);
	write->flags = SHAI_WRITE_REPLACE << 1;
	assert_non_null(say_bound(message));
	write->flags = SHAI_WRITE_REPLACE;
	write->size = 1;
	assert_non_null(say_bound(message));
	message.length = write->header.size = sizeof(*write) + 1;
	assert_null(say_bound(message));
	memset(write->conduit, 'a', SHAI_PREFIX_MAX);
	assert_non_null(say_bound(message));
	write->conduit[SHAI_PREFIX_MAX - 1] = '\0';
	assert_null(say_bound(message));
	message.length = write->header.size = sizeof(*write) + SHAI_CONTENT_MAX;
	write->size = SHAI_CONTENT_MAX;
	assert_null(say_bound(message));
	message.length = write->header.size = sizeof(*write) + SHAI_CONTENT_MAX + 1;
	write->size = SHAI_CONTENT_MAX + 1;
	assert_non_null(say_bound(message));

	message = valid(&kinds[0]);
	memset(authenticate->principal, 'a', SHAI_NAME_MAX);
	assert_non_null(say_bound(message));
	authenticate->principal[SHAI_NAME_MAX - 1] = '\0';
	assert_null(say_bound(message));
	authenticate->principal[0] = (char)0xff;
	assert_non_null(say_bound(message));
}

static void
wrong_choices_are_refused(void **state)
{
	struct shai_choices *choices = (void *)buffer;
	struct shai_choose *choose = (void *)buffer;
	struct bytes message = valid(&kinds[4]);

	(void)state;
	choices->conduit = UINT32_MAX;
	assert_null(say_bound(message));
	choices->reserved = 1;
	assert_non_null(say_bound(message));

	message = valid(&kinds[5]);
	choose->reserved = 1;
	assert_non_null(say_bound(message));
	choose->reserved = 0;
	memset(choose->policy, 'a', SHAI_POLICY_MAX);
	assert_non_null(say_bound(message));
	choose->policy[SHAI_POLICY_MAX - 1] = '\0';
	assert_null(say_bound(message));
	choose->policy[9] = '\0';
	assert_non_null(say_bound(message));
	choose->policy[9] = (char)0xff;
	assert_non_null(say_bound(message));
}

static void
questions_need_a_user(void **state)
{
	static const size_t questions[] = {1, 3, 4, 5};

	(void)state;
	for (size_t i = 0; i < COUNT(questions); i++) {
		const struct kind *kind = &kinds[questions[i]];
		struct worker_conversation conversation = {.bound = false};

		assert_non_null(say(valid(kind), &conversation));
		conversation.bound = true;
		for (int again = 0; again < 1000; again++)
			assert_null(say(valid(kind), &conversation));
	}
}

static void
logins_and_resets_are_limited(void **state)
{
	struct worker_conversation conversation = {.bound = false};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_null(say(valid(&kinds[0]), &conversation));
	assert_non_null(say(valid(&kinds[0]), &conversation));
	assert_null(say(valid(&kinds[2]), &conversation));
	assert_non_null(say(valid(&kinds[2]), &conversation));
}

static void
counters_are_limited_by_time(void **state)
{
	struct shai_reset reset = {.counters = {.fast_opens = UINT64_MAX, .transfers = 5}};
	struct shai_counters counters = worker_counters(&reset, 2);

	(void)state;
	assert_int_equal(counters.fast_opens, 30000);
	assert_int_equal(counters.transfers, 5);
	reset.counters.fast_opens = 17;
	assert_int_equal(worker_counters(&reset, 2).fast_opens, 17);
}

static void
channels_carry_transfers_only(void **state)
{
	struct shai_transfer transfer = {.query = 3};

	(void)state;
	for (size_t length = 0; length <= sizeof(transfer) + 8; length++) {
		bool whole = length >= 8 && length <= sizeof(transfer) && length % 4 == 0;

		assert_int_equal(
		    channel_check((struct bytes){&transfer, length, 0}) == NULL, whole);
	}
	assert_non_null(channel_check((struct bytes){&transfer, 8, 1}));
	transfer.reserved = 1;
	assert_non_null(channel_check((struct bytes){&transfer, 8, 0}));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(valid_messages_are_decoded),
	    cmocka_unit_test(other_lengths_and_descriptors_are_refused),
	    cmocka_unit_test(records_of_a_channel_come_by_the_gate),
	    cmocka_unit_test(other_types_and_versions_are_refused),
	    cmocka_unit_test(wrong_content_is_refused),
	    cmocka_unit_test(wrong_choices_are_refused),
	    cmocka_unit_test(questions_need_a_user),
	    cmocka_unit_test(logins_and_resets_are_limited),
	    cmocka_unit_test(counters_are_limited_by_time),
	    cmocka_unit_test(channels_carry_transfers_only),
	};

	return cmocka_run_group_tests_name("worker records", tests, NULL, NULL);
}
