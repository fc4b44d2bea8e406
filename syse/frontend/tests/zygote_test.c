/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The zygote of a task with a supervisor: when it forks, and when it ends.
 */
#include "zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stand_in.h"

/* Runs the zygote with these answers to its forks. Returns its status, and its output. */
static int
run(const int *forks, char output[64])
{
	struct worker pristine = {0};
	int kept = dup(STDOUT_FILENO), ends[2], status;
	ssize_t length;

	assert_int_equal(pipe(ends), 0);
	(void)fflush(stdout);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	stand_in.forks = forks;
	status = zygote_run(&pristine);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	length = read(ends[0], output, 63);
	output[length > 0 ? length : 0] = '\0';
	close(ends[0]);
	return status;
}

static void
test_it_forks_until_it_is_interrupted(void **state)
{
	static const int FORKS[] = {101, 102, 103, -EINTR};
	char output[64];

	(void)state;
	assert_int_equal(run(FORKS, output), 0);
	assert_ptr_equal(stand_in.forks, FORKS + 4);
	assert_string_equal(output, "ready\n");
}

static void
test_it_tries_again_when_something_is_short(void **state)
{
	static const int FORKS[] = {101, -EAGAIN, -ENOMEM, 102, -EINTR};
	char output[64];

	(void)state;
	assert_int_equal(run(FORKS, output), 0);
	assert_ptr_equal(stand_in.forks, FORKS + 5);
}

static void
test_a_refused_fork_ends_it(void **state)
{
	static const int FORKS[] = {101, -EACCES};
	char output[64];

	(void)state;
	assert_int_equal(run(FORKS, output), 1);
	assert_ptr_equal(stand_in.forks, FORKS + 2);
}

static void
test_a_worker_serves_and_ends(void **state)
{
	static const int FORKS[] = {101, 0};
	struct sigaction of_worker;
	char output[64];

	(void)state;
	/* The stand-in accepts no connection. */
	assert_int_equal(run(FORKS, output), WORKER_FAILED);
	assert_ptr_equal(stand_in.forks, FORKS + 2);
	assert_int_equal(sigaction(SIGTERM, NULL, &of_worker), 0);
	assert_ptr_equal(of_worker.sa_handler, SIG_DFL);
}

static void
test_a_signal_interrupts_it(void **state)
{
	static const int FORKS[] = {-EINTR};
	struct sigaction of_zygote;
	char output[64];

	(void)state;
	assert_int_equal(run(FORKS, output), 0);
	assert_int_equal(sigaction(SIGTERM, NULL, &of_zygote), 0);
	assert_ptr_not_equal(of_zygote.sa_handler, SIG_DFL);
	assert_int_equal(of_zygote.sa_flags & SA_RESTART, 0);
	assert_int_equal(raise(SIGTERM), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_it_forks_until_it_is_interrupted),
	    cmocka_unit_test(test_it_tries_again_when_something_is_short),
	    cmocka_unit_test(test_a_refused_fork_ends_it),
	    cmocka_unit_test(test_a_worker_serves_and_ends),
	    cmocka_unit_test(test_a_signal_interrupts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
