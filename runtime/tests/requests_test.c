/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests, their answers and what a session asks its stub, spoiled in every field
 * that is checked; and what a stub's decisions cover.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include <fcntl.h>

#include "requests.h"

#define SEQUENCE 42

enum kind {
	PLACED,
	PLACE,
	ANSWER,
	PATH,
	DIRECTORY,
	WRITE,
	KINDS
};

struct write_record {
	struct shai_stub_write head;
	char data[5];
};
#define WRITE_LENGTH (sizeof(struct shai_stub_write) + 5)

/* A record of each kind, right in everything. */
union record {
	struct shai_header header;
	struct shai_placed placed;
	struct shai_place place;
	struct shai_answer answer;
	struct shai_request_path path;
	struct shai_stub_directory directory;
	struct write_record write;
	uint8_t bytes[4096];
};

static size_t
make(enum kind kind, union record *out)
{
	static const struct {
		int type;
		size_t length;
	} shape[] = {
	    [PLACED] = {SHAI_PLACED, sizeof(out->placed)},
	    [PLACE] = {SHAI_PLACE, sizeof(out->place)},
	    [ANSWER] = {SHAI_ANSWER, sizeof(out->answer)},
	    [PATH] = {SHAI_REQUEST_PATH, sizeof(out->path)},
	    [DIRECTORY] = {SHAI_STUB_DIRECTORY, sizeof(out->directory)},
	    [WRITE] = {SHAI_STUB_WRITE, WRITE_LENGTH},
	};

	memset(out, 0, sizeof(*out));
	shai_encode_header(&out->header, shape[kind].type, shape[kind].length, SEQUENCE);
	if (kind == PLACED) {
		out->placed.count = 2;
		out->placed.number[0] = SHAI_FD_MONITOR;
		out->placed.number[1] = out->placed.connection = SHAI_FD_CONNECTION;
	}
	if (kind == PLACE) {
		out->place.count = 1;
		out->place.number[0] = SHAI_FD_RESERVED_END;
	}
	if (kind == WRITE)
		out->write.head.size = 5;
	return shape[kind].length;
}

static const char *
decode(enum kind kind, const union record *in, size_t length)
{
	struct shai_bytes record = {in->bytes, length};
	struct shai_bytes rest;
	union record out;

	switch (kind) {
	case PLACED:
		return shai_decode_placed(record, SEQUENCE, &out.placed);
	case PLACE:
		return shai_decode_place(record, SEQUENCE, &out.place);
	case ANSWER:
		return shai_decode_answer(record, SEQUENCE, &out.answer, &rest);
	case PATH:
		return shai_decode_request_path(record, &out.path);
	case DIRECTORY:
		return shai_decode_stub_directory(record, &out.directory);
	default:
		return shai_decode_stub_write(record, &out.write.head, &rest);
	}
}

static void
valid_records_are_accepted(void **state)
{
	union record record;

	(void)state;
	for (enum kind kind = PLACED; kind < KINDS; kind++) {
		size_t length = make(kind, &record);

		assert_null(decode(kind, &record, length));
	}
}

/* With a header that tells the truth about it, and with one that does not. */
static void
other_lengths_are_refused(void **state)
{
	union record record;

	(void)state;
	for (enum kind kind = PLACED; kind < KINDS; kind++) {
		size_t length = make(kind, &record);

		for (size_t wrong = 0; wrong < length + 8; wrong++) {
			if (wrong == length)
				continue;
			record.header.size = (uint32_t)length;
			assert_non_null(decode(kind, &record, wrong));
			record.header.size = (uint32_t)wrong;
			/* Something may follow an answer. */
			if (kind != ANSWER || wrong < length)
				assert_non_null(decode(kind, &record, wrong));
		}
	}
}

static void
wrong_headers_are_refused(void **state)
{
	union record record;

	(void)state;
	for (enum kind kind = PLACED; kind < KINDS; kind++) {
		size_t length = make(kind, &record);

		record.header.version++;
		assert_non_null(decode(kind, &record, length));
		(void)make(kind, &record);
		record.header.type++;
		assert_non_null(decode(kind, &record, length));
		(void)make(kind, &record);
		record.header.sequence++;
		if (kind == PLACED || kind == PLACE || kind == ANSWER)
			assert_non_null(decode(kind, &record, length));
	}
}

#define REFUSED(kind, spoil)                                                                       \
	do {                                                                                       \
		size_t size = make(kind, &record);                                                 \
                                                                                                   \
		spoil;                                                                             \
		assert_non_null(decode(kind, &record, size));                                      \
	} while (0)

static void
spoiled_fields_are_refused(void **state)
{
	union record record;

	(void)state;
	REFUSED(PLACED, record.placed.status = -1);
	REFUSED(PLACED, record.placed.count = SHAI_PLACED_MAX + 1);
	REFUSED(PLACED, record.placed.reserved = 1);
	REFUSED(PLACED, record.placed.number[2] = 32);
	REFUSED(PLACED, record.placed.number[0] = 0);
	REFUSED(PLACED, record.placed.number[0] = SHAI_FD_RESERVED_END);
	REFUSED(PLACED, record.placed.connection = SHAI_FD_CONNECTION_CHECKED);
	REFUSED(PLACE, record.place.count = 0);
	REFUSED(PLACE, record.place.count = SHAI_PLACE_MAX + 1);
	REFUSED(PLACE, record.place.reserved = 1);
	REFUSED(PLACE, record.place.number[0] = -1);
	REFUSED(PLACE, record.place.number[1] = 1);
	REFUSED(ANSWER, record.answer.status = -1);
	REFUSED(PATH, memset(record.path.path, 'a', sizeof(record.path.path)));
	REFUSED(DIRECTORY, record.directory.reserved = 1);
	REFUSED(WRITE, record.write.head.size = 4);
	REFUSED(WRITE, record.write.head.size = 6);
	REFUSED(WRITE, record.write.head.size = 0);
}

static void
output_is_placed(void **state)
{
	union record record;
	size_t length = make(PLACED, &record);

	(void)state;
	record.placed.number[0] = 1;
	assert_null(decode(PLACED, &record, length));
}

static void
a_refusal_places_nothing(void **state)
{
	union record record;
	size_t length = make(PLACED, &record);

	(void)state;
	memset(record.placed.number, 0, sizeof(record.placed.number));
	record.placed.count = 0;
	record.placed.connection = 0;
	assert_non_null(decode(PLACED, &record, length));
	record.placed.status = 5;
	assert_null(decode(PLACED, &record, length));
}

static void
what_follows_an_answer_is_found(void **state)
{
	union record record;
	struct shai_answer answer;
	struct shai_bytes rest;
	size_t length = make(ANSWER, &record) + 3;

	(void)state;
	record.header.size = (uint32_t)length;
	assert_null(shai_decode_answer(
	    (struct shai_bytes){record.bytes, length}, SEQUENCE, &answer, &rest));
	assert_int_equal(rest.length, 3);
	assert_ptr_equal(rest.start, record.bytes + sizeof(answer));
}

static void
decisions_cover_their_classes_for_reading(void **state)
{
	static struct shai_decisions decisions = {.count = 2, .class = {3, 7, 9}};
	static const int writing[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_ACCMODE};
	const char *rest;
	uint32_t class;

	(void)state;
	assert_true(shai_decisions_cover(&decisions, "3/0/1", O_RDONLY, &class, &rest));
	assert_true(shai_decisions_cover(&decisions, "7/1", O_RDONLY | O_NONBLOCK, &class, &rest));
	assert_false(shai_decisions_cover(&decisions, "4/0/1", O_RDONLY, &class, &rest));
	/* There, but not counted. */
	assert_false(shai_decisions_cover(&decisions, "9/0/1", O_RDONLY, &class, &rest));
	assert_false(shai_decisions_cover(&decisions, ".", O_RDONLY, &class, &rest));
	assert_false(shai_decisions_cover(NULL, "3/0/1", O_RDONLY, &class, &rest));
	for (size_t i = 0; i < sizeof(writing) / sizeof(writing[0]); i++)
		assert_false(shai_decisions_cover(&decisions, "3/0/1", writing[i], &class, &rest));
	decisions.count = SHAI_CLASSES_MAX + 1;
	assert_false(shai_decisions_cover(&decisions, "3/0/1", O_RDONLY, &class, &rest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(valid_records_are_accepted),
	    cmocka_unit_test(other_lengths_are_refused),
	    cmocka_unit_test(wrong_headers_are_refused),
	    cmocka_unit_test(spoiled_fields_are_refused),
	    cmocka_unit_test(output_is_placed),
	    cmocka_unit_test(a_refusal_places_nothing),
	    cmocka_unit_test(what_follows_an_answer_is_found),
	    cmocka_unit_test(decisions_cover_their_classes_for_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
