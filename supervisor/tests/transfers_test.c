/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a slot of the real supervisor carries: transfers to its session, bytes from it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "documents_asked.h"

static struct harness h;

/* The only slot is the one whose ends the test has. */
static void
start(void)
{
	struct shai_control_settings settings = harness_settings();

	settings.slots = 1;
	harness_start(&h, SERVES, &settings);
}

static struct client
session_of_alice(void)
{
	struct client client;

	start();
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	return client;
}

static void
passes_transfers_on_and_drops_others(void **state)
{
	struct client client;

	(void)state;
	start();
	client = client_begin(&h);
	channel_write(&h, &client, 0, 3, 4); /* of a session without a user */
	harness_fence(&h);
	(void)client_bind(&client, "alice");
	assert_int_equal(send(h.channel, "fifteen bytes..", 15, 0), 15);
	channel_write(&h, &client, 6, 3, 4);
	client_passed(&client, 6, 3, 4);
	(void)harness_event(&h, SHAI_EVENT_VIOLATION);
	close(client.socket);
}

/* Its letters are four in a number: of a query, or of a document. */
static void
passes_on_no_text(void **state)
{
	static const char text[] = "a document of another user, in multiples of 4 by";
	struct client client;

	(void)state;
	client = session_of_alice();
	assert_int_equal(send(h.channel, text, 48, 0), 48); /* has something in reserved */
	channel_write(&h, &client, 2000, 3, 4);
	channel_write(&h, &client, UINT32_MAX, 3, 4);
	channel_write(&h, &client, 1, 0x74786574, 3);
	question_refuse(&h, 0x74786574);
	client_passed(&client, 1, 0, 3);
	close(client.socket);
}

/* The monitor decides, and records, what the session's set does not have. */
static void
asks_the_monitor_about_documents_outside_of_the_set(void **state)
{
	struct question question;
	struct client client;

	(void)state;
	client = session_of_alice();
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, CLASS_TABLE + 5);
	channel_write(&h, &client, 1, 3, 4);
	question = question_about(&h, 2);
	assert_int_equal(question.asked.conduit[0], DOCUMENT_OF_BOB);
	assert_int_equal(question.asked.conduit[1], CLASS_TABLE + 5);
	question_answer(&h, &question, (int32_t[]){0, EACCES}, NULL);
	client_passed(&client, 0, DOCUMENT_OF_BOB, 0);
	client_passed(&client, 1, 3, 4);
	close(client.socket);
}

/* A question of the worker and one about a transfer: each gets its own answer. */
static void
asks_one_question_at_a_time(void **state)
{
	struct question question;
	struct client client;
	int file;

	(void)state;
	client = session_of_alice();
	client_open(&client, DOCUMENT_OF_BOB);
	question = question_about(&h, 1);
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	harness_fence(&h);
	question_answer(&h, &question, (int32_t[]){EACCES}, NULL);
	assert_int_equal(client_opened(&client, &file), EACCES);
	question_refuse(&h, DOCUMENT_OF_BOB);
	client_passed(&client, 0, 0, 3);
	client_open(&client, DOCUMENT_OF_BOB);
	question_refuse(&h, DOCUMENT_OF_BOB);
	assert_int_equal(client_opened(&client, &file), EACCES);
	close(client.socket);
}

/* What waits for an answer when a session ends does not reach the next one. */
static void
a_transfer_that_waits_ends_with_its_session(void **state)
{
	struct question question;
	struct client client;

	(void)state;
	client = session_of_alice();
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	question = question_about(&h, 1);
	channel_write(&h, &client, 1, DOCUMENT_OF_BOB, 3);
	close(client.socket);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	channel_write(&h, &client, 2, DOCUMENT_OF_BOB, 3);
	harness_fence(&h);
	question_answer(&h, &question, (int32_t[]){0}, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	channel_write(&h, &client, 0, 4, 3);
	client_passed(&client, 0, 4, 3);
	close(client.socket);
}

/* The channel's question comes first, and takes its turn; the worker's has to wait for it. */
static void
a_message_in_the_turn_of_a_question_waits(void **state)
{
	struct client client;
	int file;

	(void)state;
	client = session_of_alice();
	harness_fence(&h); /* it has done with the worker's socket: the channel will be first */
	harness_stand_still(&h);
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	client_open(&client, 3);
	client_finish_orders(&client);
	harness_go_on(&h);
	question_refuse(&h, DOCUMENT_OF_BOB);
	client_passed(&client, 0, 0, 3);
	assert_int_equal(client_opened(&client, &file), 0);
	close(client.socket);
}

/* The worker has reset its session, and ends: the reason and its counters are the worker's. */
static void
ends_served(const struct client *client)
{
	const struct shai_control_event *ended;

	client_reset(client, 5);
	client_order(client, EXIT, 0, NULL, 0);
	assert_true(client_closed(client));
	harness_go_on(&h);
	ended = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(ended->reason, "");
	assert_int_equal(ended->counters[0], 5);
	close(client->socket);
}

static void
a_reset_counts_while_a_question_is_open(void **state)
{
	struct client client;

	(void)state;
	client = session_of_alice();
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	(void)question_about(&h, 1);
	ends_served(&client);
}

/* Its worker has gone when the transfer is passed on. What it had said is read all the same. */
static void
a_reset_counts_before_a_transfer_that_nobody_reads(void **state)
{
	struct client client;

	(void)state;
	client = session_of_alice();
	harness_fence(&h); /* it has done with the worker's socket: the channel will be first */
	harness_stand_still(&h);
	channel_write(&h, &client, 0, 4, 3);
	ends_served(&client);
}

/* The other end of a channel does not have to wait for the slot's next session. */
static void
reads_the_channel_of_a_session_that_ended_with_a_question(void **state)
{
	struct client client;

	(void)state;
	client = session_of_alice();
	channel_write(&h, &client, 0, DOCUMENT_OF_BOB, 3);
	(void)question_about(&h, 1);
	close(client.socket);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	/* More than a channel holds: sending blocks if nobody reads it. */
	for (uint32_t i = 0; i < 2000; i++)
		channel_write(&h, &client, i, 3, 4);
}

/* It looks like the end of the channel, which is not open any more then. */
static void
an_empty_record_does_not_end_the_channel(void **state)
{
	struct client client;

	(void)state;
	client = session_of_alice();
	assert_int_equal(send(h.channel, "", 0, 0), 0);
	channel_write(&h, &client, 0, 3, 4);
	client_passed(&client, 0, 3, 4);
	close(client.socket);
}

/* It computes, say. A hundred transfers wait for it; without end they would use up memory. */
static void
ends_the_session_of_a_worker_that_does_not_read(void **state)
{
	const struct shai_control_event *event;
	struct client client;
	uint32_t query = 0;

	(void)state;
	client = session_of_alice();
	event = harness_event(&h, SHAI_EVENT_BOUND);
	assert_int_equal(kill(event->worker, SIGSTOP), 0);
	for (; query < 100; query++)
		channel_write(&h, &client, query, 3, 4);
	harness_fence(&h);
	assert_int_equal(kill(event->worker, SIGCONT), 0);
	for (uint32_t i = 0; i < query; i++)
		client_passed(&client, i, 3, 4);
	assert_int_equal(kill(event->worker, SIGSTOP), 0);
	for (; query < 2000; query++)
		channel_write(&h, &client, query, 3, 4);
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->reason, "the worker does not read its messages");
	assert_int_equal(event->flags, SHAI_EVENT_DECIDED);
	close(client.socket);
}

/* Writes the channel of slot 0 faster than it can be read, until it is killed. */
static pid_t
write_without_end(void)
{
	struct shai_transfer record = {.query = 5, .conduit = {3}};
	struct iovec part = {.iov_base = &record, .iov_len = 12};
	struct mmsghdr messages[256] = {0};
	pid_t writer = fork();

	if (writer != 0)
		return writer;
	(void)close(h.control);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < COUNT(messages); i++)
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
	for (;;)
		(void)sendmmsg(h.channel, messages, COUNT(messages), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
ends_sessions_while_their_channel_is_written_without_end(void **state)
{
	pid_t writers[2];
	struct client client;

	(void)state;
	start();
	for (size_t i = 0; i < COUNT(writers); i++)
		writers[i] = write_without_end();
	for (int i = 0; i < 4; i++) {
		client = client_begin(&h);
		client_login(&client, "alice", false);
		(void)harness_event(&h, SHAI_EVENT_BOUND);
		close(client.socket); /* unless the transfers have ended it */
		(void)harness_event(&h, SHAI_EVENT_ENDED);
	}
	for (size_t i = 0; i < COUNT(writers); i++) {
		assert_int_equal(kill(writers[i], SIGKILL), 0);
		assert_int_equal(waitpid(writers[i], NULL, 0), writers[i]);
	}
}

static void
the_worker_gets_its_slots_pipe(void **state)
{
	struct client client;
	char byte = 0;

	(void)state;
	start();
	client = client_begin(&h);
	assert_int_equal(client.connected.slot, 0);
	client_order(&client, WRITE, SHAI_FD_PIPE, "q", 1);
	assert_int_equal(client_report(&client, &byte, 0).value, 1);
	assert_int_equal(read(h.pipe, &byte, 1), 1);
	assert_int_equal(byte, 'q');
	close(client.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(passes_transfers_on_and_drops_others),
	    TEST(passes_on_no_text),
	    TEST(asks_the_monitor_about_documents_outside_of_the_set),
	    TEST(asks_one_question_at_a_time),
	    TEST(a_transfer_that_waits_ends_with_its_session),
	    TEST(a_message_in_the_turn_of_a_question_waits),
	    TEST(a_reset_counts_while_a_question_is_open),
	    TEST(a_reset_counts_before_a_transfer_that_nobody_reads),
	    TEST(reads_the_channel_of_a_session_that_ended_with_a_question),
	    TEST(an_empty_record_does_not_end_the_channel),
	    TEST(ends_the_session_of_a_worker_that_does_not_read),
	    TEST(ends_sessions_while_their_channel_is_written_without_end),
	    TEST(the_worker_gets_its_slots_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
