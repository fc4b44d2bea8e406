/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker that is sealed and rolled back, with the supervisor's roll-back code. What a
 * monitor verifies and filters is tested with a real one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "fake_supervisor.h"
#include "linux/mappings.h"
#include "shai_rollback.h"

#define HEAP ((size_t)300 << 10)
#define STACK ((size_t)200 << 10)      /* more than a process begins with */
#define SMALL_STACK ((size_t)70 << 10) /* less */
#define BLOCK 1000                     /* bytes of one allocation */
#define STATIC_SIZE (64u << 10)

/* What a session finds, which it sends over its connection before it changes all of it. */
struct found {
	pid_t process;
	uint32_t counter, remembered, control; /* static data, the heap, MXCSR */
	uint64_t stack;                        /* where its frame is */
	int lowest;                            /* free descriptor from SHAI_FD_RESERVED_END on */
	uint32_t blocks;                       /* that malloc gave before it failed */
	long faults;                           /* meanwhile */
};

static size_t stack = STACK;               /* what the next worker reserves */
static size_t depth = STACK - (32u << 10); /* how much of its stack a session uses */
static uint32_t counter;
static uint32_t *remembered;
static uint64_t caller; /* of shai_accept: where its frame is */
static uint8_t bytes[STATIC_SIZE];

/* ------------------------------------------------------------- the worker */

__attribute__((noinline)) static void
use_stack(size_t size)
{
	volatile uint8_t local[1024];

	for (size_t i = 0; i < sizeof(local); i += 512)
		local[i] = (uint8_t)size;
	if (size > sizeof(local) + 64)
		use_stack(size - sizeof(local) - 64);
	local[0] = 1; /* no tail call */
}

static long
faults(void)
{
	struct rusage usage;

	EXPECT(getrusage(RUSAGE_SELF, &usage) == 0);
	return usage.ru_minflt;
}

/* Looks at the worker, then changes all that a session can change. */
static void
serve(const struct shai_session *session)
{
	struct found found = {.process = getpid(), .counter = counter, .remembered = *remembered};
	uint32_t rounding = 0x7f80;
	long before = faults();

	__asm__ volatile("stmxcsr %0" : "=m"(found.control));
	found.control &= ~0x3fu; /* without the flags of what was computed before */
	__asm__ volatile("ldmxcsr %0" : : "m"(rounding));
	found.stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	found.lowest = fcntl(SHAI_FD_MONITOR, F_DUPFD_CLOEXEC, SHAI_FD_RESERVED_END);
	counter++;
	*remembered = 17;
	memset(bytes, 1, sizeof(bytes));
	use_stack(depth);
	for (void *block; found.blocks < 2 * HEAP / BLOCK && (block = malloc(BLOCK)) != NULL;) {
		memset(block, 1, BLOCK);
		found.blocks++;
	}
	found.faults = faults() - before;
	EXPECT(write(session->connection, &found, sizeof(found)) == sizeof(found));
}

__attribute__((noreturn)) static void
work(void)
{
	static struct shai_session session;

	remembered = calloc(1, sizeof(*remembered));
	caller = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	shai_reserve(HEAP, stack);
	if (shai_accept(&session) != 0)
		_exit(2);
	serve(&session);
	shai_reset(&session);
	_exit(shai_accept(&session) == -1 && errno == EPERM ? 0 : 3);
}

__attribute__((noreturn)) static void
work_beyond_reserve(void)
{
	depth = 2 * STACK;
	work();
}

/* What a session gets from its channel: how much, or -1 and errno. */
struct got {
	ssize_t count;
	int error, channel;
};

__attribute__((noreturn)) static void
work_with_channel(void)
{
	static struct shai_session session;
	const uint8_t signature[SHAI_SIGNATURE_SIZE] = {0};
	struct shai_document document;
	struct got got;

	if (shai_accept(&session) != 0 || shai_authenticate(&session, "alice", signature) != 0)
		_exit(2);
	session.timeout_milliseconds = 100;
	got.count = shai_channel_receive(&session, session.first_query, &document, 1);
	got.error = got.count < 0 ? errno : 0;
	got.channel = session.channel;
	EXPECT(write(session.connection, &got, sizeof(got)) == sizeof(got));
	shai_reset(&session);
	_exit(3);
}

/* ------------------------------------------------------------------ tests */

static void
expect_first(const struct found *found)
{
	assert_int_equal(found->counter, 0);
	assert_int_equal(found->remembered, 0);
	assert_int_equal(found->control, 0x1f80);
	assert_int_equal(found->lowest, SHAI_FD_RESERVED_END);
}

static void
each_session_of_a_sealed_worker_is_like_its_first(void **state)
{
	struct fake_supervisor s;
	struct found first, later;

	(void)state;
	fake_supervisor_start(&s, true, work);
	assert_true(fake_supervisor_await(&s, true, NULL));
	assert_int_equal(s.asked, 1);
	assert_true(fake_supervisor_session(&s, &first, sizeof(first)));
	expect_first(&first);
	assert_int_equal(first.process, s.worker);
	for (int i = 0; i < 20; i++) {
		if (i % 5 == 0)
			fake_supervisor_roll_back(&s);
		assert_true(fake_supervisor_session(&s, &later, sizeof(later)));
		first.faults = later.faults;
		assert_memory_equal(&later, &first, sizeof(first));
	}
	assert_int_equal(s.asked, 1);
	assert_true(WIFSIGNALED(fake_supervisor_end(&s, true)));
}

/* All that is reserved is there, and no more. A page's first write by a worker takes a fault. */
static void
sessions_use_what_was_reserved(void **state)
{
	struct fake_supervisor s;
	struct found found;

	(void)state;
	fake_supervisor_start(&s, true, work);
	assert_true(fake_supervisor_await(&s, true, NULL));
	for (int i = 0; i < 3; i++) {
		assert_true(fake_supervisor_session(&s, &found, sizeof(found)));
		assert_in_range(found.blocks * BLOCK, HEAP * 9 / 10, HEAP * 11 / 10);
		/* Of 129 pages; the kernel may have taken some back. */
		if (i > 0)
			assert_in_range(found.faults, 0, 8);
	}
	(void)fake_supervisor_end(&s, true);
}

static void
a_worker_that_is_not_sealed_serves_once(void **state)
{
	(void)state;
	for (int offered = 0; offered <= 1; offered++) {
		struct fake_supervisor s;
		struct found found;
		int status;

		fake_supervisor_start(&s, offered, work_beyond_reserve);
		assert_true(fake_supervisor_await(&s, false, NULL));
		assert_int_equal(s.asked, offered);
		assert_false(fake_supervisor_session(&s, &found, sizeof(found)));
		expect_first(&found);
		assert_int_equal(found.blocks, 2 * HEAP / BLOCK); /* no reserve limits it */
		status = fake_supervisor_end(&s, false);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

struct examined {
	int memory;
	struct shai_rollback_state state;
	uint64_t ranges, source, before; /* the end of the mapping before */
	bool has_code, has_state, has_stack;
};

static void
read_worker(const struct examined *e, uint64_t address, void *out, size_t size)
{
	assert_int_equal(pread(e->memory, out, size, (off_t)address), size);
}

/* Compares the snapshot of a range with the worker's memory. */
static void
examine_pages(const struct examined *e, const struct shai_rollback_range *range, bool grows)
{
	static uint8_t live[SHAI_ROLLBACK_PAGE], kept[SHAI_ROLLBACK_PAGE];
	uint64_t first =
	    grows ? e->state.stack & ~(uint64_t)(SHAI_ROLLBACK_PAGE - 1) : range->destination;

	for (uint64_t page = first; page < range->destination + range->length;
	     page += SHAI_ROLLBACK_PAGE) {
		size_t used = grows && page == first ? e->state.stack % SHAI_ROLLBACK_PAGE : 0;

		read_worker(e, page, live, sizeof(live));
		read_worker(e, page - range->destination + range->source, kept, sizeof(kept));
		assert_memory_equal(live + used, kept + used, sizeof(live) - used);
	}
}

static bool
examine_mapping(void *context, const struct shai_mapping *mapping)
{
	struct examined *e = context;
	const struct shai_rollback_range *range = &e->state.range[e->ranges];

	e->has_code |= mapping->start == SHAI_ROLLBACK_CODE && !mapping->writable &&
		       mapping->end == SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_CODE_SIZE;
	if (mapping->start == SHAI_ROLLBACK_STATE) {
		const struct shai_rollback_range *last = &e->state.range[e->state.range_count - 1];

		assert_int_equal(mapping->end, last->source + last->length);
		assert_false(mapping->writable);
		e->has_state = true;
	}
	if (mapping->stack)
		assert_int_equal(e->before, mapping->start);
	e->before = mapping->writable ? 0 : mapping->end;
	if (!mapping->writable || mapping->shared)
		return true;
	assert_true(e->ranges++ < e->state.range_count);
	assert_int_equal(range->destination, mapping->start);
	assert_int_equal(range->length, mapping->end - mapping->start);
	assert_int_equal(range->source, e->source);
	e->source += range->length;
	if (mapping->stack) {
		uint64_t below;

		e->has_stack = true;
		read_worker(e, (uint64_t)(uintptr_t)&caller, &below, sizeof(below));
		assert_true(below - mapping->start >= stack);
		assert_true(e->state.stack - mapping->start <= stack + 8192);
	}
	examine_pages(e, range, mapping->stack);
	return true;
}

/* What the real monitor verifies of libshai's part. */
static void
examine_state(const struct fake_supervisor *s, uint64_t program)
{
	struct examined e = {.source = SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_SNAPSHOT};
	struct sock_fprog head;
	uint64_t used;
	char path[64];
	int maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", s->worker);
	e.memory = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", s->worker);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	read_worker(&e, SHAI_ROLLBACK_STATE, &e.state, sizeof(e.state));
	assert_int_equal(shai_mappings_read(maps, examine_mapping, &e), 0);
	assert_int_equal(e.ranges, e.state.range_count);
	assert_true(e.has_code && e.has_state && e.has_stack);
	read_worker(&e, SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_VECTORS + SHAI_ROLLBACK_VECTORS_USED,
	    &used, sizeof(used));
	assert_int_equal(used & SHAI_ROLLBACK_VECTORS_ALWAYS, SHAI_ROLLBACK_VECTORS_ALWAYS);
	read_worker(&e, program, &head, sizeof(head));
	assert_int_equal((uintptr_t)head.filter, program + sizeof(head));
	(void)close(maps);
	(void)close(e.memory);
}

static void
the_snapshot_is_all_that_the_worker_can_write(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fake_supervisor s;

		stack = i == 0 ? SMALL_STACK : STACK;
		fake_supervisor_start(&s, true, work);
		assert_true(fake_supervisor_await(&s, false, examine_state));
		assert_int_equal(s.asked, 1);
		(void)fake_supervisor_end(&s, true);
	}
}

/* By the gate: its grant permits it. What it drops is no answer; the sender's end is noticed. */
static void
a_sealed_worker_reads_its_channel(void **state)
{
	const struct shai_connected connected = fake_connected(SHAI_MODE_SHAI);
	const uint32_t query = shai_first_query(connected.nonce);
	const struct {
		struct shai_transfer record;
		size_t length;
		bool ends;
		int error;
	} channels[] = {
	    {{.query = query}, 8, false, 0},
	    {{.query = query + 1}, 8, false, ETIMEDOUT},
	    {{.query = query}, 0, false, ETIMEDOUT},
	    {{.query = query}, 8, true, 0},
	    {{.query = query + 1}, 8, true, EPIPE},
	};
	struct fake_supervisor s;

	(void)state;
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
		struct got got;
		int channel;

		fake_supervisor_start(&s, true, work_with_channel);
		s.grant.flags = SHAI_GRANT_BOUND;
		s.binds = true;
		assert_true(fake_supervisor_await(&s, true, NULL));
		channel = fake_supervisor_channel(&s);
		assert_int_equal(
		    send(channel, &channels[i].record, channels[i].length, 0), channels[i].length);
		if (channels[i].ends)
			(void)close(channel);
		assert_true(fake_supervisor_session(&s, &got, sizeof(got)));
		assert_int_equal(got.error, channels[i].error);
		assert_int_equal(got.channel, SHAI_FD_CHANNEL);
		if (!channels[i].ends)
			(void)close(channel);
		(void)fake_supervisor_end(&s, true);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_session_of_a_sealed_worker_is_like_its_first),
	    cmocka_unit_test(sessions_use_what_was_reserved),
	    cmocka_unit_test(a_worker_that_is_not_sealed_serves_once),
	    cmocka_unit_test(the_snapshot_is_all_that_the_worker_can_write),
	    cmocka_unit_test(a_sealed_worker_reads_its_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
