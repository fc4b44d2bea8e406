/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What sealed workers of the real supervisor read by the gate, and what the supervisor decides
 * on for them. The stand-in for the task has the gate's real code.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "documents_asked.h"
#include "shai_gate.h"

static struct harness h;

static void
start(enum shai_mode mode)
{
	struct shai_control_settings settings = harness_settings();

	settings.slots = 1;
	settings.sessions_per_worker = 100;
	settings.mode = mode;
	harness_start(&h, READS, &settings);
	harness_seal(&h);
}

static struct client
session_of_alice(void)
{
	struct client client = client_begin(&h);

	(void)client_bind(&client, "alice");
	return client;
}

/* The worker calls the gate. Returns the result, and what is in the gate's buffer. */
static int
receive(const struct client *client, uint32_t query, struct passed *out)
{
	uint8_t buffer[SHAI_GATE_BUFFER_SIZE];
	uint32_t wanted = query_of(client, query);
	struct report report;

	client_order(client, RECEIVE, 0, &wanted, sizeof(wanted));
	report = client_report(client, buffer, sizeof(buffer));
	assert_int_equal(report.descriptors, RESULT);
	memcpy(out, buffer, sizeof(*out));
	return report.value;
}

static void
assert_received(const struct client *client, uint32_t query, uint32_t first, uint32_t second)
{
	struct passed passed;

	assert_int_equal(receive(client, query, &passed), 16);
	expect_transfer(&passed, client, query, first, second);
}

static void
assert_not_received(const struct client *client, uint32_t query, int error)
{
	static const struct passed zero;
	struct passed passed;

	assert_int_equal(receive(client, query, &passed), -error);
	assert_memory_equal(&passed, &zero, sizeof(zero));
}

static void
a_worker_reads_what_its_set_has(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = client_begin(&h);
	channel_write(&h, &client, 0, 3, 4); /* of a session without a user */
	assert_not_received(&client, 0, EAGAIN);
	(void)client_bind(&client, "alice");
	for (uint32_t query = 0; query < 3000;
	     query += 500) { /* its numbers may rise by any step */
		channel_write(&h, &client, query, 3, 0);
		assert_received(&client, query, 3, 0);
	}
	channel_write(&h, &client, 7, 3, 4);
	assert_not_received(&client, 8, EAGAIN);
	harness_fence(&h);
	assert_false(client_has_report(&client)); /* the supervisor has read nothing */
	close(client.socket);
}

static void
the_monitor_decides_on_other_documents(void **state)
{
	struct question question;
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	channel_write(&h, &client, 2000, DOCUMENT_OF_BOB, CLASS_TABLE + 5);
	channel_write(&h, &client, 2001, 3, 4);
	assert_not_received(&client, 2000, EINPROGRESS);
	question = question_about(&h, 2);
	question_answer(&h, &question, (int32_t[]){0, EACCES}, NULL);
	client_passed(&client, 2000, DOCUMENT_OF_BOB, 0);
	assert_received(&client, 2001, 3, 4);
	close(client.socket);
}

static void
malformed_records_are_violations(void **state)
{
	const struct shai_control_event *event;
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send(h.channel, "fifteen bytes..", 15, 0), 15);
		assert_not_received(&client, 0, EINPROGRESS);
	}
	event = harness_event(&h, SHAI_EVENT_VIOLATION);
	assert_non_null(strstr(event->reason, "the session's channel carried a transfer"));
	channel_write(&h, &client, 0, 3, 4);
	assert_received(&client, 0, 3, 4);
	close(client.socket);
}

/* Neither records nor the grant. */
static void
nothing_is_left_for_the_next_session(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	channel_write(&h, &client, 0, 3, 4);
	client_leave(&client);
	(void)harness_compare(&h, true);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	client = client_begin(&h);
	channel_write(&h, &client, 0, 3, 4);
	assert_not_received(&client, 0, EAGAIN);
	(void)client_bind(&client, "bob");
	assert_not_received(&client, 0, EAGAIN);
	channel_write(&h, &client, 1, 3, 4);
	assert_received(&client, 1, 3, 4);
	close(client.socket);
}

static void
a_set_that_grows_is_in_the_grant(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	harness_set(&h, "alice", 2, SHAI_SET_LEAVES | SHAI_SET_LIVE);
	harness_fence(&h);
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	assert_received(&client, 0, DOCUMENT_OF_BOB, 3);
	close(client.socket);
}

static void
mode_audit_stops_no_number(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_AUDIT);
	client = session_of_alice();
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, UINT32_MAX);
	assert_received(&client, 0, DOCUMENT_OF_BOB, UINT32_MAX);
	close(client.socket);
}

/* There the monitor decides on everything, and another channel is in use. */
static void
in_mode_dynamic_nothing_passes(void **state)
{
	struct shai_control_ask_bind question;
	struct client client;
	struct report report;

	(void)state;
	start(SHAI_MODE_DYNAMIC);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	question = harness_login(&h);
	harness_decide(&h, &question, 0);
	assert_int_equal(client_bound(&client, &report).status, 0);
	channel_write(&h, &client, 0, 3, 4);
	assert_not_received(&client, 0, EAGAIN);
	close(client.socket);
}

/* At once: the other end does not wait for a worker that is no more. */
static void
the_channel_of_a_worker_that_ends_is_read(void **state)
{
	struct client client;
	int unread;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	client_order(&client, EXIT, 0, NULL, 0);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	channel_write(&h, &client, 0, 3, 4);
	for (int i = 0; i < 2; i++) /* in the turn of the first one, or before */
		harness_fence(&h);
	EXPECT(ioctl(h.channel, SIOCOUTQ, &unread) == 0);
	assert_int_equal(unread, 0);
	close(client.socket);
}

/* As long as the session lives; then workers read them again. */
static void
records_that_a_worker_lets_lie_are_passed_on(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	channel_write(&h, &client, 5000, 3, 4);
	client_passed(&client, 5000, 3, 4);
	channel_write(&h, &client, 5001, 4, 3);
	client_passed(&client, 5001, 4, 3);
	client_leave(&client);
	(void)harness_compare(&h, true);
	client = session_of_alice();
	channel_write(&h, &client, 0, 3, 4);
	assert_received(&client, 0, 3, 4);
	close(client.socket);
}

/* It has come when the channel was empty already, and the next session asks for nothing yet. */
static void
a_late_answer_is_not_passed_on(void **state)
{
	struct client former, client;

	(void)state;
	start(SHAI_MODE_SHAI);
	former = session_of_alice();
	client_leave(&former);
	(void)harness_compare(&h, true);
	client = session_of_alice();
	channel_write(&h, &former, 0, 3, 4);
	channel_write(&h, &client, 0, 4, 3);
	client_passed(&client, 0, 4, 3);
	close(client.socket);
}

/* Else a late answer could by chance be one to the next session. */
static void
sessions_of_a_slot_have_numbers_far_apart(void **state)
{
	const uint32_t apart = UINT32_C(1) << 28;
	struct client client;
	uint32_t former, next;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	for (int i = 0; i < 40; i++) {
		former = query_of(&client, 0);
		client_leave(&client);
		if (i == 0)
			(void)harness_compare(&h, true);
		if (i % 2 == 0) { /* one without a user asks nothing, and gets no answer */
			client = client_begin(&h);
			client_leave(&client);
		}
		client = session_of_alice();
		next = query_of(&client, 0);
		assert_true(next - former >= apart && former - next >= apart);
	}
	close(client.socket);
}

/* The other end of its channel does not wait for ever. */
static void
a_worker_that_does_not_read_is_ended(void **state)
{
	const struct shai_control_event *event;
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	event = harness_event(&h, SHAI_EVENT_BOUND);
	assert_int_equal(kill(event->worker, SIGSTOP), 0);
	for (uint32_t query = 0; query < 2000; query++)
		channel_write(&h, &client, query, 3, 4);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->reason, "the worker does not read its messages");
	close(client.socket);
}

/* Late answers, of which a session may have left many to come. */
static void
the_channel_of_a_worker_that_waits_is_read(void **state)
{
	struct client client;
	struct passed passed;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	client_leave(&client);
	(void)harness_compare(&h, true);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	for (uint32_t i = 0; i < 2000; i++)
		channel_write(&h, &client, i, 3, 4);
	client = session_of_alice();
	channel_write(&h, &client, 0, 3, 4);
	while (receive(&client, 0, &passed) == -EAGAIN)
		; /* the gate drops those that are left */
	assert_int_equal(passed.transfer.query, query_of(&client, 0));
	close(client.socket);
}

/* Only the gate passes records on. */
static void
a_worker_without_grant_passes_nothing_on(void **state)
{
	struct passed passed = {
	    .header = {.version = SHAI_WIRE_VERSION, .type = SHAI_TRANSFER, .size = 16 + 12}};
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = session_of_alice();
	client_order(&client, SEND, 0, &passed, 16 + 12);
	assert_string_equal(harness_event(&h, SHAI_EVENT_VIOLATION)->reason,
	    "the worker sent a record of a channel that it does not read");
	close(client.socket);
}

/* The monitor has not sealed it, though it had got a grant already. */
static void
a_worker_that_is_not_sealed_passes_nothing_on(void **state)
{
	struct passed passed = {
	    .header = {.version = SHAI_WIRE_VERSION, .type = SHAI_TRANSFER, .size = 16 + 12}};
	struct client client;

	(void)state;
	harness_start(&h, READS, NULL);
	(void)harness_call(&h, -EOPNOTSUPP);
	client = session_of_alice();
	client_order(&client, SEND, 0, &passed, 16 + 12);
	assert_string_equal(harness_event(&h, SHAI_EVENT_VIOLATION)->reason,
	    "the worker sent a record of a channel that it does not read");
	close(client.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_worker_reads_what_its_set_has),
	    TEST(the_monitor_decides_on_other_documents),
	    TEST(malformed_records_are_violations),
	    TEST(nothing_is_left_for_the_next_session),
	    TEST(a_set_that_grows_is_in_the_grant),
	    TEST(mode_audit_stops_no_number),
	    TEST(in_mode_dynamic_nothing_passes),
	    TEST(the_channel_of_a_worker_that_ends_is_read),
	    TEST(records_that_a_worker_lets_lie_are_passed_on),
	    TEST(a_late_answer_is_not_passed_on),
	    TEST(sessions_of_a_slot_have_numbers_far_apart),
	    TEST(a_worker_that_does_not_read_is_ended),
	    TEST(the_channel_of_a_worker_that_waits_is_read),
	    TEST(a_worker_without_grant_passes_nothing_on),
	    TEST(a_worker_that_is_not_sealed_passes_nothing_on),
	};

	return cmocka_run_group_tests_name("gated", tests, NULL, NULL);
}
