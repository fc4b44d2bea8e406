/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One connection to a real redis-server for one user after the other, whatever the former
 * one left on it.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keyvalue.h"
#include "redis_server.h"

#define NOW INT64_C(1000000000)
#define PATIENCE 60000 /* milliseconds for what happens at once */
#define QUIET 200      /* milliseconds for what does not happen */

static struct redis_server server;

static int
start(void **state)
{
	(void)state;
	redis_server_start(&server);
	/* What a task could get at most: transactions and channels, too. */
	redis_server_do(&server, "ACL SETUSER alice on >a ~alice:* &alice:* +@read +@write "
				 "+@transaction +@pubsub +quit +ping +client");
	redis_server_do(&server, "ACL SETUSER bob on >b ~bob:* +get +set");
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	redis_server_stop(&server);
	return 0;
}

/*
 * Goes on until nothing is awaited. In silence, time passes: as soon as the store has been
 * quiet, the deadline is over.
 */
static enum keyvalue_state
finish(struct keyvalue *keyvalue, bool silence)
{
	while (keyvalue_deadline(keyvalue) != INT64_MAX) {
		uint32_t events = keyvalue_events(keyvalue);
		struct pollfd ready = {.fd = keyvalue_descriptor(keyvalue),
		    .events = (short)((events & EPOLLIN ? POLLIN : 0) |
				      (events & EPOLLOUT ? POLLOUT : 0))};
		int count = poll(&ready, 1, silence ? QUIET : PATIENCE);

		assert_true(count > 0 || silence);
		keyvalue_continue(keyvalue, count > 0 ? NOW : keyvalue_deadline(keyvalue));
	}
	return keyvalue_state(keyvalue);
}

static void
login(struct keyvalue *keyvalue, const char *user, const char *password)
{
	keyvalue_login(keyvalue, user, password, NOW);
	if (finish(keyvalue, false) != KEYVALUE_READY)
		fail_msg("%s: %s", user, keyvalue_reason(keyvalue));
	assert_int_equal(keyvalue_events(keyvalue), 0);
}

/* What a worker does with its descriptor: sends bytes, and reads as many as it likes. */
static void
send_all(int descriptor, const char *bytes, size_t length)
{
	assert_int_equal(send(descriptor, bytes, length, MSG_NOSIGNAL), length);
}

/* Reads a line, which must begin so. */
static void
read_line(int descriptor, const char *beginning)
{
	char got[512];
	size_t length = 0;

	do
		assert_int_equal(recv(descriptor, got + length, 1, 0), 1);
	while (got[length++] != '\n' && length < sizeof(got));
	if (strncmp(got, beginning, strlen(beginning)) != 0)
		fail_msg("%.*s instead of %s", (int)length, got, beginning);
}

/* The user of the connection is bob, and the first reply is that to bob's first command. */
static void
is_clean_for_bob(struct keyvalue *keyvalue)
{
	static const char own[] = "SET bob:note 1\r\n", foreign[] = "GET alice:note\r\n";
	int descriptor;

	login(keyvalue, "bob", "b");
	descriptor = keyvalue_descriptor(keyvalue);
	send_all(descriptor, own, sizeof(own) - 1);
	read_line(descriptor, "+OK\r\n");
	send_all(descriptor, foreign, sizeof(foreign) - 1);
	read_line(descriptor, "-NOPERM");
}

static void
a_connection_serves_one_user_after_the_other(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);
	int first;

	(void)state;
	assert_int_equal(keyvalue_state(keyvalue), KEYVALUE_CLOSED);
	login(keyvalue, "alice", "a");
	first = keyvalue_descriptor(keyvalue);
	send_all(first, "SET alice:note 7\r\n", 18);
	read_line(first, "+OK\r\n");
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLEAN);
	assert_int_equal(keyvalue_descriptor(keyvalue), first);
	is_clean_for_bob(keyvalue);
	assert_int_equal(keyvalue_descriptor(keyvalue), first);
	keyvalue_free(keyvalue);
}

static void
a_clean_connection_has_no_user(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);

	(void)state;
	login(keyvalue, "alice", "a");
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLEAN);
	send_all(keyvalue_descriptor(keyvalue), "GET alice:note\r\n", 16);
	read_line(keyvalue_descriptor(keyvalue), "-NOAUTH");
	keyvalue_free(keyvalue);
}

/* The length of the random command that a reset sends first. */
#define PROBE_LENGTH sizeof("*1\r\n$32\r\n\r\n") - 1 + 32

/* What a session leaves behind. */
static const struct attack {
	const char *name;
	const char *sent;
	int read;     /* bytes that it reads of the replies */
	int repeated; /* sends it so many times more */
	bool closes;  /* the connection cannot be cleaned */
	bool silence; /* because the store waits for more */
} attacks[] = {
    {.name = "nothing", .sent = ""},
    {.name = "an unread reply", .sent = "GET alice:note\r\n"},
    {.name = "junk", .sent = "x y\r\n*1\r\n$3\r\n+OK\r\n*2\r\n$5\r\nRESET\r\n$1\r\nx\r\n"},
    {.name = "the guessed name of RESET", .sent = "RESET\r\n*1\r\n$5\r\nRESET\r\n"},
    {.name = "many replies", .sent = "GET alice:note\r\n", .repeated = 63},
    {.name = "too many replies", .sent = "GET alice:note\r\n", .repeated = 64, .closes = true},
    {.name = "large replies", .sent = "GET alice:large\r\n", .repeated = 3, .closes = true},
    {.name = "a transaction", .sent = "MULTI\r\nSET alice:note 2\r\n"},
    {.name = "a watched transaction", .sent = "WATCH alice:note\r\nMULTI\r\nGET alice:note\r\n"},
    {.name = "a whole transaction", .sent = "MULTI\r\nSET alice:note 2\r\nEXEC\r\n"},
    {.name = "a subscription", .sent = "SUBSCRIBE alice:news\r\n"},
    {.name = "silenced replies", .sent = "CLIENT REPLY OFF\r\n", .closes = true, .silence = true},
    {.name = "a skipped reply", .sent = "CLIENT REPLY SKIP\r\n", .closes = true, .silence = true},
    {.name = "a forged reply", .sent = "GET alice:forged\r\nGET alice:forged\r\n"},
    {.name = "a forged array", .sent = "LRANGE alice:list 0 -1\r\n"},
    {.name = "a half-read reply", .sent = "GET alice:forged\r\n", .read = 5},
    {.name = "half a command", .sent = "*2\r\n$3\r\nGET\r\n", .closes = true},
    {.name = "half a string",
	.sent = "*2\r\n$3\r\nGET\r\n$5000\r\nx",
	.closes = true,
	.silence = true},
    {.name = "half a line", .sent = "GET "},
    {.name = "a command that waits",
	.sent = "BLPOP alice:none 0\r\n",
	.closes = true,
	.silence = true},
    {.name = "a farewell", .sent = "QUIT\r\n", .closes = true},
};

static void
prepare(void)
{
	char large[300000];

	memset(large, 'x', sizeof(large));
	redis_server_do(&server, "SET alice:large %b", large, sizeof(large));
	redis_server_do(&server, "SET alice:note 7");
	redis_server_do(
	    &server, "SET alice:forged %s", "+RESET\r\n+RESET"); /* and the end of the string */
	redis_server_do(&server, "DEL alice:list");
	redis_server_do(&server, "RPUSH alice:list +RESET +OK");
}

static void
nothing_is_left_for_the_next_user(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(attacks); i++) {
		const struct attack *attack = &attacks[i];
		struct keyvalue *keyvalue = keyvalue_new(&server.store);
		char got[512];
		enum keyvalue_state after;

		print_message("%s\n", attack->name);
		prepare();
		login(keyvalue, "alice", "a");
		for (int n = 0; n <= attack->repeated; n++)
			send_all(keyvalue_descriptor(keyvalue), attack->sent, strlen(attack->sent));
		if (attack->read > 0)
			assert_int_equal(recv(keyvalue_descriptor(keyvalue), got,
					     (size_t)attack->read, MSG_WAITALL),
			    attack->read);
		keyvalue_reset(keyvalue, NOW);
		after = finish(keyvalue, attack->silence);
		if (after != (attack->closes ? KEYVALUE_CLOSED : KEYVALUE_CLEAN))
			fail_msg(
			    "%s: state %d: %s", attack->name, after, keyvalue_reason(keyvalue));
		is_clean_for_bob(keyvalue);
		keyvalue_free(keyvalue);
	}
}

static int
send_buffer(int descriptor)
{
	socklen_t size = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &value, &size), 0);
	return value;
}

/* The filter lets a worker set these on its connections. */
static void
no_setting_of_the_socket_is_left(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);
	struct timeval timeout = {.tv_sec = 4711};
	struct linger linger = {.l_onoff = 1, .l_linger = 4711};
	socklen_t size = sizeof(timeout);
	int descriptor, before, smaller = 30000, one = 1;

	(void)state;
	login(keyvalue, "alice", "a");
	descriptor = keyvalue_descriptor(keyvalue);
	before = send_buffer(descriptor);
	assert_int_equal(
	    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &smaller, sizeof(smaller)), 0);
	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, size), 0);
	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, size), 0);
	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK | O_ASYNC), 0);
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLEAN);
	login(keyvalue, "bob", "b");
	descriptor = keyvalue_descriptor(keyvalue);
	assert_int_equal(send_buffer(descriptor), before);
	assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, &size), 0);
	assert_int_equal(timeout.tv_sec, 0);
	assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, &size), 0);
	assert_int_equal(timeout.tv_sec, 0);
	size = sizeof(one);
	assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, &size), 0);
	assert_int_equal(one, 0);
	size = sizeof(linger);
	assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, &size), 0);
	assert_int_equal(linger.l_onoff | linger.l_linger, 0);
	assert_int_equal(fcntl(descriptor, F_GETFL) & ~O_ACCMODE, 0);
	keyvalue_free(keyvalue);
}

/*
 * Half-sent commands whose last argument takes what is sent next, of every length. None
 * gets hold of the secret names, which would be in the store then.
 */
static void
no_half_command_swallows_a_secret(void **state)
{
	(void)state;
	for (size_t length = 1; length <= PROBE_LENGTH + 40; length++) {
		struct keyvalue *keyvalue = keyvalue_new(&server.store);
		char sent[128], *stolen;

		redis_server_do(&server, "SET alice:stolen nothing");
		login(keyvalue, "alice", "a");
		snprintf(sent, sizeof(sent), "*3\r\n$3\r\nSET\r\n$12\r\nalice:stolen\r\n$%zu\r\n",
		    length);
		send_all(keyvalue_descriptor(keyvalue), sent, strlen(sent));
		keyvalue_reset(keyvalue, NOW);
		/* Waiting for the store is not needed: when it was too slow, this is safe, too. */
		while (keyvalue_deadline(keyvalue) != INT64_MAX) {
			struct pollfd ready = {
			    .fd = keyvalue_descriptor(keyvalue), .events = POLLIN};
			int count = poll(&ready, 1, 20);

			keyvalue_continue(keyvalue, count > 0 ? NOW : keyvalue_deadline(keyvalue));
		}
		stolen = redis_server_get(&server, "alice:stolen");
		assert_null(strstr(stolen, "reset-"));
		assert_null(strstr(stolen, "auth-"));
		free(stolen);
		is_clean_for_bob(keyvalue);
		keyvalue_free(keyvalue);
	}
}

static void
a_message_to_a_former_subscriber_is_not_received(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);

	(void)state;
	login(keyvalue, "alice", "a");
	send_all(keyvalue_descriptor(keyvalue), "SUBSCRIBE alice:news\r\n", 22);
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLEAN);
	redis_server_do(&server, "PUBLISH alice:news hello");
	is_clean_for_bob(keyvalue);
	keyvalue_free(keyvalue);
}

static void
a_lost_connection_is_made_anew(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);

	(void)state;
	login(keyvalue, "alice", "a");
	redis_server_do(&server, "CLIENT KILL USER alice");
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLOSED);
	is_clean_for_bob(keyvalue);
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLEAN);
	assert_int_equal(shutdown(keyvalue_descriptor(keyvalue), SHUT_RDWR), 0);
	assert_int_equal(keyvalue_events(keyvalue), EPOLLIN);
	keyvalue_continue(keyvalue, NOW);
	assert_int_equal(keyvalue_state(keyvalue), KEYVALUE_CLOSED);
	is_clean_for_bob(keyvalue);
	keyvalue_free(keyvalue);
}

static void
refused_users_get_no_connection(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);

	(void)state;
	keyvalue_login(keyvalue, "alice", "wrong", NOW);
	assert_int_equal(finish(keyvalue, false), KEYVALUE_CLOSED);
	assert_int_equal(keyvalue_descriptor(keyvalue), -1);
	assert_string_equal(
	    keyvalue_reason(keyvalue), "the key-value store refused the session's user");
	login(keyvalue, "alice", "a");
	keyvalue_free(keyvalue);
}

static void
a_login_given_up_leaves_nothing(void **state)
{
	struct keyvalue *keyvalue = keyvalue_new(&server.store);

	(void)state;
	keyvalue_login(keyvalue, "alice", "a", NOW);
	assert_int_equal(keyvalue_state(keyvalue), KEYVALUE_LOGIN);
	keyvalue_reset(keyvalue, NOW);
	assert_int_equal(keyvalue_state(keyvalue), KEYVALUE_CLOSED);
	is_clean_for_bob(keyvalue);
	keyvalue_free(keyvalue);
}

static void
a_store_that_is_not_there_is_said(void **state)
{
	struct shai_control_store elsewhere = server.store;
	struct keyvalue *keyvalue = keyvalue_new(&elsewhere);

	(void)state;
	strcat(elsewhere.path, ".not");
	keyvalue_login(keyvalue, "alice", "a", NOW);
	assert_int_equal(keyvalue_state(keyvalue), KEYVALUE_CLOSED);
	assert_string_equal(
	    keyvalue_reason(keyvalue), "connect to the key-value store: No such file or directory");
	keyvalue_free(keyvalue);
}

/* A store that says more than it was asked for: the rest would be the next session's. */
static void
replies_after_the_awaited_one_are_not_kept(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct shai_control_store store = server.store;
	struct keyvalue *keyvalue = keyvalue_new(&store);
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), accepted;

	(void)state;
	strcat(store.path, ".false");
	memcpy(address.sun_path, store.path, sizeof(address.sun_path));
	assert_int_equal(bind(listening, (void *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listening, 1), 0);
	for (int extra = 0; extra < 2; extra++) {
		keyvalue_login(keyvalue, "alice", "a", NOW);
		accepted = accept(listening, NULL, NULL);
		send_all(accepted, "+OK\r\n+OK\r\n", extra ? 10 : 5);
		assert_int_equal(finish(keyvalue, false), extra ? KEYVALUE_CLOSED : KEYVALUE_READY);
		keyvalue_reset(keyvalue, NOW);
		close(accepted);
		(void)finish(keyvalue, false);
	}
	close(listening);
	assert_int_equal(unlink(store.path), 0);
	keyvalue_free(keyvalue);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_connection_serves_one_user_after_the_other),
	    cmocka_unit_test(a_clean_connection_has_no_user),
	    cmocka_unit_test(nothing_is_left_for_the_next_user),
	    cmocka_unit_test(no_setting_of_the_socket_is_left),
	    cmocka_unit_test(no_half_command_swallows_a_secret),
	    cmocka_unit_test(a_message_to_a_former_subscriber_is_not_received),
	    cmocka_unit_test(a_lost_connection_is_made_anew),
	    cmocka_unit_test(refused_users_get_no_connection),
	    cmocka_unit_test(a_login_given_up_leaves_nothing),
	    cmocka_unit_test(replies_after_the_awaited_one_are_not_kept),
	    cmocka_unit_test(a_store_that_is_not_there_is_said),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("key-value connections", tests, start, stop);
}
