/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The decoders on spoiled records: every truncation, every extension, every byte
 * of the checked fields, and random garbage with its seed printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include "records.h"

#define SEQUENCE 42
#define ENTRIES 3

struct registered_record {
	struct shai_registered head;
	struct shai_capability entry[ENTRIES];
};

struct bound_record {
	struct shai_bound head;
	uint32_t classes[ENTRIES];
};
/* Without the padding at the end, which the wire does not have. */
#define BOUND_LENGTH (offsetof(struct bound_record, classes) + ENTRIES * sizeof(uint32_t))

struct grown_record {
	struct shai_grown head;
	uint32_t classes[ENTRIES];
};
#define GROWN_LENGTH (offsetof(struct grown_record, classes) + ENTRIES * sizeof(uint32_t))

struct offered_record {
	struct shai_offered head;
	char choice[ENTRIES][SHAI_POLICY_MAX];
};

static struct shai_capability entries[SHAI_TABLE_MAX];
static uint32_t classes[SHAI_CLASSES_MAX];

enum record_kind {
	REGISTERED,
	CONNECTED,
	BOUND,
	GROWN,
	OPENED,
	OFFERED,
	CHOSEN,
	TRANSFER,
	KINDS
};

static const char *
decode(enum record_kind kind, const void *bytes, size_t length)
{
	struct shai_bytes record = {bytes, length};
	struct shai_registered registered;
	struct shai_connected connected;
	struct shai_bound bound;
	struct shai_grown grown;
	struct shai_opened opened;
	struct shai_offered offered;
	struct shai_chosen chosen;
	struct shai_transfer transfer;
	static char choice[SHAI_OFFERED_MAX][SHAI_POLICY_MAX];
	size_t count;

	switch (kind) {
	case REGISTERED:
		return shai_decode_registered(record, SEQUENCE, &registered, entries);
	case CONNECTED:
		return shai_decode_connected(record, &connected);
	case BOUND:
		return shai_decode_bound(record, SEQUENCE, &bound, classes);
	case GROWN:
		return shai_decode_grown(record, &grown, classes);
	case OPENED:
		return shai_decode_opened(record, SEQUENCE, ENTRIES, &opened);
	case OFFERED:
		return shai_decode_offered(record, SEQUENCE, &offered, choice);
	case CHOSEN:
		return shai_decode_chosen(record, SEQUENCE, &chosen);
	default:
		return shai_decode_transfer(record, &transfer, &count);
	}
}

static struct shai_capability
capability(const char *prefix, int32_t number, uint16_t kind, uint16_t rights)
{
	struct shai_capability result;

	memset(&result, 0, sizeof(result));
	assert_int_equal(shai_encode_text(result.prefix, sizeof(result.prefix), prefix), 0);
	result.number = number;
	result.kind = kind;
	result.rights = rights;
	return result;
}

static struct registered_record
valid_registered(void)
{
	struct registered_record record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_REGISTERED, sizeof(record), SEQUENCE);
	record.head.mode = SHAI_MODE_SHAI;
	record.head.capability_count = ENTRIES;
	record.entry[0] = capability("/shai/view", SHAI_FD_CAPABILITY, SHAI_KIND_DIRECTORY, 1);
	record.entry[1] = capability("/shai/pipe/q/1", SHAI_FD_PIPE + 1, SHAI_KIND_PIPE, 2);
	record.entry[2] = capability(
	    "/shai/channel-checked/r/1", SHAI_FD_CHANNEL_CHECKED + 1, SHAI_KIND_CHANNEL, 2);
	return record;
}

static struct bound_record
valid_bound(void)
{
	struct bound_record record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_BOUND, BOUND_LENGTH, SEQUENCE);
	record.head.flags = SHAI_BOUND_KEYVALUE;
	record.head.class_count = ENTRIES;
	for (uint32_t i = 0; i < ENTRIES; i++)
		record.classes[i] = 10 * (i + 1);
	return record;
}

static struct grown_record
valid_grown(void)
{
	struct grown_record record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_GROWN, GROWN_LENGTH, 0);
	record.head.class_count = ENTRIES;
	record.head.directory_count = ENTRIES - 1;
	for (uint32_t i = 0; i < ENTRIES; i++)
		record.classes[i] = 10 * (i + 1);
	return record;
}

/* Writes a valid record of a kind and returns its length. */
static size_t
valid(enum record_kind kind, uint8_t out[SHAI_WIRE_MAX])
{
	struct registered_record registered = valid_registered();
	struct bound_record bound = valid_bound();
	struct grown_record grown = valid_grown();
	struct shai_connected connected = {.mode = SHAI_MODE_SHAI, .slot = SHAI_SLOTS_MAX - 1};
	struct shai_opened opened = {.count = ENTRIES, .status = {0, 13, 0}};
	struct offered_record offered = {
	    .head = {.count = ENTRIES}, .choice = {"private()", "public()", "friends()"}};
	struct shai_chosen chosen = {.status = 13, .reason = "no"};
	struct shai_transfer transfer = {.query = 1, .conduit = {1, 2, 3}};

	shai_encode_header(&connected.header, SHAI_CONNECTED, sizeof(connected), 0);
	shai_encode_header(&opened.header, SHAI_OPENED, sizeof(opened), SEQUENCE);
	shai_encode_header(&offered.head.header, SHAI_OFFERED, sizeof(offered), SEQUENCE);
	shai_encode_header(&chosen.header, SHAI_CHOSEN, sizeof(chosen), SEQUENCE);
	switch (kind) {
	case OFFERED:
		memcpy(out, &offered, sizeof(offered));
		return sizeof(offered);
	case CHOSEN:
		memcpy(out, &chosen, sizeof(chosen));
		return sizeof(chosen);
	case REGISTERED:
		memcpy(out, &registered, sizeof(registered));
		return sizeof(registered);
	case CONNECTED:
		memcpy(out, &connected, sizeof(connected));
		return sizeof(connected);
	case BOUND:
		memcpy(out, &bound, BOUND_LENGTH);
		return BOUND_LENGTH;
	case GROWN:
		memcpy(out, &grown, GROWN_LENGTH);
		return GROWN_LENGTH;
	case OPENED:
		memcpy(out, &opened, sizeof(opened));
		return sizeof(opened);
	default:
		memcpy(out, &transfer, sizeof(transfer));
		return sizeof(transfer);
	}
}

static void
valid_records_are_accepted(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];

	(void)state;
	for (enum record_kind kind = 0; kind < KINDS; kind++)
		assert_null(decode(kind, bytes, valid(kind, bytes)));
}

/* Copies are exactly as long as the record, for the sanitizer to see reads beyond it. */
static void
every_other_length_is_refused(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];

	(void)state;
	for (enum record_kind kind = 0; kind < TRANSFER; kind++) {
		size_t right = valid(kind, bytes);

		for (size_t length = 0; length < right + 9; length++) {
			uint8_t *copy = malloc(length + 1);
			const char *problem;

			memcpy(copy, bytes, length);
			problem = decode(kind, copy, length);
			free(copy);
			assert_int_equal(problem == NULL, length == right);
		}
	}
}

/* Whether size in the header is adjusted or not, a wrong length must not pass. */
static void
a_size_that_agrees_with_a_wrong_length_does_not_help(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];

	(void)state;
	for (enum record_kind kind = 0; kind < TRANSFER; kind++) {
		size_t right = valid(kind, bytes);

		for (uint32_t length = 16; length < right + 9; length++) {
			memcpy(bytes + 4, &length, sizeof(length));
			if (length != right)
				assert_non_null(decode(kind, bytes, length));
		}
	}
}

static void
a_wrong_header_is_refused(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];

	(void)state;
	for (enum record_kind kind = 0; kind < TRANSFER; kind++) {
		size_t checked = kind == CONNECTED ? 8 : sizeof(struct shai_header);

		for (size_t i = 0; i < checked; i++) {
			size_t length = valid(kind, bytes);

			bytes[i] ^= 0x80;
			assert_non_null(decode(kind, bytes, length));
		}
	}
}

static void
spoiled_registered_is_refused(void **state)
{
	struct registered_record record;

	(void)state;
#define SPOILED(change)                                                                            \
	record = valid_registered();                                                               \
	change;                                                                                    \
	assert_non_null(decode(REGISTERED, &record, sizeof(record)))
	SPOILED(record.head.status = -1);
	SPOILED(record.head.status = 13);
	SPOILED(record.head.mode = SHAI_MODE_LAST + 1);
	SPOILED(record.head.capability_count = ENTRIES - 1);
	SPOILED(record.head.capability_count = ENTRIES + 1);
	SPOILED(record.head.capability_count = UINT32_MAX);
	/* ENTRIES modulo 2^32 when multiplied in 32 bits by 264 = 8 * 33 */
	SPOILED(record.head.capability_count = ENTRIES + (1u << 29));
	SPOILED(memset(record.head.reason, 'x', sizeof(record.head.reason)));
	SPOILED(record.head.reason[9] = 'x');
	SPOILED(memset(record.entry[2].prefix, '/', sizeof(record.entry[2].prefix)));
	SPOILED(record.entry[0] = capability("", 16, SHAI_KIND_DIRECTORY, 1));
	SPOILED(record.entry[0] = capability("/", 16, SHAI_KIND_DIRECTORY, 1));
	SPOILED(record.entry[0] = capability("relative", 16, SHAI_KIND_DIRECTORY, 1));
	SPOILED(record.entry[0] = capability("/a/../b", 16, SHAI_KIND_DIRECTORY, 1));
	SPOILED(record.entry[0] = capability("/a/", 16, SHAI_KIND_DIRECTORY, 1));
	SPOILED(record.entry[0] = capability("/a", 16, 0, 1));
	SPOILED(record.entry[0] = capability("/a", 16, 4, 1));
	SPOILED(record.entry[0] = capability("/a", 16, SHAI_KIND_DIRECTORY, 0));
	SPOILED(record.entry[0] = capability("/a", 16, SHAI_KIND_DIRECTORY, 4));
	SPOILED(record.entry[0] = capability("/a", 16, SHAI_KIND_DIRECTORY, 9));
	SPOILED(record.entry[0].number = -1);
	SPOILED(record.entry[0].number = -100); /* AT_FDCWD: the host's names */
	SPOILED(record.entry[0].number = 15);
	SPOILED(record.entry[0].number = 32);
	SPOILED(record.entry[1].number = 31);
	SPOILED(record.entry[1].number = 96);
	SPOILED(record.entry[2].number = 95);
	SPOILED(record.entry[2].number = 160);
#undef SPOILED
}

static void
spoiled_bound_is_refused(void **state)
{
	struct bound_record record;

	(void)state;
#define SPOILED(change)                                                                            \
	record = valid_bound();                                                                    \
	change;                                                                                    \
	assert_non_null(decode(BOUND, &record, BOUND_LENGTH))
	SPOILED(record.head.status = -1);
	SPOILED(record.head.status = 13);
	SPOILED(record.head.flags = 8);
	SPOILED(record.head.directory_count = ENTRIES + 1);
	SPOILED(record.head.directory_count = SHAI_DIRECTORIES_MAX + 1);
	SPOILED(record.head.class_count = ENTRIES - 1);
	SPOILED(record.head.class_count = ENTRIES + 1);
	SPOILED(record.head.class_count = ENTRIES + (1u << 30));
	SPOILED(memset(record.head.instance, 'x', sizeof(record.head.instance)));
	SPOILED(memset(record.head.reason, 'x', sizeof(record.head.reason)));
	SPOILED(record.classes[0] = 0);
	SPOILED(record.classes[1] = record.classes[0]);
	SPOILED(record.classes[2] = 1);
#undef SPOILED
}

static void
spoiled_grown_is_refused(void **state)
{
	struct grown_record record;

	(void)state;
#define SPOILED(change)                                                                            \
	record = valid_grown();                                                                    \
	change;                                                                                    \
	assert_non_null(decode(GROWN, &record, GROWN_LENGTH))
	SPOILED(record.head.directory_count = ENTRIES + 1);
	SPOILED(record.head.class_count = ENTRIES - 1);
	SPOILED(record.head.class_count = ENTRIES + (1u << 30));
	SPOILED(record.classes[0] = 0);
	SPOILED(record.classes[2] = record.classes[1]);
#undef SPOILED
}

static void
spoiled_connected_and_opened_are_refused(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];
	struct shai_connected *connected = (void *)bytes;
	struct shai_opened *opened = (void *)bytes;

	(void)state;
#define SPOILED(kind, change)                                                                      \
	(void)valid(kind, bytes);                                                                  \
	change;                                                                                    \
	assert_non_null(decode(kind, bytes, valid(kind, (uint8_t[SHAI_WIRE_MAX]){0})))
	SPOILED(CONNECTED, connected->mode = SHAI_MODE_LAST + 1);
	SPOILED(CONNECTED, connected->slot = SHAI_SLOTS_MAX);
	SPOILED(CONNECTED, memset(connected->peer, 'x', sizeof(connected->peer)));
	SPOILED(CONNECTED, memset(connected->region, 'x', sizeof(connected->region)));
	SPOILED(CONNECTED, memset(connected->service, 'x', sizeof(connected->service)));
	SPOILED(CONNECTED, memset(connected->pipeline, 'x', sizeof(connected->pipeline)));
	SPOILED(OPENED, opened->count = ENTRIES - 1);
	SPOILED(OPENED, opened->count = UINT32_MAX);
	SPOILED(OPENED, opened->reserved = 1);
	SPOILED(OPENED, opened->status[1] = -13);
	SPOILED(OPENED, opened->status[ENTRIES] = 13);
#undef SPOILED
}

static void
transfers_are_a_head_and_whole_ids(void **state)
{
	struct {
		struct shai_transfer transfer;
		uint8_t more[8];
	} bytes;
	struct shai_transfer out;
	size_t count;

	(void)state;
	memset(&bytes, 0, sizeof(bytes));
	for (size_t length = 0; length <= sizeof(bytes); length++) {
		struct shai_bytes record = {(const uint8_t *)&bytes, length};
		bool whole = length >= 8 && length <= 8 + 4 * SHAI_BATCH_MAX && length % 4 == 0;

		assert_int_equal(shai_decode_transfer(record, &out, &count) == NULL, whole);
		if (whole)
			assert_int_equal(count, (length - 8) / 4);
	}
	bytes.transfer.reserved = 1;
	assert_non_null(
	    shai_decode_transfer((struct shai_bytes){(const uint8_t *)&bytes, 12}, &out, &count));
}

/* The results do not matter here; the sanitizers watch. */
static void
garbage_does_no_harm(void **state)
{
	static uint8_t bytes[SHAI_WIRE_MAX];
	unsigned int seed = (unsigned int)time(NULL);

	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 20000; round++) {
		enum record_kind kind = (enum record_kind)(rand() % KINDS);
		size_t length = valid(kind, bytes);

		for (int change = rand() % 8; change >= 0; change--)
			bytes[(size_t)rand() % length] = (uint8_t)rand();
		(void)decode(kind, bytes, length);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(valid_records_are_accepted),
	    cmocka_unit_test(every_other_length_is_refused),
	    cmocka_unit_test(a_size_that_agrees_with_a_wrong_length_does_not_help),
	    cmocka_unit_test(a_wrong_header_is_refused),
	    cmocka_unit_test(spoiled_registered_is_refused),
	    cmocka_unit_test(spoiled_bound_is_refused),
	    cmocka_unit_test(spoiled_grown_is_refused),
	    cmocka_unit_test(spoiled_connected_and_opened_are_refused),
	    cmocka_unit_test(transfers_are_a_head_and_whole_ids),
	    cmocka_unit_test(garbage_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
