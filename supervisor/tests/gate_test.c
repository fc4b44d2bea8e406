/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The gate and its grant, in this process: the page of the roll-back code, the buffer, the grant
 * and a class table at their addresses. gate_jumps_test.c jumps into its middle.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"
#include "gate_room.h"
#include "shai_rollback.h"

#define QUERY 0xf000004du /* large, as one that begins with a nonce */
#define CLASS 500u        /* of the documents that the session has; their numbers are even */

static struct gate_room room;
static const uint32_t classes[] = {3, CLASS, 7000};

static int
prepare(void **state)
{
	(void)state;
	gate_room_open(&room, CLASS);
	gate_open(room.grant, 0, GATE_ROOM_CONDUITS, classes, COUNT(classes));
	return 0;
}

static int
leave(void **state)
{
	(void)state;
	gate_room_close(&room);
	return 0;
}

static int64_t
call(uint32_t query)
{
	return ((int64_t(*)(int, uint32_t))(SHAI_ROLLBACK_CODE + SHAI_GATE))(
	    SHAI_FD_CHANNEL, query);
}

static void
put(const void *record, size_t length)
{
	assert_int_equal(send(room.channel, record, length, 0), length);
}

static const struct shai_transfer *
record(void)
{
	return (const struct shai_transfer *)(SHAI_GATE_BUFFER + SHAI_GATE_RECORD);
}

static void
assert_clear(void)
{
	const uint8_t *buffer = (const uint8_t *)SHAI_GATE_BUFFER;

	for (size_t i = 0; i < SHAI_GATE_BUFFER_SIZE; i++)
		assert_int_equal(buffer[i], 0);
}

/* The supervisor has got the record, in its header, and the session nothing. */
static void
assert_forwarded(const void *expected, size_t length)
{
	struct {
		struct shai_header header;
		uint8_t record[400];
	} got;

	assert_int_equal(
	    recv(room.supervisor, &got, sizeof(got), MSG_DONTWAIT), sizeof(got.header) + length);
	assert_int_equal(got.header.version, SHAI_WIRE_VERSION);
	assert_int_equal(got.header.type, SHAI_TRANSFER);
	assert_int_equal(got.header.size, sizeof(got.header) + length);
	assert_int_equal(got.header.sequence, 0);
	assert_memory_equal(got.record, expected, length);
	assert_clear();
}

static void
assert_nothing_forwarded(void)
{
	uint8_t byte;

	assert_int_equal(recv(room.supervisor, &byte, 1, MSG_DONTWAIT), -1);
}

static void
numbers_of_the_set_pass(void **state)
{
	static const uint32_t counts[] = {0, 1, 2, 10, SHAI_BATCH_MAX};
	struct shai_transfer transfer = {.query = QUERY};

	(void)state;
	for (uint32_t i = 0; i < SHAI_BATCH_MAX; i++)
		transfer.conduit[i] = i % 3 == 0 ? 0 : 2 * i;
	for (size_t i = 0; i < COUNT(counts); i++) {
		size_t length = offsetof(struct shai_transfer, conduit) + counts[i] * 4;

		put(&transfer, length);
		assert_int_equal(call(QUERY), length);
		assert_memory_equal(record(), &transfer, length);
	}
	assert_nothing_forwarded();
	assert_int_equal(call(QUERY), -EAGAIN);
	assert_clear();
}

/* Whatever place a class has in a set of whatever size, it is found, and its neighbours are not. */
static void
classes_are_found(void **state)
{
	static uint32_t many[SHAI_CLASSES_MAX];
	struct shai_transfer transfer = {.query = QUERY, .conduit = {2}};
	const size_t length = offsetof(struct shai_transfer, conduit[1]);

	(void)state;
	for (uint32_t i = 0; i < SHAI_CLASSES_MAX; i++)
		many[i] = 10 + 2 * i;
	for (size_t count = 0; count <= SHAI_CLASSES_MAX;
	     count = count < 70 ? count + 1 : 2 * count) {
		if (count > 70 && count * 2 > SHAI_CLASSES_MAX)
			count = SHAI_CLASSES_MAX;
		gate_open(room.grant, 0, GATE_ROOM_CONDUITS, many, count);
		for (size_t i = 0; i <= count; i += count < 70 ? 1 : 61) {
			bool has = i < count;

			for (uint32_t odd = 0; odd < 2; odd++) {
				room.classes[2] = 10 + 2 * (uint32_t)i + odd;
				put(&transfer, length);
				if (has && odd == 0) {
					assert_int_equal(call(QUERY), length);
					continue;
				}
				assert_int_equal(call(QUERY), -EINPROGRESS);
				assert_forwarded(&transfer, length);
			}
		}
		if (count == SHAI_CLASSES_MAX)
			break;
	}
}

static void
all_else_is_the_supervisors(void **state)
{
	struct shai_transfer transfer;
	uint8_t longer[sizeof(transfer) + 1] = {1};
	static const struct {
		uint32_t conduit[2];
		size_t length;
		uint32_t reserved;
	} others[] = {
	    {.conduit = {1}, .length = 12},                         /* not of the set */
	    {.conduit = {2, 1}, .length = 16},                      /* the second one */
	    {.conduit = {GATE_ROOM_CONDUITS}, .length = 12},        /* beyond the table */
	    {.conduit = {UINT32_MAX}, .length = 12},                /* far beyond it */
	    {.conduit = {GATE_ROOM_UNCLASSED}, .length = 12},       /* class 0 */
	    {.conduit = {2}, .length = 11},                         /* fractions */
	    {.conduit = {2}, .length = 9},                          /* - */
	    {.conduit = {2}, .length = 7},                          /* no head */
	    {.conduit = {2}, .length = 4},                          /* - */
	    {.conduit = {2}, .length = 1},                          /* - */
	    {.conduit = {2}, .length = 12, .reserved = 1},          /* more than a transfer */
	    {.conduit = {2}, .length = 8, .reserved = 0x80000000u}, /* - */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		transfer = (struct shai_transfer){.query = QUERY, .reserved = others[i].reserved};
		memcpy(transfer.conduit, others[i].conduit, sizeof(others[i].conduit));
		memset((void *)SHAI_GATE_BUFFER, 0xff, SHAI_GATE_RECORD); /* the session's */
		put(&transfer, others[i].length);
		assert_int_equal(call(QUERY), -EINPROGRESS);
		assert_forwarded(&transfer, others[i].length);
	}
	put(longer, sizeof(longer));
	assert_int_equal(call(QUERY), -EINPROGRESS);
	assert_forwarded(longer, sizeof(longer));
}

static void
answers_to_other_queries_are_dropped(void **state)
{
	struct shai_transfer transfer = {.query = QUERY + 1, .conduit = {1}};

	(void)state;
	put(&transfer, 12);
	put(&transfer, 12);
	assert_int_equal(call(QUERY), -EAGAIN);
	assert_clear();
	transfer.conduit[0] = 2;
	assert_int_equal(call(QUERY), -EAGAIN); /* the second one: one record a call */
	put(&transfer, 12);
	assert_int_equal(call(QUERY + 1), 12);
	assert_nothing_forwarded();
}

static void
without_a_user_all_is_dropped(void **state)
{
	struct shai_transfer transfer = {.query = QUERY, .conduit = {2}};

	(void)state;
	gate_shut(room.grant);
	put(&transfer, 12);
	put("malformed", 9);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(call(QUERY), -EAGAIN);
		assert_clear();
	}
	assert_nothing_forwarded();
}

static void
unchecked_numbers_are_still_numbers(void **state)
{
	struct shai_transfer transfer = {.query = QUERY, .conduit = {1, UINT32_MAX}};

	(void)state;
	gate_open(room.grant, SHAI_GRANT_UNCHECKED, GATE_ROOM_CONDUITS, classes, 1);
	put(&transfer, 16);
	assert_int_equal(call(QUERY), 16);
	assert_memory_equal(record(), &transfer, 16);
	transfer.reserved = 1;
	put(&transfer, 16);
	assert_int_equal(call(QUERY), -EINPROGRESS);
	assert_forwarded(&transfer, 16);
}

/* Calls the gate. Returns the result, and the other registers that it uses, or'ed. */
static int64_t
call_and_look(uint64_t *left)
{
	uint64_t di = SHAI_FD_CHANNEL, si = QUERY, cx, dx;
	register uint64_t r8 __asm__("r8"), r9 __asm__("r9");
	register uint64_t r10 __asm__("r10"), r11 __asm__("r11");
	int64_t result;

	__asm__ volatile("sub $128, %%rsp; call *%%rbx; add $128, %%rsp"
			 : "=a"(result), "+D"(di), "+S"(si), "=c"(cx), "=d"(dx), "=r"(r8), "=r"(r9),
			 "=r"(r10), "=r"(r11)
			 : "b"(SHAI_ROLLBACK_CODE + SHAI_GATE)
			 : "memory", "cc");
	*left = di | si | cx | dx | r8 | r9 | r10 | r11;
	return result;
}

/* Such as the place of a document's class in the set, or what class it has. */
static void
registers_tell_the_result_only(void **state)
{
	static const struct {
		struct shai_transfer record;
		int64_t result;
	} kinds[] = {
	    {{.query = QUERY, .conduit = {2, 4}}, 16},
	    {{.query = QUERY, .conduit = {2, 1}}, -EINPROGRESS},
	    {{.query = QUERY + 1, .conduit = {2, 4}}, -EAGAIN},
	};
	uint64_t left;

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		put(&kinds[i].record, 16);
		assert_int_equal(call_and_look(&left), kinds[i].result);
		assert_int_equal(left, 0);
	}
	assert_int_equal(call_and_look(&left), -EAGAIN);
	assert_int_equal(left, 0);
}

static void
empty_records_and_the_end_are_nothing(void **state)
{
	(void)state;
	put("", 0);
	assert_int_equal(call(QUERY), 0);
	assert_clear();
	(void)close(room.channel);
	assert_int_equal(call(QUERY), 0);
	room.channel = -1;
}

/* A worker that fills its socket to the supervisor loses records; it does not see them. */
static void
what_cannot_be_forwarded_is_dropped(void **state)
{
	struct shai_transfer transfer = {.query = QUERY, .conduit = {1}};

	(void)state;
	while (send(SHAI_FD_MONITOR, &transfer, sizeof(transfer), MSG_DONTWAIT) > 0)
		;
	put(&transfer, 12);
	assert_int_equal(call(QUERY), -EAGAIN);
	assert_clear();
}

/* -------------------------------------------------------------- the grant */

static void
nothing_of_a_grant_is_left(void **state)
{
	(void)state;
	gate_open(room.grant, 0, GATE_ROOM_CONDUITS, classes, 1); /* the set has lost classes */
	gate_shut(room.grant);
	assert_int_equal(room.grant->flags, 0);
	assert_int_equal(room.grant->class_count, 0);
	for (size_t i = 0; i < SHAI_CLASSES_MAX; i++)
		assert_int_equal(room.grant->class[i], 0);
	gate_shut(room.grant);
	gate_shut(NULL);
	gate_free(NULL);
}

/* Neither its size nor its times tell of the sets of former sessions. */
static void
a_grant_looks_like_a_new_one(void **state)
{
	static uint32_t many[SHAI_CLASSES_MAX];
	struct shai_grant *grant;
	struct stat before, after;
	int file = gate_new(&grant);

	(void)state;
	assert_int_equal(fstat(file, &before), 0);
	for (uint32_t i = 0; i < SHAI_CLASSES_MAX; i++)
		many[i] = i + 1;
	gate_open(grant, 0, 1, many, SHAI_CLASSES_MAX);
	gate_shut(grant);
	assert_int_equal(fstat(file, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	gate_free(grant);
	(void)close(file);
}

/* Nor changes its times, which would tell the worker's next session. */
static void
nobody_else_writes_a_grant(void **state)
{
	struct shai_grant *grant;
	struct stat before, after;
	int file = gate_new(&grant);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(fstat(file, &before), 0);
	assert_ptr_equal(
	    mmap(NULL, SHAI_GATE_GRANT_SIZE, PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
	assert_int_equal(write(file, "x", 1), -1);
	assert_int_equal(ftruncate(file, 0), -1);
	assert_int_equal(ftruncate(file, SHAI_GATE_GRANT_SIZE), -1);
	assert_int_equal(fallocate(file, 0, 0, SHAI_GATE_GRANT_SIZE), -1);
	assert_int_equal(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_int_equal(fstat(file, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
	gate_open(grant, 0, 1, classes, COUNT(classes));
	gate_free(grant);
	(void)close(file);
}

static void
a_grant_covers_no_more_of_the_table_than_workers_map(void **state)
{
	(void)state;
	gate_open(room.grant, 0, SIZE_MAX, classes, 1);
	assert_int_equal(room.grant->conduit_count, SHAI_GATE_CLASSES_SIZE / 4);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, leave)
	const struct CMUnitTest tests[] = {
	    TEST(numbers_of_the_set_pass),
	    TEST(classes_are_found),
	    TEST(all_else_is_the_supervisors),
	    TEST(answers_to_other_queries_are_dropped),
	    TEST(without_a_user_all_is_dropped),
	    TEST(unchecked_numbers_are_still_numbers),
	    TEST(registers_tell_the_result_only),
	    TEST(empty_records_and_the_end_are_nothing),
	    TEST(what_cannot_be_forwarded_is_dropped),
	    TEST(nothing_of_a_grant_is_left),
	    TEST(a_grant_looks_like_a_new_one),
	    TEST(nobody_else_writes_a_grant),
	    TEST(a_grant_covers_no_more_of_the_table_than_workers_map),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
