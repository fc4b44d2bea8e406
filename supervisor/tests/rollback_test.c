/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The roll-back code by itself: every session finds what the worker was sealed with, whatever the
 * one before has done and wherever in the code it has jumped to.
 */
#include "rollback.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "sealed.h"

static struct sealed_report expected;
static uint8_t patched[SHAI_ROLLBACK_CODE_SIZE];

static int
prepare(void **state)
{
	(void)state;
	sealed_expected(&expected);
	return 0;
}

/* How a session can leave: its registers when it jumps. */
enum manner {
	ACCEPTS,
	CALLS,
	ACCEPTS_WRONGLY,
	MANNERS
};

static struct sealed_leave
leave_at(uint64_t offset, enum manner manner)
{
	static const uint64_t accepts[SEALED_REGISTERS] = {
	    SYS_accept4, [2] = 0, [6] = 0, [7] = SHAI_ROLLBACK_LISTEN, [10] = SOCK_CLOEXEC};
	struct sealed_leave leave = {.offset = offset, .flags = SEALED_FLAGS};

	for (int i = 0; i < SEALED_REGISTERS; i++)
		leave.registers[i] = SEALED_EVIL_MEMORY;
	if (manner == CALLS) {
		leave.registers[0] = SYS_getpid;
		return leave;
	}
	for (int i = 0; i < SEALED_REGISTERS; i++)
		if (i == 0 || i == 2 || i == 6 || i == 7 || i == 10)
			leave.registers[i] = accepts[i];
	if (manner == ACCEPTS_WRONGLY)
		leave.registers[7] = 7;
	return leave;
}

static void
send_away(int connection, const struct sealed_leave *leave)
{
	EXPECT(send(connection, leave, sizeof(*leave), MSG_NOSIGNAL) == sizeof(*leave));
}

/* The first session, which is as expected. */
static int
first_session(struct sealed *worker, const uint8_t code[SHAI_ROLLBACK_CODE_SIZE])
{
	const char *problem;
	int connection;

	sealed_start(worker, code);
	EXPECT(sealed_await(worker, -1) == SEALED_WAITS);
	connection = sealed_connect(worker);
	EXPECT(sealed_await(worker, connection) == SEALED_SAYS);
	problem = sealed_check(connection, &expected);
	if (problem != NULL)
		fail_msg("the first session differs: %s", problem);
	return connection;
}

static void
sessions_find_what_was_sealed(void **state)
{
	struct sealed worker;
	const char *problem;
	int connection, next;

	(void)state;
	print_message(
	    "XSAVE components %#llx are compared\n", (unsigned long long)sealed_components());
	connection = first_session(&worker, rollback_code);
	for (int i = 0; i < 10; i++) {
		struct sealed_leave leave = leave_at(0, (enum manner)(i % MANNERS));

		send_away(connection, &leave);
		EXPECT(sealed_await(&worker, -1) == SEALED_WAITS);
		next = sealed_connect(&worker);
		EXPECT(sealed_await(&worker, next) == SEALED_SAYS);
		problem = sealed_check(next, &expected);
		if (problem != NULL)
			fail_msg("differs: %s", problem);
		(void)close(connection);
		connection = next;
	}
	(void)close(connection);
	sealed_stop(&worker);
}

static void
pages_that_no_session_writes_take_no_memory(void **state)
{
	struct sealed_leave leave = leave_at(0, ACCEPTS);
	struct sealed worker;
	int connection, next;

	(void)state;
	connection = first_session(&worker, rollback_code);
	send_away(connection, &leave);
	EXPECT(sealed_await(&worker, -1) == SEALED_WAITS);
	next = sealed_connect(&worker);
	EXPECT(sealed_await(&worker, next) == SEALED_SAYS);
	assert_int_equal(sealed_memory_at(&worker, SEALED_UNTOUCHED), 0);
	(void)close(connection);
	(void)close(next);
	sealed_stop(&worker);
}

static void
a_worker_without_a_supervisor_ends(void **state)
{
	struct sealed_leave leave = leave_at(0, ACCEPTS);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sealed worker;
		int connection = first_session(&worker, rollback_code);

		send_away(connection, &leave);
		EXPECT(sealed_await(&worker, connection) == SEALED_WAITS);
		if (i == 0)
			sealed_refuse(&worker, EPERM);
		else
			sealed_forsake(&worker);
		EXPECT(sealed_await(&worker, -1) == SEALED_ENDED);
		(void)close(connection);
		sealed_stop(&worker);
	}
}

static void
eagain_only_rolls_back(void **state)
{
	struct sealed_leave leave = leave_at(0, ACCEPTS);
	struct sealed worker;
	int connection, next;

	(void)state;
	connection = first_session(&worker, rollback_code);
	send_away(connection, &leave);
	for (int i = 0; i < 3; i++) {
		EXPECT(sealed_await(&worker, connection) == SEALED_WAITS);
		sealed_refuse(&worker, EAGAIN);
	}
	EXPECT(sealed_await(&worker, connection) == SEALED_WAITS);
	next = sealed_connect(&worker);
	EXPECT(sealed_await(&worker, next) == SEALED_SAYS);
	assert_null(sealed_check(next, &expected));
	(void)close(connection);
	(void)close(next);
	sealed_stop(&worker);
}

/*
 * A session jumps. Either it stays in its own session, or the worker dies, or the next session
 * finds what was sealed. Returns whether the worker can go on; *connection is then its own.
 */
static bool
jump(struct sealed *worker, int *connection, uint64_t offset, enum manner manner)
{
	struct sealed_leave leave = leave_at(offset, manner);
	enum sealed_sign sign;
	const char *problem;
	int next;

	send_away(*connection, &leave);
	sign = sealed_await(worker, *connection);
	if (sign != SEALED_WAITS)
		return false;
	next = sealed_connect(worker);
	sign = sealed_await(worker, next);
	problem = sign == SEALED_SAYS ? sealed_check(next, &expected) : NULL;
	if (problem != NULL)
		fail_msg("after a jump to %#llx (%d) the next session differs: %s",
		    (unsigned long long)offset, (int)manner, problem);
	(void)close(*connection);
	*connection = next;
	return sign == SEALED_SAYS;
}

static void
a_jump_to_any_byte_gains_nothing(void **state)
{
	unsigned survived = 0;

	(void)state;
	for (int manner = 0; manner < MANNERS; manner++) {
		struct sealed worker;
		int connection = first_session(&worker, rollback_code);

		for (uint64_t offset = 0; offset < SHAI_ROLLBACK_CODE_SIZE; offset++) {
			if (jump(&worker, &connection, offset, (enum manner)manner)) {
				survived++;
				continue;
			}
			(void)close(connection);
			sealed_stop(&worker);
			connection = first_session(&worker, rollback_code);
		}
		(void)close(connection);
		sealed_stop(&worker);
	}
	print_message("%u jumps led to the next session\n", survived);
	assert_true(survived >= MANNERS); /* those to the beginning, for example */
}

/* With the trap flag, a worker stops behind accept4: it dies. */
static void
a_trap_ends_the_worker(void **state)
{
	struct sealed_leave leave = leave_at(SHAI_ROLLBACK_ACCEPTED - 2, ACCEPTS);
	struct sealed worker;
	int connection, next;

	(void)state;
	leave.flags |= SEALED_TRAP;
	connection = first_session(&worker, rollback_code);
	send_away(connection, &leave);
	EXPECT(sealed_await(&worker, -1) == SEALED_WAITS);
	next = sealed_connect(&worker);
	EXPECT(sealed_await(&worker, next) == SEALED_ENDED);
	(void)close(connection);
	(void)close(next);
	sealed_stop(&worker);
}

/*
 * Parts of the code, and what switches each off. Three are not here: fninit and the GS base, which
 * matter on some processors only, and the clearing of RDX, which an argument has cleared before.
 */
static const struct part {
	const char *name;
	uint8_t size;
	uint8_t bytes[8];
	uint8_t off[8]; /* zero: nops */
} parts[] = {
    {"vectors", 8, {0xff, 0xff, 0xff, 0xff, 0x48, 0x0f, 0xae, 0x2d},
	{0xff, 0xff, 0xff, 0xff, 0x48, 0x0f, 0x1f, 0x05}},
    {"direction", 1, {0xfc}, {0}},
    {"first part of 64 bytes", 4, {0x66, 0x0f, 0x76, 0x07}, {0x66, 0x0f, 0x76, 0xc0}},
    {"second part", 5, {0x66, 0x0f, 0x76, 0x4f, 0x10}, {0x66, 0x0f, 0x76, 0xc9, 0x90}},
    {"third part", 5, {0x66, 0x0f, 0x76, 0x57, 0x20}, {0x66, 0x0f, 0x76, 0xd2, 0x90}},
    {"fourth part", 5, {0x66, 0x0f, 0x76, 0x5f, 0x30}, {0x66, 0x0f, 0x76, 0xdb, 0x90}},
    {"result of the second part", 4, {0x66, 0x0f, 0xdb, 0xc1}, {0}},
    {"result of the fourth part", 4, {0x66, 0x0f, 0xdb, 0xd3}, {0}},
    {"result of the third part", 4, {0x66, 0x0f, 0xdb, 0xc2}, {0}},
    {"last bytes of a page", 5, {0xb9, 0x40}, {0xb9, 0x3f}},
    {"further bytes", 2, {0x75, 0xb7}, {0}},
    {"rest of a page", 3, {0xc1, 0xe1, 0x03}, {0}},
    {"memory", 3, {0xf3, 0x48, 0xa5}, {0xf3, 0x48, 0xa7}},
    {"further pages", 2, {0x72, 0xa5}, {0}},
    {"further ranges", 2, {0x79, 0x8d}, {0}},
    {"vectors again", 6, {0x31, 0xd2, 0x48, 0x0f, 0xae, 0x2d},
	{0x31, 0xd2, 0x48, 0x0f, 0x1f, 0x05}},
    {"descriptors", 5, {0x0f, 0x05, 0x48, 0x85, 0xc0}, {0x31, 0xc0, 0x48, 0x85, 0xc0}},
    {"DS", 2, {0x8e, 0xd8}, {0}},
    {"ES", 2, {0x8e, 0xc0}, {0}},
    {"FS", 2, {0x8e, 0xe0}, {0}},
    {"GS", 2, {0x8e, 0xe8}, {0}},
    {"FS base", 5, {0xf3, 0x48, 0x0f, 0xae, 0xd0}, {0}},
    {"flags", 1, {0x9d}, {0}},
    {"RSP", 3, {0x48, 0x8b, 0x25}, {0x48, 0x8b, 0x05}},
    {"RAX", 3, {0x4c, 0x89, 0xf8}, {0}},
    {"RBX", 2, {0x31, 0xdb}, {0}},
    {"RCX", 2, {0x31, 0xc9}, {0}},
    {"RSI", 4, {0x31, 0xf6, 0x31, 0xff}, {0x90, 0x90, 0x31, 0xff}},
    {"RDI", 2, {0x31, 0xff}, {0}},
    {"RBP", 2, {0x31, 0xed}, {0}},
    {"R8", 3, {0x45, 0x31, 0xc0}, {0}},
    {"R9", 3, {0x45, 0x31, 0xc9}, {0}},
    {"R10", 3, {0x45, 0x31, 0xd2}, {0}},
    {"R11", 3, {0x45, 0x31, 0xdb}, {0}},
    {"R12", 3, {0x45, 0x31, 0xe4}, {0}},
    {"R13", 3, {0x45, 0x31, 0xed}, {0}},
    {"R14", 3, {0x45, 0x31, 0xf6}, {0}},
    {"R15", 3, {0x45, 0x31, 0xff}, {0}},
};

/* Makes a copy of the code without a part. Its bytes may be found once more, after a prefix. */
static void
switch_off(const struct part *part)
{
	uint8_t *found = NULL;

	memcpy(patched, rollback_code, sizeof(patched));
	for (size_t i = 0; i + part->size <= SHAI_ROLLBACK_SEAL; i++)
		if (memcmp(patched + i, part->bytes, part->size) == 0 &&
		    (i == 0 || patched[i - 1] != 0x45)) {
			assert_null(found);
			found = patched + i;
		}
	if (found == NULL)
		fail_msg("the code has no part %s", part->name);
	for (size_t i = 0; i < part->size; i++)
		found[i] = part->off[0] != 0 ? part->off[i] : 0x90;
}

/* Whether two sessions in turn find the same, with a part switched off. */
static bool
is_missed(void)
{
	struct sealed_leave leave = leave_at(0, CALLS);
	struct sealed worker;
	bool same = true;

	sealed_start(&worker, patched);
	for (int i = 0; i < 2 && same; i++) {
		int connection;

		same = sealed_await(&worker, -1) == SEALED_WAITS;
		if (!same)
			break;
		connection = sealed_connect(&worker);
		same = sealed_await(&worker, connection) == SEALED_SAYS &&
		       sealed_check(connection, &expected) == NULL;
		if (same)
			send_away(connection, &leave);
		(void)close(connection);
	}
	sealed_stop(&worker);
	return same;
}

static void
every_part_is_needed(void **state)
{
	(void)state;
	memcpy(patched, rollback_code, sizeof(patched));
	assert_true(is_missed()); /* the twin: nothing is switched off */
	for (size_t i = 0; i < COUNT(parts); i++) {
		switch_off(&parts[i]);
		if (is_missed())
			fail_msg("nothing is found without the part %s", parts[i].name);
	}
}

/*
 * Neither by writing nor as a program; it can be mapped. An attempt does not change its times
 * either, which would tell all workers of it.
 */
static void
nobody_can_change_the_file(void **state)
{
	int file = rollback_open();
	struct stat before, after;
	char *arguments[] = {(char[]){"x"}, NULL};
	void *mapped;

	(void)state;
	EXPECT(file >= 0);
	assert_int_equal(fstat(file, &before), 0);
	assert_int_equal(pwrite(file, "x", 1, 0), -1);
	assert_int_equal(ftruncate(file, 0), -1);
	assert_int_equal(ftruncate(file, SHAI_ROLLBACK_CODE_SIZE), -1);
	assert_int_equal(ftruncate(file, 2 * SHAI_ROLLBACK_CODE_SIZE), -1);
	assert_int_equal(fallocate(file, 0, 0, SHAI_ROLLBACK_CODE_SIZE), -1);
	assert_int_equal(fstat(file, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	assert_int_equal(fchmod(file, 0777), -1);
	assert_true((fcntl(file, F_GETFL) & O_NOATIME) != 0); /* nor its time of access */
	assert_ptr_equal(
	    mmap(NULL, SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
	    MAP_FAILED);
	assert_int_equal(
	    syscall(SYS_execveat, file, "", arguments, arguments + 1, AT_EMPTY_PATH), -1);
	mapped = mmap(NULL, SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	assert_memory_equal(mapped, rollback_code, SHAI_ROLLBACK_CODE_SIZE);
	(void)munmap(mapped, SHAI_ROLLBACK_CODE_SIZE);
	(void)close(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sessions_find_what_was_sealed),
	    cmocka_unit_test(pages_that_no_session_writes_take_no_memory),
	    cmocka_unit_test(eagain_only_rolls_back),
	    cmocka_unit_test(a_worker_without_a_supervisor_ends),
	    cmocka_unit_test(a_jump_to_any_byte_gains_nothing),
	    cmocka_unit_test(a_trap_ends_the_worker),
	    cmocka_unit_test(every_part_is_needed),
	    cmocka_unit_test(nobody_can_change_the_file),
	};

	return cmocka_run_group_tests_name("rollback", tests, prepare, NULL);
}
