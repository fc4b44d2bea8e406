/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections that wait for a worker: in the queue, and in the real supervisor.
 */
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "queue.h"

/* -- The queue ----------------------------------------------------------------- */

static struct queue queue;
static uint32_t used[256]; /* workers, by the last byte of the network */

static uint32_t
usage(const void *context, const uint8_t network[SHAI_ADDRESS_SIZE])
{
	return ((const uint32_t *)context)[network[15]];
}

/* Adds a connection from 10.0.0.HOST. Returns which one had to leave, 0 if none. */
static int
add(int connection, uint8_t host, size_t limit)
{
	const uint8_t address[SHAI_ADDRESS_SIZE] = {
	    [10] = 0xff, [11] = 0xff, [12] = 10, [15] = host};
	struct queued out;

	return queue_add(&queue, connection, address, limit, &out) ? out.connection : 0;
}

static int
take(void)
{
	struct queued out;

	return queue_take(&queue, usage, used, &out) ? out.connection : 0;
}

static int
empty(void **state)
{
	(void)state;
	memset(&queue, 0, sizeof(queue));
	memset(used, 0, sizeof(used));
	return 0;
}

static void
who_came_first_is_next(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_int_equal(add(i, (uint8_t)(i % 2), 4), 0);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(take(), i);
	assert_int_equal(take(), 0);
}

static void
who_uses_fewer_workers_is_next(void **state)
{
	(void)state;
	for (int i = 1; i <= 6; i++)
		(void)add(i, (uint8_t)(i / 3), 6); /* 1, 2; 3, 4, 5; 6 */
	used[0] = 2;
	used[1] = 3;
	used[2] = 1;
	assert_int_equal(take(), 6);
	assert_int_equal(take(), 1);
	used[0] = 4;
	assert_int_equal(take(), 3);
}

static void
the_latest_of_the_most_leaves_a_full_queue(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_int_equal(add(i, 1, 4), 0);
	assert_int_equal(add(5, 1, 4), 5);
	assert_int_equal(add(6, 2, 4), 4);
	assert_int_equal(add(7, 2, 4), 3);
	assert_int_equal(add(8, 2, 4), 8); /* both have two */
	assert_int_equal(add(9, 3, 4), 2);
	assert_int_equal(take(), 1);
	assert_int_equal(add(10, 4, 4), 0);
	assert_int_equal(add(11, 5, 4), 7);
	assert_int_equal(add(12, 6, 4), 12); /* all have one */
}

/* The addresses of a network of version 6 share what they have. */
static void
a_network_of_version_6_is_one(void **state)
{
	struct queued out;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		uint8_t address[SHAI_ADDRESS_SIZE] = {0x20, 0x01, [15] = (uint8_t)i};

		assert_int_equal(queue_add(&queue, i, address, 2, &out), i == 3);
	}
	assert_int_equal(out.connection, 3);
	assert_int_equal(queue.networks, 1);
	assert_int_equal(take(), 1);
	assert_int_equal(queue.entry[0].address[15], 2);
}

/* Against a list of what has to be there: any order, until the most that may wait. */
static void
keeps_every_connection_once(void **state)
{
	static bool there[3 * SHAI_WAITING_MAX + 1];
	size_t count = 0;

	(void)state;
	for (int i = 1; i <= 3 * SHAI_WAITING_MAX; i++) {
		int out = add(i, (uint8_t)(i * 7 % 251), SHAI_WAITING_MAX);

		there[i] = true;
		if (i % 5 == 0 && out == 0)
			out = take();
		if (out != 0) {
			assert_true(there[out]);
			there[out] = false;
		}
		count += out == 0;
		assert_int_equal(queue.count, count);
	}
	for (int out = take(); out != 0; out = take()) {
		assert_true(there[out]);
		there[out] = false;
	}
	assert_null(memchr(there, true, sizeof(there)));
	assert_int_equal(queue.networks, 0);
}

/* -- The supervisor ------------------------------------------------------------ */

#define WAITING 4
#define CROWD 2 /* the host that has many connections */
#define OTHER 3

static struct harness h;
static int crowd[WAITING + 4]; /* its connections; the first two have workers */

static void
start(uint32_t waiting)
{
	struct shai_control_settings settings = harness_settings();

	settings.waiting = waiting;
	harness_start(&h, SERVES, &settings);
}

static void
crowd_in(size_t count)
{
	for (size_t i = 0; i < 2; i++)
		crowd[i] = client_begin_from(&h, CROWD).socket;
	for (size_t i = 2; i < count; i++)
		crowd[i] = client_connect_from(&h, CROWD);
}

/* Its first connection ends: another host's turn. Then nobody waits but the crowd. */
static void
expect_next(struct client *other)
{
	(void)close(crowd[0]);
	(void)client_report(other, &other->connected, sizeof(other->connected));
	(void)client_bind(other, "alice");
	(void)close(other->socket);
	(void)client_report(
	    &(struct client){.socket = crowd[2]}, &other->connected, sizeof(other->connected));
}

static void
a_crowd_delays_nobody_else(void **state)
{
	struct client other;

	(void)state;
	start(64);
	crowd_in(COUNT(crowd));
	other.socket = client_connect_from(&h, OTHER);
	expect_next(&other);
	for (size_t i = 1; i < COUNT(crowd); i++)
		(void)close(crowd[i]);
}

static void
a_crowd_loses_its_latest_connections(void **state)
{
	const struct shai_control_event *event;
	struct client other;

	(void)state;
	start(WAITING);
	crowd_in(COUNT(crowd));
	for (size_t i = 2 + WAITING; i < COUNT(crowd); i++)
		assert_true(client_closed(&(struct client){.socket = crowd[i]}));
	event = harness_event(&h, SHAI_EVENT_LIMIT);
	assert_string_equal(event->reason,
	    "more than 4 connections wait for a worker, most of them of this address");
	assert_int_equal(event->peer[15], CROWD);
	other.socket = client_connect_from(&h, OTHER);
	assert_true(client_closed(&(struct client){.socket = crowd[2 + WAITING - 1]}));
	expect_next(&other);
	for (size_t i = 1; i < COUNT(crowd); i++)
		(void)close(crowd[i]);
}

/* Nobody is there any more: no worker is spent on it. */
static void
a_client_that_has_gone_gets_no_worker(void **state)
{
	struct client other;

	(void)state;
	start(64);
	crowd_in(4);
	(void)close(crowd[2]);
	other.socket = crowd[3];
	(void)close(crowd[0]);
	(void)client_report(&other, &other.connected, sizeof(other.connected));
	(void)client_bind(&other, "alice");
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(harness_event(&h, SHAI_EVENT_ACCEPTED)->session, 4);
	assert_int_equal(harness_event(&h, SHAI_EVENT_BOUND)->session, 3);
	(void)close(crowd[1]);
	(void)close(other.socket);
}

static size_t
descriptors_of(pid_t process)
{
	size_t count = 0;
	char path[64];
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", process);
	directory = opendir(path);
	EXPECT(directory != NULL);
	while (readdir(directory) != NULL)
		count++;
	(void)closedir(directory);
	return count;
}

/*
 * Ten thousand connections, of which 500 are there at a time. A user of another address logs
 * in meanwhile; the supervisor has no more descriptors than may wait.
 */
static void
flood(size_t hosts)
{
	static const struct linger at_once = {.l_onoff = 1};
	struct shai_control_settings settings = harness_settings();
	int there[500];
	size_t before;

	settings.waiting = 256;
	settings.slots = settings.idle_max = 32;
	settings.unbound_ms = 1000; /* in which alice has to log in, on a busy machine, too */
	harness_start(&h, SERVES, &settings);
	harness_fence(&h); /* it has all that came with the records */
	before = descriptors_of(h.supervisor);
	for (size_t i = 0; i < 10000; i++) {
		int *one = &there[i % COUNT(there)];

		if (i >= COUNT(there))
			(void)close(*one);
		*one = client_connect_from(&h, (uint8_t)(CROWD + i % hosts));
		EXPECT(setsockopt(*one, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
		if (i % 250 == 249)
			harness_fence(&h); /* reads events: without room nobody is served */
		if (i % 5000 == 4999) {
			struct client alice = client_begin(&h);

			(void)client_bind(&alice, "alice");
			assert_true(descriptors_of(h.supervisor) <=
				    before + settings.waiting + 2 * settings.slots);
			(void)close(alice.socket);
		}
	}
	for (size_t i = 0; i < COUNT(there); i++)
		(void)close(there[i]);
}

static void
ten_thousand_connections_of_one_address(void **state)
{
	(void)state;
	flood(1);
}

static void
ten_thousand_connections_of_200_addresses(void **state)
{
	(void)state;
	flood(200);
}

#define TEST(name) HARNESS_TEST(name, &h)
#define UNIT(name) cmocka_unit_test_setup(name, empty)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    UNIT(who_came_first_is_next),
	    UNIT(who_uses_fewer_workers_is_next),
	    UNIT(the_latest_of_the_most_leaves_a_full_queue),
	    UNIT(a_network_of_version_6_is_one),
	    UNIT(keeps_every_connection_once),
	    TEST(a_crowd_delays_nobody_else),
	    TEST(a_crowd_loses_its_latest_connections),
	    TEST(a_client_that_has_gone_gets_no_worker),
	    TEST(ten_thousand_connections_of_one_address),
	    TEST(ten_thousand_connections_of_200_addresses),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
