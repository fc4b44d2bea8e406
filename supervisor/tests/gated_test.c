/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What sealed workers of the real supervisor read by the gate, and what the supervisor decides
 * on for them. The stand-in for the task has the gate's real code.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "shai_gate.h"

static struct harness h;

struct message {
	struct shai_header header;
	struct shai_transfer transfer;
};

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

static uint32_t
query_of(const struct client *client, uint32_t query)
{
	return shai_first_query(client->connected.nonce) + query;
}

/* Writes a transfer of two numbers that answers a query of the client's session. */
static void
transfer(const struct client *client, uint32_t query, uint32_t first, uint32_t second)
{
	struct shai_transfer record = {
	    .query = query_of(client, query), .conduit = {first, second}};

	assert_int_equal(send(h.channel, &record, 16, 0), 16);
}

/* The worker calls the gate. Returns the result, and what is in the gate's buffer. */
static int
receive(const struct client *client, uint32_t query, struct message *out)
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
	struct message message;

	assert_int_equal(receive(client, query, &message), 16);
	assert_int_equal(message.transfer.query, query_of(client, query));
	assert_int_equal(message.transfer.conduit[0], first);
	assert_int_equal(message.transfer.conduit[1], second);
}

static void
assert_not_received(const struct client *client, uint32_t query, int error)
{
	static const struct message zero;
	struct message message;

	assert_int_equal(receive(client, query, &message), -error);
	assert_memory_equal(&message, &zero, sizeof(zero));
}

/* The monitor is asked about documents, and answers about each with a status. */
static void
answer(uint32_t count, const int32_t *status)
{
	struct {
		struct shai_control_relay head;
		struct shai_open request;
	} question;
	struct {
		struct shai_control_relay head;
		struct shai_opened record;
	} message = {.head = {.header = control_header(SHAI_CONTROL_RELAY, sizeof(message))},
	    .record = {.header = {.version = SHAI_WIRE_VERSION,
			   .type = SHAI_OPENED,
			   .size = sizeof(message.record)},
		.count = count}};

	(void)harness_receive(&h, SHAI_CONTROL_ASK_OPEN, &question, sizeof(question));
	assert_int_equal(question.request.count, count);
	message.head.session = question.head.session;
	memcpy(message.record.status, status, count * sizeof(*status));
	harness_send(&h, &message, sizeof(message), NULL);
}

/* The supervisor passes a transfer like this on. */
static void
expect(const struct client *client, uint32_t query, uint32_t first, uint32_t second)
{
	struct message message;

	assert_int_equal(client_report(client, &message, sizeof(message)).size, 16 + 16);
	assert_int_equal(message.header.type, SHAI_TRANSFER);
	assert_int_equal(message.transfer.query, query_of(client, query));
	assert_int_equal(message.transfer.conduit[0], first);
	assert_int_equal(message.transfer.conduit[1], second);
}

static void
a_worker_reads_what_its_set_has(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = client_begin(&h);
	transfer(&client, 0, 3, 4); /* of a session without a user */
	assert_not_received(&client, 0, EAGAIN);
	(void)client_bind(&client, "alice");
	for (uint32_t query = 0; query < 3000;
	     query += 500) { /* its numbers may rise by any step */
		transfer(&client, query, 3, 0);
		assert_received(&client, query, 3, 0);
	}
	transfer(&client, 7, 3, 4);
	assert_not_received(&client, 8, EAGAIN);
	harness_fence(&h);
	assert_false(client_has_report(&client)); /* the supervisor has read nothing */
	close(client.socket);
}

static void
the_monitor_decides_on_other_documents(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	transfer(&client, 2000, DOCUMENT_OF_BOB, CLASS_TABLE + 5);
	transfer(&client, 2001, 3, 4);
	assert_not_received(&client, 2000, EINPROGRESS);
	answer(2, (int32_t[]){0, EACCES});
	expect(&client, 2000, DOCUMENT_OF_BOB, 0);
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
	transfer(&client, 0, 3, 4);
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
	transfer(&client, 0, 3, 4);
	client_leave(&client);
	(void)harness_compare(&h, true);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	client = client_begin(&h);
	transfer(&client, 0, 3, 4);
	assert_not_received(&client, 0, EAGAIN);
	(void)client_bind(&client, "bob");
	assert_not_received(&client, 0, EAGAIN);
	transfer(&client, 1, 3, 4);
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
	transfer(&client, 0, DOCUMENT_OF_BOB, 3);
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
	transfer(&client, 0, DOCUMENT_OF_BOB, UINT32_MAX);
	assert_received(&client, 0, DOCUMENT_OF_BOB, UINT32_MAX);
	close(client.socket);
}

/* The other end does not wait for a worker that is no more. */
static void
the_channel_of_a_worker_that_ends_is_read(void **state)
{
	struct client client;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	client_order(&client, EXIT, 0, NULL, 0);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	for (uint32_t i = 0; i < 2000; i++)
		transfer(&client, i, 3, 4);
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
	transfer(&client, 5000, 3, 4);
	expect(&client, 5000, 3, 4);
	transfer(&client, 5001, 4, 3);
	expect(&client, 5001, 4, 3);
	client_leave(&client);
	(void)harness_compare(&h, true);
	client = session_of_alice();
	transfer(&client, 0, 3, 4);
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
	transfer(&former, 0, 3, 4);
	transfer(&client, 0, 4, 3);
	expect(&client, 0, 4, 3);
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
		transfer(&client, query, 3, 4);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->reason, "the worker does not read its messages");
	close(client.socket);
}

/* Late answers, of which a session may have left many to come. */
static void
the_channel_of_a_worker_that_waits_is_read(void **state)
{
	struct client client;
	struct message message;

	(void)state;
	start(SHAI_MODE_SHAI);
	client = session_of_alice();
	client_leave(&client);
	(void)harness_compare(&h, true);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	for (uint32_t i = 0; i < 2000; i++)
		transfer(&client, i, 3, 4);
	client = session_of_alice();
	transfer(&client, 0, 3, 4);
	while (receive(&client, 0, &message) == -EAGAIN)
		; /* the gate drops those that are left */
	assert_int_equal(message.transfer.query, query_of(&client, 0));
	close(client.socket);
}

/* Only the gate passes records on. */
static void
a_worker_without_grant_passes_nothing_on(void **state)
{
	struct message message = {
	    .header = {.version = SHAI_WIRE_VERSION, .type = SHAI_TRANSFER, .size = 16 + 12}};
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = session_of_alice();
	client_order(&client, SEND, 0, &message, 16 + 12);
	assert_string_equal(harness_event(&h, SHAI_EVENT_VIOLATION)->reason,
	    "the worker sent a record of a channel that it does not read");
	close(client.socket);
}

/* The monitor has not sealed it, though it had got a grant already. */
static void
a_worker_that_is_not_sealed_passes_nothing_on(void **state)
{
	struct message message = {
	    .header = {.version = SHAI_WIRE_VERSION, .type = SHAI_TRANSFER, .size = 16 + 12}};
	struct client client;

	(void)state;
	harness_start(&h, READS, NULL);
	(void)harness_call(&h, -EOPNOTSUPP);
	client = session_of_alice();
	client_order(&client, SEND, 0, &message, 16 + 12);
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
	    TEST(the_channel_of_a_worker_that_ends_is_read),
	    TEST(records_that_a_worker_lets_lie_are_passed_on),
	    TEST(a_late_answer_is_not_passed_on),
	    TEST(a_worker_that_does_not_read_is_ended),
	    TEST(the_channel_of_a_worker_that_waits_is_read),
	    TEST(a_worker_without_grant_passes_nothing_on),
	    TEST(a_worker_that_is_not_sealed_passes_nothing_on),
	};

	return cmocka_run_group_tests_name("gated", tests, NULL, NULL);
}
