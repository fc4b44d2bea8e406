/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections of one peer that are without a user: who counts, and what the supervisor does.
 */
#include <unistd.h>

#include "crowd.h"
#include "harness.h"
#include "sessions.h"
#include "slots.h"

#define LIMIT 2
#define REASON "only 2 connections from one address may be without a user for more than 1s"

/* -- Who counts ---------------------------------------------------------------- */

static const uint8_t four[SHAI_ADDRESS_SIZE] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t six[SHAI_ADDRESS_SIZE] = {0x20, 0x01, [7] = 1, [15] = 1};

/* Those of a crowd of three, of which a test changes the last one. */
static struct supervisor crowd;
static struct principal alice;

static void
gather(const uint8_t peer[SHAI_ADDRESS_SIZE])
{
	memset(&crowd, 0, sizeof(crowd));
	crowd.settings.per_peer = LIMIT;
	crowd.settings.slots = LIMIT + 1;
	TAILQ_INIT(&crowd.unsettled);
	slots_begin(&crowd);
	for (int i = 0; i <= LIMIT; i++) {
		session_become(&crowd.session[i], SESSION_UNBOUND);
		crowd.session[i].began = 5 * SECOND;
		memcpy(crowd.session[i].peer, peer, SHAI_ADDRESS_SIZE);
	}
}

/* Whether the last of the crowd counts as one. */
static bool
last_counts(void)
{
	return crowd_exceeds(&crowd, &crowd.session[0]);
}

static void
sessions_that_live_without_a_user_count(void **state)
{
	static const struct {
		enum session_state state;
		struct principal *user;
		bool counts;
	} cases[] = {{SESSION_UNBOUND, NULL, true}, {SESSION_ASKED, &alice, false},
	    {SESSION_WAITING, &alice, false}, {SESSION_BOUND, &alice, false},
	    {SESSION_ENDING, NULL, false}, {SESSION_CLEANING, NULL, false},
	    {SESSION_NONE, NULL, false}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		gather(four);
		session_become(&crowd.session[LIMIT], cases[i].state);
		crowd.session[LIMIT].user = cases[i].user;
		assert_int_equal(last_counts(), cases[i].counts);
	}
}

static void
an_address_or_a_network_of_version_6_is_one_peer(void **state)
{
	static const struct {
		const uint8_t *peer;
		size_t changed; /* byte of the last one's address */
		bool counts;
	} cases[] = {
	    {four, 15, false}, {four, 12, false}, {six, 15, true}, {six, 8, true}, {six, 7, false}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		gather(cases[i].peer);
		crowd.session[LIMIT].peer[cases[i].changed]++;
		assert_int_equal(last_counts(), cases[i].counts);
	}
}

static void
a_peer_is_refused_after_its_hurry(void **state)
{
	int64_t over = 5 * SECOND + CROWD_HURRY;

	(void)state;
	gather(four);
	assert_false(crowd_refuses(&crowd, four, over));
	assert_true(crowd_refuses(&crowd, four, over + 1));
	assert_false(crowd_refuses(&crowd, six, over + 1));
	crowd.session[0].user = crowd.session[1].user = &alice;
	assert_false(crowd_refuses(&crowd, four, over + 1));
}

static void
no_limit_is_none(void **state)
{
	(void)state;
	gather(four);
	crowd.settings.per_peer = 0;
	assert_false(last_counts());
	assert_false(crowd_refuses(&crowd, four, 60 * SECOND));
}

/* -- The supervisor ------------------------------------------------------------ */

static struct harness h;

static void
start(void)
{
	struct shai_control_settings settings = harness_settings();

	settings.per_peer = LIMIT;
	settings.slots = settings.idle_max = 8;
	harness_start(&h, SERVES, &settings);
}

/*
 * One more than the limit, of an address of their own. The first is ended: then all that
 * began before them have had their second, too.
 */
static void
crowd_in(uint8_t host)
{
	struct client clients[LIMIT + 1];
	const struct shai_control_event *event;

	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = client_begin_from(&h, host);
	assert_true(client_closed(&clients[0]));
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->reason, REASON);
	assert_int_equal(event->peer[15], host);
	for (size_t i = 1; i < COUNT(clients); i++) /* no longer one too many */
		(void)client_bind(&clients[i], "bob");
	for (size_t i = 0; i < COUNT(clients); i++)
		close(clients[i].socket);
}

static void
any_number_may_log_in_within_the_second(void **state)
{
	struct client clients[LIMIT + 1];

	(void)state;
	start();
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = client_begin(&h);
	for (size_t i = 0; i < COUNT(clients); i++)
		(void)client_bind(&clients[i], "alice");
	crowd_in(2);
	for (size_t i = 0; i < COUNT(clients); i++) {
		client_finish_orders(&clients[i]); /* it lives */
		close(clients[i].socket);
	}
}

static void
a_crowd_keeps_itself_out_and_nobody_else(void **state)
{
	const struct shai_control_event *event;
	struct client clients[LIMIT], other;

	(void)state;
	start();
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = client_begin(&h);
	crowd_in(2);
	assert_true(client_closed(&(struct client){.socket = client_connect(&h)}));
	event = harness_event(&h, SHAI_EVENT_LIMIT);
	assert_string_equal(event->reason, REASON);
	assert_int_equal(event->peer[15], 1);
	other = client_begin_from(&h, 3);
	for (size_t i = 0; i < COUNT(clients); i++)
		(void)client_bind(&clients[i], "alice");
	close(client_begin(&h).socket); /* the crowd is over */
	for (size_t i = 0; i < COUNT(clients); i++)
		close(clients[i].socket);
	close(other.socket);
}

/* It had its second when it was no crowd. */
static void
who_was_there_before_a_crowd_stays(void **state)
{
	struct client early, crowd_of[LIMIT];

	(void)state;
	start();
	early = client_begin(&h);
	crowd_in(2);
	for (size_t i = 0; i < COUNT(crowd_of); i++)
		crowd_of[i] = client_begin(&h);
	(void)client_bind(&early, "alice");
	for (size_t i = 0; i < COUNT(crowd_of); i++)
		close(crowd_of[i].socket);
	close(early.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sessions_that_live_without_a_user_count),
	    cmocka_unit_test(an_address_or_a_network_of_version_6_is_one_peer),
	    cmocka_unit_test(a_peer_is_refused_after_its_hurry),
	    cmocka_unit_test(no_limit_is_none),
	    TEST(any_number_may_log_in_within_the_second),
	    TEST(who_was_there_before_a_crowd_stays),
	    TEST(a_crowd_keeps_itself_out_and_nobody_else),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
