/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Documents that sessions open in the real supervisor.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "documents_asked.h"

static struct harness h;

static void
opens_directories_and_documents_of_the_set_only(void **state)
{
	struct client client;
	struct report bound, report;
	char text[64];
	int file;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	bound = client_bind(&client, "alice");
	assert_int_equal(bound.descriptors, 1); /* its class' directory */
	client_order(&client, READ, bound.value, "0/3", sizeof("0/3"));
	report = client_report(&client, text, sizeof(text));
	assert_int_equal(report.value, strlen("document 3\n"));
	client_order(&client, READ, bound.value, "../2/0/7", sizeof("../2/0/7"));
	assert_int_equal(client_report(&client, text, sizeof(text)).error, ENOENT);
	client_open(&client, 3);
	assert_int_equal(client_opened(&client, &file), 0);
	client_order(&client, READ, file, "", 1);
	assert_int_equal(client_report(&client, text, sizeof(text)).value, strlen("document 3\n"));
	close(client.socket);
}

/* What it opens is counted, each document once; what the monitor opens is not its. */
static void
counts_the_documents_that_it_opens(void **state)
{
	struct client client;
	int file;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	for (uint32_t i = 1; i <= 3; i++) {
		client_open(&client, i);
		assert_int_equal(client_opened(&client, &file), 0);
	}
	client_open(&client, DOCUMENT_OF_BOB);
	question_refuse(&h, DOCUMENT_OF_BOB);
	assert_int_equal(client_opened(&client, &file), EACCES);
	while (harness_counts(&h).opens != 3)
		;
	client_reset(&client, 0);
	assert_true(client_closed(&client));
	harness_fence(&h);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	client_open(&client, 1);
	assert_int_equal(client_opened(&client, &file), 0);
	while (harness_counts(&h).opens != 4) /* it goes on counting with the next session */
		;
	close(client.socket);
}

/* Documents that the monitor has to decide on, and those that it has opened. */
static void
asks_the_monitor_about_other_documents(void **state)
{
	static const uint32_t others[] = {DOCUMENT_OF_BOB, DOCUMENT_PRIVATE, CLASS_TABLE + 5, 0};
	struct client client;
	int file;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	for (size_t i = 0; i < COUNT(others); i++) {
		client_open(&client, others[i]);
		question_refuse(&h, others[i]);
		assert_int_equal(client_opened(&client, &file), EACCES);
	}
	close(client.socket);
}

/* A write is whole when the monitor gets it, and its answer when the worker does. */
static void
a_write_goes_to_the_monitor(void **state)
{
	static struct {
		struct shai_write head;
		uint8_t content[SHAI_CONTENT_MAX];
	} request;
	static struct {
		struct shai_control_relay head;
		uint8_t record[sizeof(request)];
	} question;
	struct {
		struct shai_control_relay head;
		struct shai_written record;
	} answer = {.head = {.header = control_header(SHAI_CONTROL_RELAY, sizeof(answer))},
	    .record = {.header = {.version = SHAI_WIRE_VERSION,
			   .type = SHAI_WRITTEN,
			   .size = sizeof(answer.record),
			   .sequence = 12},
		.status = EACCES,
		.reason = "no"}};
	struct shai_written written;
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	request.head = (struct shai_write){.header = {.version = SHAI_WIRE_VERSION,
					       .type = SHAI_WRITE,
					       .size = sizeof(request),
					       .sequence = 12},
	    .flags = SHAI_WRITE_REPLACE,
	    .size = SHAI_CONTENT_MAX,
	    .conduit = "/log"};
	memset(request.content, 'x', sizeof(request.content));
	client_order(&client, SEND, 0, &request, sizeof(request));
	assert_int_equal(harness_receive(&h, SHAI_CONTROL_ASK_RECORD, &question, sizeof(question)),
	    sizeof(question));
	assert_memory_equal(question.record, &request, sizeof(request));
	answer.head.session = question.head.session;
	harness_send(&h, &answer, sizeof(answer), NULL);
	assert_int_equal(client_report(&client, &written, sizeof(written)).size, sizeof(written));
	assert_memory_equal(&written, &answer.record, sizeof(written));
	close(client.socket);
}

/* A worker that asks without end has one question at a time with the monitor. */
static void
asks_the_monitor_one_question_at_a_time(void **state)
{
	struct question question;
	struct client client;
	int file;
	char byte;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	client_open(&client, DOCUMENT_OF_BOB);
	client_open(&client, DOCUMENT_PRIVATE);
	question = question_about(&h, 1);
	harness_fence(&h);
	assert_int_equal(recv(h.control, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
	question_answer(&h, &question, (int32_t[]){EACCES}, NULL);
	assert_int_equal(client_opened(&client, &file), EACCES);
	question_refuse(&h, DOCUMENT_PRIVATE);
	assert_int_equal(client_opened(&client, &file), EACCES);
	close(client.socket);
}

/* Expects that a worker learns of its set: the directories of both classes. */
static int
client_grown(const struct client *client)
{
	struct {
		struct shai_grown head;
		uint32_t classes[2];
	} record;
	struct report report = client_report(client, &record, sizeof(record));

	assert_int_equal(report.size, sizeof(record));
	assert_int_equal(record.head.header.type, SHAI_GROWN);
	assert_int_equal(record.head.header.sequence, 0);
	assert_int_equal(record.head.class_count, 2);
	assert_int_equal(record.head.directory_count, 2);
	assert_int_equal(report.descriptors, 2);
	assert_int_equal(record.classes[1], 2);
	return report.value;
}

/* However often the set grows, a worker that does not ask gets no message that it has to read. */
static void
a_set_that_grows_reaches_live_sessions(void **state)
{
	struct client client;
	int file, directory;
	char text[64];

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	harness_set(&h, "alice", 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES);
	harness_fence(&h);
	client_open(&client, DOCUMENT_OF_BOB);
	question_refuse(&h, DOCUMENT_OF_BOB); /* the set is for later sessions */
	assert_int_equal(client_opened(&client, &file), EACCES);
	harness_set(&h, "bob", 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE);
	harness_fence(&h);
	client_open(&client, DOCUMENT_OF_BOB);
	question_refuse(&h, DOCUMENT_OF_BOB); /* the set is another's */
	assert_int_equal(client_opened(&client, &file), EACCES);
	for (int i = 0; i < 500; i++)
		harness_set(&h, "alice", 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE);
	harness_fence(&h);
	client_open(&client, DOCUMENT_OF_BOB);
	directory = client_grown(&client) + 1;
	assert_int_equal(client_opened(&client, &file), 0);
	client_order(&client, READ, directory, "0/7", sizeof("0/7"));
	assert_int_equal(client_report(&client, text, sizeof(text)).value, strlen("document 7\n"));
	client_open(&client, DOCUMENT_OF_BOB);
	assert_int_equal(client_opened(&client, &file), 0); /* it knows its set */
	close(client.socket);
}

/* A worker learns of its set with the monitor's answers, too. */
static void
a_set_that_grows_comes_before_the_monitors_answer(void **state)
{
	struct client client;
	int file;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	harness_set(&h, "alice", 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE);
	harness_fence(&h);
	client_open(&client, DOCUMENT_PRIVATE);
	question_refuse(&h, DOCUMENT_PRIVATE);
	(void)client_grown(&client);
	assert_int_equal(client_opened(&client, &file), EACCES);
	close(client.socket);
}

/* In mode audit the monitor records every access that the analysis has not foreseen. */
static void
in_mode_audit_no_set_grows(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client client;
	int file;

	(void)state;
	settings.mode = SHAI_MODE_AUDIT;
	harness_start(&h, SERVES, &settings);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	harness_set(&h, "alice", 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE);
	harness_fence(&h);
	client_open(&client, DOCUMENT_OF_BOB);
	question_refuse(&h, DOCUMENT_OF_BOB);
	assert_int_equal(client_opened(&client, &file), EACCES);
	close(client.socket);
}

static void
the_monitor_decides_on_everything(enum shai_mode mode)
{
	struct shai_transfer transfer = {.conduit = {3}};
	struct shai_control_settings settings = harness_settings();
	struct shai_control_ask_bind question;
	struct client client;
	struct report report;
	struct shai_bound bound;

	settings.mode = mode;
	settings.slots = 1; /* whose channel the test writes */
	harness_start(&h, SERVES, &settings);
	client = client_begin(&h);
	for (int status = EPERM; status >= 0; status--) {
		client_login(&client, "alice", false);
		question = harness_login(&h);
		assert_string_equal(question.principal, "alice");
		harness_decide(&h, &question, status);
		bound = client_bound(&client, &report);
		assert_int_equal(bound.status, status);
		assert_int_equal(bound.class_count + bound.directory_count + report.descriptors, 0);
	}
	/* A transfer by the channel that nobody checks would come before the second result. */
	transfer.query = shai_first_query(client.connected.nonce);
	assert_int_equal(send(h.channel, &transfer, 12, 0), 12);
	client_settle(&h, &client);
	client_open(&client, 3);
	(void)question_about(&h, 1);
	close(client.socket);
}

static void
in_mode_dynamic_the_monitor_decides_on_everything(void **state)
{
	(void)state;
	the_monitor_decides_on_everything(SHAI_MODE_DYNAMIC);
}

static void
in_mode_dynamic_lazy_it_does_so_too(void **state)
{
	(void)state;
	the_monitor_decides_on_everything(SHAI_MODE_DYNAMIC_LAZY);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(opens_directories_and_documents_of_the_set_only),
	    TEST(counts_the_documents_that_it_opens),
	    TEST(asks_the_monitor_about_other_documents),
	    TEST(a_write_goes_to_the_monitor),
	    TEST(asks_the_monitor_one_question_at_a_time),
	    TEST(a_set_that_grows_reaches_live_sessions),
	    TEST(a_set_that_grows_comes_before_the_monitors_answer),
	    TEST(in_mode_audit_no_set_grows),
	    TEST(in_mode_dynamic_the_monitor_decides_on_everything),
	    TEST(in_mode_dynamic_lazy_it_does_so_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
