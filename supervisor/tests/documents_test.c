/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Documents that sessions open in the real supervisor.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

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

/* Answers a question about a document: nobody may read it. */
static void
refuse_document(uint64_t session)
{
	struct {
		struct shai_control_relay head;
		struct shai_opened record;
	} answer = {.head = {.header = control_header(SHAI_CONTROL_RELAY, sizeof(answer)),
			.session = session},
	    .record = {.header = {.version = SHAI_WIRE_VERSION,
			   .type = SHAI_OPENED,
			   .size = sizeof(answer.record),
			   .sequence = 12},
		.count = 1,
		.status = {EACCES}}};

	harness_send(&h, &answer, sizeof(answer), NULL);
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
		struct {
			struct shai_control_relay head;
			struct shai_open request;
		} question;

		client_open(&client, others[i]);
		(void)harness_receive(&h, SHAI_CONTROL_ASK_OPEN, &question, sizeof(question));
		assert_int_equal(question.request.conduit[0], others[i]);
		refuse_document(question.head.session);
		assert_int_equal(client_opened(&client, &file), EACCES);
	}
	close(client.socket);
}

/* A worker that asks without end has one question at a time with the monitor. */
static void
asks_the_monitor_one_question_at_a_time(void **state)
{
	struct {
		struct shai_control_relay head;
		struct shai_open request;
	} question;
	struct client client;
	int file;
	char byte;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	client_open(&client, DOCUMENT_OF_BOB);
	client_open(&client, DOCUMENT_PRIVATE);
	(void)harness_receive(&h, SHAI_CONTROL_ASK_OPEN, &question, sizeof(question));
	harness_fence(&h);
	assert_int_equal(recv(h.control, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
	for (int i = 0; i < 2; i++) {
		refuse_document(question.head.session);
		assert_int_equal(client_opened(&client, &file), EACCES);
		if (i == 0)
			(void)harness_receive(
			    &h, SHAI_CONTROL_ASK_OPEN, &question, sizeof(question));
	}
	assert_int_equal(question.request.conduit[0], DOCUMENT_PRIVATE);
	close(client.socket);
}

static void
in_mode_dynamic_the_monitor_decides_on_everything(void **state)
{
	struct shai_transfer transfer = {.conduit = {3}};
	struct shai_control_settings settings = harness_settings();
	struct shai_control_ask_bind question;
	struct shai_control_bind answer = {
	    .header = control_header(SHAI_CONTROL_BIND, sizeof(answer))};
	struct client client;
	struct report report;
	struct shai_bound bound;

	(void)state;
	settings.mode = SHAI_MODE_DYNAMIC;
	harness_start(&h, SERVES, &settings);
	client = client_begin(&h);
	for (int status = EPERM; status >= 0; status--) {
		client_login(&client, "alice", false);
		(void)harness_receive(&h, SHAI_CONTROL_ASK_BIND, &question, sizeof(question));
		assert_string_equal(question.principal, "alice");
		answer.session = question.session;
		answer.sequence = question.sequence;
		answer.status = status;
		harness_send(&h, &answer, sizeof(answer), NULL);
		bound = client_bound(&client, &report);
		assert_int_equal(bound.status, status);
		assert_int_equal(bound.class_count + bound.directory_count + report.descriptors, 0);
	}
	/* A transfer by the channel that nobody checks would come before the second result. */
	transfer.query = shai_first_query(client.connected.nonce);
	assert_int_equal(send(h.channel, &transfer, 12, 0), 12);
	client_settle(&h, &client);
	client_open(&client, 3);
	(void)harness_receive(&h, SHAI_CONTROL_ASK_OPEN, &question, sizeof(question));
	close(client.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(opens_directories_and_documents_of_the_set_only),
	    TEST(asks_the_monitor_about_other_documents),
	    TEST(asks_the_monitor_one_question_at_a_time),
	    TEST(in_mode_dynamic_the_monitor_decides_on_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
