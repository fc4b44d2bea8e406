/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a slot of the real supervisor carries: transfers to its session, bytes from it.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static struct harness h;

static void
start(void)
{
	const struct shai_control_settings settings = harness_settings();

	harness_start(&h, SERVES, &settings);
}

static int
stop(void **state)
{
	(void)state;
	harness_stop(&h);
	return 0;
}

static void
passes_transfers_on_and_drops_others(void **state)
{
	struct {
		struct shai_header header;
		struct shai_transfer transfer;
	} message;
	struct shai_transfer transfer = {.query = 5, .conduit = {3, 4}};
	struct client client;

	(void)state;
	start();
	/* Of nobody, of a session without a user, and not valid: dropped. */
	assert_int_equal(send(h.channel, &transfer, 16, 0), 16);
	client = client_begin(&h);
	assert_int_equal(send(h.channel, &transfer, 16, 0), 16);
	harness_fence(&h);
	(void)client_bind(&client, "alice");
	assert_int_equal(send(h.channel, &transfer, 15, 0), 15);
	transfer.query = 6;
	assert_int_equal(send(h.channel, &transfer, 16, 0), 16);
	assert_int_equal(client_report(&client, &message, sizeof(message)).size, 16 + 16);
	assert_int_equal(message.header.type, SHAI_TRANSFER);
	assert_int_equal(message.transfer.query, 6);
	assert_int_equal(message.transfer.conduit[1], 4);
	(void)harness_event(&h, SHAI_EVENT_VIOLATION);
	close(client.socket);
}

/* It looks like the end of the channel, which is not open any more then. */
static void
an_empty_record_does_not_end_the_channel(void **state)
{
	struct shai_transfer transfer = {.query = 5, .conduit = {3}};
	struct client client;
	char record[64];

	(void)state;
	start();
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	assert_int_equal(send(h.channel, &transfer, 0, 0), 0);
	assert_int_equal(send(h.channel, &transfer, 12, 0), 12);
	assert_int_equal(client_report(&client, record, sizeof(record)).size, 16 + 12);
	close(client.socket);
}

/* Writes the channel of slot 0 faster than it can be read, until it is killed. */
static pid_t
write_without_end(void)
{
	struct shai_transfer transfer = {.query = 5, .conduit = {3}};
	struct iovec part = {.iov_base = &transfer, .iov_len = 12};
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

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(passes_transfers_on_and_drops_others),
	    TEST(an_empty_record_does_not_end_the_channel),
	    TEST(ends_sessions_while_their_channel_is_written_without_end),
	    TEST(the_worker_gets_its_slots_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
