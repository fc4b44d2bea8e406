/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the real supervisor does with sealed workers between two sessions.
 */
#include <signal.h>
#include <unistd.h>

#include "reused.h"

static struct harness h;

/* A session waits for the answer, and begins with it. */
static void
a_worker_that_is_compared_has_no_session(void **state)
{
	struct shai_control_compare question, other;
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_begin(&h, &client, "alice");
	client_leave(&client);
	client.socket = client_connect(&h);
	question = harness_comparison(&h);
	assert_int_equal(question.pid, worker);
	other = question;
	other.id++;
	harness_answer_comparison(&h, &other, true);
	harness_fence(&h);
	harness_fence(&h);
	assert_false(client_has_report(&client));
	harness_answer_comparison(&h, &question, true);
	(void)client_report(&client, &client.connected, sizeof(client.connected));
	close(client.socket);
}

static void
a_worker_that_differs_is_replaced(void **state)
{
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_begin(&h, &client, "alice");
	client_leave(&client);
	EXPECT(harness_compare(&h, false) == worker);
	harness_seal(&h);
	EXPECT(reused_begin(&h, &client, "alice") != worker);
	close(client.socket);
	/* The monitor knows why it ended. */
	for (size_t i = 0; i < h.events; i++)
		assert_int_not_equal(h.event[i].kind, SHAI_EVENT_WORKER);
}

/* Its connection, and the messages that it has left unread. */
static void
nothing_of_a_session_stays_open(void **state)
{
	static const int numbers[] = {SHAI_FD_MONITOR, SHAI_FD_CONNECTION};
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_first(&h, "alice");
	for (size_t i = 0; i < COUNT(numbers); i++) {
		char path[64], file[64] = {0};

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", worker, numbers[i]);
		EXPECT(readlink(path, file, sizeof(file) - 1) > 0);
		assert_string_equal(file, "/dev/null");
	}
}

/* The first further session, and each 512th. */
static void
a_sample_is_compared(void **state)
{
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_first(&h, "alice");
	for (int i = 2; i <= 512; i++) {
		client = client_begin(&h);
		client_leave(&client);
		if (i % 64 == 1) { /* events wait for others, and there is not room for all */
			(void)harness_event(&h, SHAI_EVENT_ENDED);
			h.read = h.events = 0;
		}
	}
	EXPECT(harness_compare(&h, true) == worker);
	EXPECT(reused_begin(&h, &client, NULL) == worker);
	close(client.socket);
}

/* The client sees the end by it, since nothing else tells it here. */
static void
a_worker_that_waits_for_long_is_rolled_back(void **state)
{
	struct client client, next;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_first(&h, "alice");
	(void)reused_begin(&h, &client, "alice");
	client_reset(&client, 0);
	client_order(&client, RETURN, 0, NULL, 0);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	EXPECT(client_closed(&client));
	close(client.socket);
	EXPECT(reused_begin(&h, &next, "bob") == worker);
	close(next.socket);
}

/* Connects while nobody may serve: it is not the former worker that does, but the next one. */
static pid_t
serve_next(struct client *client)
{
	client->socket = client_connect(&h);
	harness_seal(&h);
	(void)client_report(client, &client->connected, sizeof(client->connected));
	return harness_event(&h, SHAI_EVENT_ACCEPTED)->worker;
}

/*
 * Its connection is at another number in mode dynamic, and the former number could only get a
 * file whose flags all workers share.
 */
static void
a_worker_of_another_mode_is_replaced(void **state)
{
	struct shai_control_mode mode = {
	    .header = control_header(SHAI_CONTROL_MODE, sizeof(mode)), .mode = SHAI_MODE_DYNAMIC};
	struct shai_control_compare question;
	struct client client;
	pid_t first, second;

	(void)state;
	reused_start(&h, 1024);
	first = reused_first(&h, "alice");
	EXPECT(reused_begin(&h, &client, "alice") == first);
	harness_send(&h, &mode, sizeof(mode), NULL); /* while it has a session */
	harness_fence(&h);
	client_leave(&client);
	second = serve_next(&client);
	EXPECT(second != first);
	assert_int_equal(client.connected.mode, mode.mode);
	client_leave(&client);
	question = harness_comparison(&h);
	EXPECT(question.pid == second);
	mode.mode = SHAI_MODE_SHAI;
	harness_send(&h, &mode, sizeof(mode), NULL); /* while it is compared */
	harness_answer_comparison(&h, &question, true);
	harness_seal(&h);
	first = reused_first(&h, "alice");
	EXPECT(first != second);
	mode.mode = SHAI_MODE_AUDIT;
	harness_send(&h, &mode, sizeof(mode), NULL); /* at the same number */
	harness_fence(&h);
	EXPECT(reused_begin(&h, &client, "alice") == first);
	client_leave(&client);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	mode.mode = SHAI_MODE_DYNAMIC;
	harness_send(&h, &mode, sizeof(mode), NULL); /* while it waits */
	harness_fence(&h);
	EXPECT(serve_next(&client) != first);
	close(client.socket);
}

static void
few_workers_wait(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client client[4];

	(void)state;
	settings.slots = COUNT(client);
	settings.sessions_per_worker = 1024;
	harness_start(&h, SEALS, &settings);
	for (size_t i = 0; i < COUNT(client); i++) {
		harness_seal(&h);
		(void)reused_begin(&h, &client[i], NULL);
	}
	for (size_t i = 0; i < COUNT(client); i++) {
		const struct shai_control_event *event;

		client_leave(&client[i]);
		event = harness_event(&h, SHAI_EVENT_ENDED);
		assert_int_equal(event->flags, i < 2 ? SHAI_EVENT_ROLLED_BACK : 0);
		if (i < 2)
			(void)harness_compare(&h, true);
	}
	while (harness_counts(&h).idle != 2)
		;
}

static void
a_task_ends_while_sealed_workers_wait(void **state)
{
	(void)state;
	reused_start(&h, 1024);
	(void)reused_first(&h, "alice");
	harness_order(&h, SHAI_CONTROL_TERMINATE);
	assert_int_equal(harness_wait(&h), 0);
}

static void
a_worker_that_dies_while_it_waits_is_replaced(void **state)
{
	struct client client;
	pid_t worker;

	(void)state;
	reused_start(&h, 1024);
	worker = reused_first(&h, "alice");
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_int_equal(harness_event(&h, SHAI_EVENT_WORKER)->worker, worker);
	harness_seal(&h);
	EXPECT(reused_begin(&h, &client, "alice") != worker);
	close(client.socket);
}

int
main(void)
{
#define TEST(name) HARNESS_TEST(name, &h)
	const struct CMUnitTest tests[] = {
	    TEST(a_worker_that_is_compared_has_no_session),
	    TEST(a_worker_that_differs_is_replaced),
	    TEST(nothing_of_a_session_stays_open),
	    TEST(a_sample_is_compared),
	    TEST(a_worker_that_waits_for_long_is_rolled_back),
	    TEST(a_worker_of_another_mode_is_replaced),
	    TEST(few_workers_wait),
	    TEST(a_task_ends_while_sealed_workers_wait),
	    TEST(a_worker_that_dies_while_it_waits_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
