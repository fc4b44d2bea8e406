/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Logins in the real supervisor while what they depend on changes. The test is the
 * key-value store, too.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"

static struct harness h;

/* Starts a supervisor whose store is the returned listening socket. */
static int
start_with_store(void)
{
	struct shai_control_store store = {
	    .header = control_header(SHAI_CONTROL_STORE, sizeof(store)),
	    .auth = "auth-1",
	    .reset = "reset-1"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	harness_start(&h, SERVES, NULL);
	(void)snprintf(store.path, sizeof(store.path), "%s/store", h.directory);
	memcpy(address.sun_path, store.path, sizeof(address.sun_path));
	EXPECT(bind(listening, (struct sockaddr *)&address, sizeof(address)) == 0);
	EXPECT(listen(listening, 4) == 0);
	harness_send(&h, &store, sizeof(store), NULL);
	return listening;
}

static void
set_with_store(const char *principal)
{
	struct shai_control_set set = {.header = control_header(SHAI_CONTROL_SET, sizeof(set)),
	    .flags = SHAI_SET_ANALYZED | SHAI_SET_LEAVES,
	    .kv_password = "secret"};

	(void)snprintf(set.principal, sizeof(set.principal), "%s", principal);
	(void)snprintf(set.instance, sizeof(set.instance), "worker(%s)", principal);
	(void)snprintf(set.kv_user, sizeof(set.kv_user), "%s", principal);
	harness_send(&h, &set, sizeof(set), NULL);
}

/* Waits for a command that holds a word. */
static void
expect_command(int connection, const char *word)
{
	char command[256] = "";

	EXPECT(read(connection, command, sizeof(command) - 1) > 0);
	EXPECT(strstr(command, word) != NULL);
}

/* The store has authenticated a user whom the monitor then refuses: nobody else gets that. */
static void
another_user_gets_no_connection_of_a_refused_one(void **state)
{
	struct shai_control_forget forget = {
	    .header = control_header(SHAI_CONTROL_FORGET, sizeof(forget)), .principal = "alice"};
	struct shai_control_ask_bind question;
	struct client client;
	struct report report;
	int store = start_with_store(), connection;
	char path[64];

	(void)state;
	set_with_store("alice");
	set_with_store("bob");
	client = client_begin(&h);
	client_login(&client, "alice", false);
	connection = accept4(store, NULL, NULL, SOCK_CLOEXEC);
	expect_command(connection, "alice");
	harness_send(&h, &forget, sizeof(forget), NULL);
	question = harness_login(&h);
	EXPECT(write(connection, "+OK\r\n", 5) == 5);
	harness_decide(&h, &question, EACCES);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	client_login(&client, "bob", false);
	assert_true(client_closed(&client));
	assert_non_null(strstr(harness_event(&h, SHAI_EVENT_ENDED)->reason, "another user's"));
	close(client.socket);

	/* bob has it when it is his. */
	close(connection);
	harness_fence(&h);
	client = client_begin(&h);
	client_login(&client, "bob", false);
	connection = accept4(store, NULL, NULL, SOCK_CLOEXEC);
	expect_command(connection, "bob");
	EXPECT(write(connection, "+OK\r\n", 5) == 5);
	assert_int_equal(client_bound(&client, &report).flags, SHAI_BOUND_KEYVALUE);
	close(client.socket);
	close(connection);
	close(store);
	(void)snprintf(path, sizeof(path), "%s/store", h.directory);
	(void)unlink(path);
}

/* What was confirmed is in force for logins that have been verified, too. */
static void
a_key_that_is_removed_binds_no_waiting_login(void **state)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 2};
	struct shai_control_key key = {
	    .header = control_header(SHAI_CONTROL_KEY, sizeof(key)), .principal = "alice"};
	struct client client;
	struct report report;
	uint8_t secret[64];

	(void)state;
	harness_start_without_credits(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	client_finish_orders(&client);
	harness_send(&h, &key, sizeof(key), NULL);
	client_key("alice", key.key, secret);
	key.present = 1;
	harness_send(&h, &key, sizeof(key), NULL);
	harness_send(&h, &credits, sizeof(credits), NULL);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	assert_non_null(strstr(harness_event(&h, SHAI_EVENT_REFUSED)->reason, "key"));
	(void)client_bind(&client, "alice");
	close(client.socket);
}

/* The monitor has decided on one set, and not on what another one permits. */
static void
a_set_that_changes_is_decided_on_again(void **state)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 1};
	struct shai_control_ask_bind question;
	struct client client;
	struct report report;

	(void)state;
	harness_start_without_credits(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false); /* decided ahead; waits for the credit */
	client_finish_orders(&client);
	harness_set(&h, "alice", 1, SHAI_SET_ANALYZED);
	question = harness_login(&h);
	harness_decide(&h, &question, 0); /* decided by the answer; waits again */
	harness_set(&h, "alice", 1, SHAI_SET_ANALYZED);
	harness_send(&h, &credits, sizeof(credits), NULL);
	question = harness_login(&h);
	harness_decide(&h, &question, EACCES);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	close(client.socket);
}

static void
an_answer_needs_no_set_of_its_own(void **state)
{
	struct shai_control_ask_bind question[2];
	struct client client[2];
	struct report report;

	(void)state;
	harness_start(&h, SERVES, NULL);
	harness_set(&h, "alice", 1, SHAI_SET_ANALYZED);
	for (int i = 0; i < 2; i++) {
		client[i] = client_begin(&h);
		client_login(&client[i], "alice", false);
		question[i] = harness_login(&h);
	}
	harness_decide(&h, &question[0], 0);
	assert_int_equal(client_bound(&client[0], &report).class_count, 1);
	harness_set(&h, "alice", 2, SHAI_SET_ANALYZED);
	harness_decide(&h, &question[1], 0);
	assert_int_equal(client_bound(&client[1], &report).class_count, 2);
	for (int i = 0; i < 2; i++)
		close(client[i].socket);
}

static void
an_answer_binds_with_no_expired_set(void **state)
{
	struct shai_control_set expired = {
	    .header = control_header(SHAI_CONTROL_SET, sizeof(expired)),
	    .principal = "alice",
	    .instance = "worker(alice)",
	    .expires = 1};
	struct shai_control_ask_bind question;
	struct client client;
	struct report report;

	(void)state;
	harness_start(&h, SERVES, NULL);
	harness_send(&h, &expired, sizeof(expired), NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	question = harness_login(&h);
	harness_decide(&h, &question, 0);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	harness_set(&h, "alice", 1, SHAI_SET_ANALYZED);
	client_login(&client, "alice", false);
	question = harness_login(&h);
	harness_decide(&h, &question, 0);
	assert_int_equal(client_bound(&client, &report).class_count, 1);
	close(client.socket);
}

static void
a_set_that_leaves_nothing_to_decide_binds_a_waiting_login(void **state)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 1};
	struct client client;
	struct report report;

	(void)state;
	harness_start_without_credits(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	client_finish_orders(&client);
	harness_set(&h, "alice", 1, SHAI_SET_ANALYZED | SHAI_SET_LEAVES);
	harness_send(&h, &credits, sizeof(credits), NULL);
	assert_int_equal(client_bound(&client, &report).class_count, 1);
	close(client.socket);
}

/* Puts a network of 127.0.0.0/8 into a region. */
static void
move(uint8_t network, uint32_t bits)
{
	struct {
		struct shai_control_regions head;
		struct shai_control_region region;
	} record = {.head = {.header = control_header(SHAI_CONTROL_REGIONS, sizeof(record)),
			.first = 1,
			.last = 1,
			.count = 1},
	    .region = {.address = {[10] = 0xff, 0xff, 127, network}, .bits = bits, .region = "us"}};

	harness_send(&h, &record, sizeof(record), NULL);
	harness_fence(&h);
}

/* The worker knows the former region, and who logs in would get its set. */
static void
a_connection_whose_address_moves_is_ended(void **state)
{
	struct client bound, unbound;
	int file;

	(void)state;
	harness_start(&h, SERVES, NULL);
	bound = client_begin(&h);
	(void)client_bind(&bound, "alice");
	unbound = client_begin(&h);
	move(9, 96 + 16);
	assert_false(client_has_report(&unbound));
	move(0, 96 + 8);
	assert_true(client_closed(&unbound));
	(void)harness_event(&h, SHAI_EVENT_REFUSED);
	close(unbound.socket);
	client_open(&bound, 3); /* the monitor decides on a session with a user */
	assert_int_equal(client_opened(&bound, &file), 0);
	close(bound.socket);
	unbound = client_begin(&h);
	assert_string_equal(unbound.connected.region, "us");
	close(unbound.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(another_user_gets_no_connection_of_a_refused_one),
	    TEST(a_key_that_is_removed_binds_no_waiting_login),
	    TEST(a_set_that_changes_is_decided_on_again),
	    TEST(an_answer_needs_no_set_of_its_own),
	    TEST(an_answer_binds_with_no_expired_set),
	    TEST(a_set_that_leaves_nothing_to_decide_binds_a_waiting_login),
	    TEST(a_connection_whose_address_moves_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
