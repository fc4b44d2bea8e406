/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How a sealed worker's sessions end in the real supervisor, and the next one begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "documents_asked.h"
#include "reused.h"

static struct harness h;

static void
forget(const char *principal)
{
	struct shai_control_forget record = {
	    .header = control_header(SHAI_CONTROL_FORGET, sizeof(record)),
	    .flags = SHAI_FORGET_END,
	    .reason = "access was revoked"};

	(void)snprintf(record.principal, sizeof(record.principal), "%s", principal);
	harness_send(&h, &record, sizeof(record), NULL);
}

/* Whether a worker has the null device, open for writing, in place of the roll-back code. */
static bool
has_no_code(pid_t worker)
{
	char path[64], text[64] = "";
	unsigned long flags = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", worker, SHAI_FD_ROLLBACK);
	file = fopen(path, "re");
	EXPECT(file != NULL);
	while (fgets(text, sizeof(text), file) != NULL)
		(void)sscanf(text, "flags: %lo", &flags);
	(void)fclose(file);
	return (flags & (O_ACCMODE | O_PATH)) == O_WRONLY;
}

static void
a_sealed_worker_has_one_session_after_the_other(void **state)
{
	const struct shai_control_event *event;
	struct client client;
	int file;
	pid_t worker, next;

	(void)state;
	reused_start(&h, 3);
	worker = reused_first(&h, "alice");
	EXPECT(reused_begin(&h, &client, "bob") == worker);
	client_open(&client, DOCUMENT_OF_BOB);
	assert_int_equal(client_opened(&client, &file), 0);
	client_reset(&client, 5);
	client_order(&client, RETURN, 1, NULL, 0);
	EXPECT(client_closed(&client));
	close(client.socket);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_int_equal(event->flags, SHAI_EVENT_ROLLED_BACK);
	assert_int_equal(event->counters[0], 5);
	assert_string_equal(event->principal, "bob");
	assert_string_equal(event->reason, "");
	/* Its third session is its last one. */
	EXPECT(reused_begin(&h, &client, "alice") == worker);
	client_leave(&client);
	assert_int_equal(harness_event(&h, SHAI_EVENT_ENDED)->flags, 0);
	harness_seal(&h);
	next = reused_begin(&h, &client, "alice");
	EXPECT(next != worker && !has_no_code(next));
	close(client.socket);
}

/* Sealed workers and others are told apart, and none is counted once it has ended. */
static void
workers_are_counted_while_they_live(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct shai_control_counts counts;
	struct client client;

	(void)state;
	settings.slots = 1;
	harness_start(&h, SEALS, &settings);
	do
		counts = harness_counts(&h);
	while (counts.rolled_back + counts.forked == 0);
	assert_int_equal(counts.forked, 1); /* it waits to be sealed */
	harness_seal(&h);
	do
		counts = harness_counts(&h);
	while (counts.idle != 1);
	assert_int_equal(counts.rolled_back, 1);
	assert_int_equal(counts.forked, 0);
	(void)reused_begin(&h, &client, "alice");
	forget("alice");
	do
		counts = harness_counts(&h);
	while (counts.rolled_back != 0);
	close(client.socket);
}

static void
a_worker_that_is_not_sealed_has_one_session(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client client;
	pid_t worker, next;

	(void)state;
	settings.slots = 1;
	harness_start(&h, SEALS, &settings);
	EXPECT(harness_call(&h, -EPERM).notification.data.nr == SYS_seccomp);
	worker = reused_begin(&h, &client, "alice");
	EXPECT(!has_no_code(worker));
	client_order(&client, ACCEPT_AGAIN, 0, NULL, 0);
	EXPECT(harness_call(&h, -EPERM).session != 0);
	(void)client_report(&client, NULL, 0);
	client_reset(&client, 0);
	EXPECT(client_closed(&client));
	close(client.socket);
	assert_int_equal(harness_event(&h, SHAI_EVENT_ENDED)->flags, 0);
	harness_seal(&h);
	next = reused_begin(&h, &client, "alice");
	EXPECT(next != worker && has_no_code(next));
	close(client.socket);
}

/* The record is about a call, not about a number, which may be another process's by then. */
static void
only_the_call_that_was_verified_seals(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct shai_control_sealed record = {
	    .header = control_header(SHAI_CONTROL_SEALED, sizeof(record))};
	struct shai_control_notification calls[2];
	struct client client;

	(void)state;
	settings.idle_max = COUNT(calls);
	harness_start(&h, SEALS, &settings);
	for (size_t i = 0; i < COUNT(calls); i++)
		calls[i] = harness_next_call(&h);
	record.pid = (int32_t)calls[0].notification.pid;
	record.id = calls[1].notification.id; /* the other worker's */
	harness_send(&h, &record, sizeof(record), NULL);
	harness_fence(&h);
	for (size_t i = 0; i < COUNT(calls); i++)
		harness_answer_call(&h, &calls[i], -EPERM);
	/* It accepts as one that is not sealed. */
	(void)reused_begin(&h, &client, "alice");
	record.id = calls[0].notification.id;
	harness_send(&h, &record, sizeof(record), NULL); /* too late */
	client_reset(&client, 0);
	EXPECT(client_closed(&client));
	close(client.socket);
	assert_int_equal(harness_event(&h, SHAI_EVENT_ENDED)->flags, 0);
}

static void
a_sealed_worker_returns_in_the_code_only(void **state)
{
	struct client client;

	(void)state;
	reused_start(&h, 1024);
	(void)reused_begin(&h, &client, "alice");
	client_order(&client, ACCEPT_AGAIN, 0, NULL, 0);
	EXPECT(harness_call(&h, -EPERM).notification.data.nr == SYS_accept4);
	assert_int_equal(client_report(&client, NULL, 0).value, -1);
	client_leave(&client);
	(void)harness_compare(&h, true);
}

/* In one turn of the supervisor: whichever comes first, the session ends once. */
static void
return_and_revoke(bool first_revoked)
{
	const struct shai_control_event *event;
	struct client client;

	reused_start(&h, 1024);
	(void)reused_first(&h, "alice");
	(void)reused_begin(&h, &client, "alice");
	harness_stand_still(&h);
	if (first_revoked)
		forget("alice");
	client_reset(&client, 1);
	client_order(&client, RETURN, 1, NULL, 0);
	EXPECT(client_closed(&client)); /* its accept4 waits, or soon will */
	close(client.socket);
	if (!first_revoked)
		forget("alice");
	harness_go_on(&h);
	harness_fence(&h);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->principal, "alice");
	if ((event->flags & SHAI_EVENT_ROLLED_BACK) == 0)
		harness_seal(&h); /* it was killed */
	(void)reused_begin(&h, &client, "bob");
	close(client.socket);
	assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->principal, "bob");
	for (size_t i = 0; i < h.events; i++)
		assert_int_not_equal(h.event[i].kind, SHAI_EVENT_WORKER);
}

static void
a_session_that_returns_can_be_revoked(void **state)
{
	(void)state;
	return_and_revoke(false);
}

static void
a_session_that_was_revoked_does_not_return(void **state)
{
	(void)state;
	return_and_revoke(true);
}

/* The word does not end the session, and does not keep it from being ended. */
static void
a_session_that_has_reset_and_stays_can_be_revoked(void **state)
{
	struct client client;

	(void)state;
	reused_start(&h, 1024);
	(void)reused_begin(&h, &client, "alice");
	client_reset(&client, 7);
	client_settle(&h, &client);
	forget("alice");
	harness_fence(&h);
	EXPECT(client_closed(&client));
	close(client.socket);
	assert_int_equal(harness_event(&h, SHAI_EVENT_ENDED)->counters[0], 7);
}

static void
a_worker_that_has_reset_and_stays_is_killed(void **state)
{
	const struct shai_control_event *event;
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_begin(&h, &client, "alice");
	client_reset(&client, 7);
	EXPECT(client_closed(&client));
	close(client.socket);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_int_equal(event->flags, 0);
	assert_string_equal(event->reason, "");
	harness_seal(&h);
	EXPECT(reused_begin(&h, &client, "bob") != worker);
	close(client.socket);
}

static void
nothing_is_said_after_a_reset(void **state)
{
	struct client client;

	(void)state;
	reused_start(&h, 1024);
	(void)reused_begin(&h, &client, "alice");
	client_reset(&client, 0);
	client_open(&client, 1);
	EXPECT(client_closed(&client));
	close(client.socket);
	assert_string_equal(harness_event(&h, SHAI_EVENT_VIOLATION)->reason,
	    "the worker sent a message after the one that ends the session");
}

/* Without a word: its client's connection, which it has left open, ends nevertheless. */
static void
a_session_may_end_without_a_reset(void **state)
{
	const struct shai_control_event *event;
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_first(&h, "alice");
	EXPECT(reused_begin(&h, &client, "alice") == worker);
	client_order(&client, RETURN, 0, NULL, 0);
	EXPECT(client_closed(&client));
	close(client.socket);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_int_equal(event->flags, SHAI_EVENT_ROLLED_BACK);
	assert_string_equal(event->reason, "the worker ended the session without saying so");
	EXPECT(reused_begin(&h, &client, "bob") == worker);
	close(client.socket);
}

/* The monitor has not answered when the worker returns, and the answer is for nobody else. */
static void
a_question_ends_with_its_session(void **state)
{
	struct question question;
	const struct shai_control_event *event;
	struct client client;

	(void)state;
	reused_start(&h, 1024);
	(void)reused_first(&h, "alice");
	(void)reused_begin(&h, &client, "alice");
	client_open(&client, DOCUMENT_OF_BOB);
	question = question_about(&h, 1);
	client_leave(&client);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_int_equal(event->flags, SHAI_EVENT_ROLLED_BACK);
	assert_string_equal(event->reason, ""); /* its reset, which was not read before, counts */
	(void)reused_begin(&h, &client, "bob");
	question_answer(&h, &question, (int32_t[]){EACCES}, NULL);
	harness_fence(&h);
	client_settle(&h, &client);
	assert_false(client_has_report(&client));
	close(client.socket);
}

int
main(void)
{
#define TEST(name) HARNESS_TEST(name, &h)
	const struct CMUnitTest tests[] = {
	    TEST(a_sealed_worker_has_one_session_after_the_other),
	    TEST(a_worker_that_is_not_sealed_has_one_session),
	    TEST(workers_are_counted_while_they_live),
	    TEST(only_the_call_that_was_verified_seals),
	    TEST(a_sealed_worker_returns_in_the_code_only),
	    TEST(a_session_that_returns_can_be_revoked),
	    TEST(a_session_that_was_revoked_does_not_return),
	    TEST(a_session_that_has_reset_and_stays_can_be_revoked),
	    TEST(a_worker_that_has_reset_and_stays_is_killed),
	    TEST(nothing_is_said_after_a_reset),
	    TEST(a_session_may_end_without_a_reset),
	    TEST(a_question_ends_with_its_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
