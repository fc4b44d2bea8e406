/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Workers that cannot be sealed: what libshai tells the monitor of them.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "fake_supervisor.h"
#include "shai_rollback.h"

#define LIMIT ((size_t)16 << 20) /* bytes that a worker can write */
#define PAGE ((size_t)SHAI_ROLLBACK_PAGE)
#define FILE_AT UINT64_C(0x300000000000) /* where a worker maps a file of a page, and more */

/* ------------------------------------------------------------- the workers */

/* Tells its user whether a timer runs. */
__attribute__((noreturn)) static void
work(void)
{
	static struct shai_session session;
	struct itimerval timer;
	bool runs;

	if (shai_accept(&session) != 0)
		_exit(2);
	EXPECT(getitimer(ITIMER_PROF, &timer) == 0);
	runs = timer.it_value.tv_sec > 0;
	EXPECT(write(session.connection, &runs, sizeof(runs)) == sizeof(runs));
	shai_reset(&session);
	_exit(0);
}

__attribute__((noreturn)) static void
work_with_timer(void)
{
	const struct itimerval later = {.it_value.tv_sec = 10000};

	EXPECT(setitimer(ITIMER_PROF, &later, NULL) == 0);
	work();
}

__attribute__((noreturn)) static void
work_with_short_file(void)
{
	int file = memfd_create("short", MFD_CLOEXEC);

	EXPECT(ftruncate(file, (off_t)PAGE) == 0);
	EXPECT(mmap((void *)(uintptr_t)FILE_AT, 2 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_FIXED_NOREPLACE, file, 0) != MAP_FAILED);
	EXPECT(close(file) == 0);
	work();
}

__attribute__((noreturn)) static void
work_without_reserve(void)
{
	const struct rlimit limit = {LIMIT, LIMIT};

	EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0);
	shai_reserve(LIMIT, SHAI_RESERVE_STACK);
	work();
}

/* ------------------------------------------------------------------ tests */

static struct shai_rollback_state told;

static void
read_told(const struct fake_supervisor *s, __attribute__((unused)) uint64_t program)
{
	char path[64];
	int memory;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", s->worker);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(memory, &told, sizeof(told), SHAI_ROLLBACK_STATE), sizeof(told));
	(void)close(memory);
}

/* Also if the worker is sealed all the same. */
static void
timers_of_sealed_workers_are_stopped(void **state)
{
	(void)state;
	for (int sealed = 0; sealed <= 1; sealed++) {
		struct fake_supervisor s;
		bool runs;

		fake_supervisor_start(&s, true, work_with_timer);
		assert_true(fake_supervisor_await(&s, sealed, read_told));
		assert_int_equal(told.unfit, SHAI_ROLLBACK_HAS_TIMERS);
		assert_int_equal(fake_supervisor_session(&s, &runs, sizeof(runs)), sealed);
		assert_int_equal(runs, !sealed);
		(void)fake_supervisor_end(&s, sealed);
	}
}

static void
other_workers_are_fit(void **state)
{
	struct fake_supervisor s;

	(void)state;
	fake_supervisor_start(&s, true, work);
	assert_true(fake_supervisor_await(&s, true, read_told));
	assert_int_equal(told.unfit, 0);
	(void)fake_supervisor_end(&s, true);
}

static void
workers_without_a_reserve_say_so(void **state)
{
	struct fake_supervisor s;
	bool runs;

	(void)state;
	fake_supervisor_start(&s, true, work_without_reserve);
	assert_true(fake_supervisor_await(&s, false, read_told));
	assert_int_equal(told.unfit, SHAI_ROLLBACK_HAS_NO_RESERVE);
	assert_false(fake_supervisor_session(&s, &runs, sizeof(runs)));
	(void)fake_supervisor_end(&s, false);
}

static bool
is_told(uint64_t address)
{
	for (uint64_t i = 0; i < told.range_count; i++)
		if (address - told.range[i].destination < told.range[i].length)
			return true;
	return false;
}

/* The worker does not die of reading it, and serves. */
static void
what_cannot_be_read_is_left_out(void **state)
{
	struct fake_supervisor s;
	bool runs;

	(void)state;
	fake_supervisor_start(&s, true, work_with_short_file);
	assert_true(fake_supervisor_await(&s, false, read_told));
	assert_int_equal(s.asked, 1);
	assert_true(is_told((uint64_t)(uintptr_t)&told));
	assert_false(is_told(FILE_AT));
	assert_false(fake_supervisor_session(&s, &runs, sizeof(runs)));
	(void)fake_supervisor_end(&s, false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(timers_of_sealed_workers_are_stopped),
	    cmocka_unit_test(other_workers_are_fit),
	    cmocka_unit_test(workers_without_a_reserve_say_so),
	    cmocka_unit_test(what_cannot_be_read_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
