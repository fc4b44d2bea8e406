/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions in the real supervisor: begin, login, limits, end.
 */
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "text.h"

static struct harness h;

static void
a_session_begins_binds_and_ends(void **state)
{
	struct client client;
	struct report report;
	struct shai_bound bound;
	const struct shai_control_event *event;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	assert_string_equal(client.connected.peer, "127.0.0.1");
	assert_int_equal(client.connected.mode, SHAI_MODE_SHAI);
	client_login(&client, "alice", false);
	bound = client_bound(&client, &report);
	assert_int_equal(bound.status, 0);
	assert_string_equal(bound.instance, "worker(alice)");
	assert_int_equal(bound.class_count, 1);
	assert_int_equal(bound.flags, 0);
	client_reset(&client, UINT64_MAX);
	assert_true(client_closed(&client));
	event = harness_event(&h, SHAI_EVENT_BOUND);
	assert_string_equal(event->principal, "alice");
	assert_string_equal(event->reason, "analyzed");
	event = harness_event(&h, SHAI_EVENT_ENDED);
	assert_string_equal(event->reason, "");
	assert_true(event->counters[0] > 0 && event->counters[0] <= 10000 * 60);
	close(client.socket);
}

/* Nobody but its user reads what a session's worker prints; what the program prints stays. */
static void
the_output_of_a_session_leads_nowhere(void **state)
{
	char text[64];
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++) {
		client_order(&client, WRITE, number, "secret\n", 7);
		assert_int_equal(client_report(&client, NULL, 0).value, 7);
	}
	assert_int_equal(read(h.output, text, sizeof(text)), 14);
	assert_memory_equal(text, "zygote\nzygote\n", 14);
	close(client.socket);
}

/* One after the other, in both slots at a time: nothing of a session is left. */
static void
a_slot_serves_many_sessions(void **state)
{
	(void)state;
	harness_start(&h, SERVES, NULL);
	for (int i = 0; i < 40; i++) {
		struct client first = client_begin(&h), second = client_begin(&h);

		assert_int_not_equal(first.connected.slot, second.connected.slot);
		(void)client_bind(&first, "alice");
		(void)client_bind(&second, "bob");
		client_reset(&second, 1);
		client_reset(&first, 1);
		assert_true(client_closed(&first) && client_closed(&second));
		close(first.socket);
		close(second.socket);
	}
	for (int i = 0; i < 80; i++)
		assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->reason, "");
}

static void
refuses_a_wrong_signature_and_lets_the_user_try_again(void **state)
{
	struct client client;
	struct report report;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", true);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	assert_string_equal(harness_event(&h, SHAI_EVENT_REFUSED)->principal, "alice");
	client_login(&client, "carol", false);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	(void)client_bind(&client, "alice");
	close(client.socket);
}

static void
a_login_waits_for_a_credit(void **state)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 1};
	struct client client;
	struct report report;

	(void)state;
	harness_start_without_credits(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	/* An answer to the login would come before the second result. */
	client_settle(&h, &client);
	harness_send(&h, &credits, sizeof(credits), NULL);
	assert_int_equal(client_bound(&client, &report).status, 0);
	close(client.socket);
}

/* The monitor grants no credit while its audit log takes no records. */
static void
a_login_without_a_credit_is_refused_after_a_while(void **state)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 1};
	struct client client;
	struct report report;

	(void)state;
	harness_start_without_credits(&h, SERVES, NULL);
	client = client_begin(&h);
	client_login(&client, "alice", false);
	assert_int_equal(client_bound(&client, &report).status, EACCES);
	assert_non_null(strstr(harness_event(&h, SHAI_EVENT_REFUSED)->reason, "audit log"));
	harness_send(&h, &credits, sizeof(credits), NULL);
	(void)client_bind(&client, "alice");
	close(client.socket);
}

static void
a_message_that_breaks_the_protocol_ends_the_session(void **state)
{
	static const struct {
		enum order order;
		uint16_t type, version;
	} spoils[] = {{SEND, SHAI_OPEN, 2}, /* before a login */
	    {SEND, SHAI_REGISTER, 2}, {SEND, SHAI_RESET, 1}, {SEND_FILE, SHAI_RESET, 2}};

	(void)state;
	harness_start(&h, SERVES, NULL);
	for (size_t i = 0; i < COUNT(spoils); i++) {
		struct client client = client_begin(&h);
		struct shai_open record = {.header = {.version = spoils[i].version,
					       .type = spoils[i].type,
					       .size = sizeof(record)},
		    .count = 1};
		size_t size =
		    spoils[i].type == SHAI_RESET ? sizeof(struct shai_reset) : sizeof(record);

		record.header.size = (uint32_t)size;
		client_order(&client, spoils[i].order, 0, &record, size);
		assert_true(client_closed(&client));
		(void)harness_event(&h, SHAI_EVENT_VIOLATION);
		close(client.socket);
	}
}

static void
says_how_a_worker_ended(void **state)
{
	static const struct {
		enum order order;
		const char *reason;
	} ends[] = {{EXIT, "the worker exited with status 4"},
	    {CRASH, "the worker was killed by signal 11"}};

	(void)state;
	harness_start(&h, SERVES, NULL);
	for (size_t i = 0; i < COUNT(ends); i++) {
		struct client client = client_begin(&h);

		client_order(&client, ends[i].order, 4, NULL, 0);
		assert_true(client_closed(&client));
		assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->reason, ends[i].reason);
		close(client.socket);
	}
}

/* While the supervisor stands still, both reset and end: it sees both ends with the first. */
static void
a_worker_that_ended_after_its_reset_has_served(void **state)
{
	struct client first, second;

	(void)state;
	harness_start(&h, SERVES, NULL);
	first = client_begin(&h);
	second = client_begin(&h);
	(void)client_bind(&first, "alice");
	(void)client_bind(&second, "bob");
	harness_stand_still(&h);
	client_reset(&first, 1);
	client_order(&first, EXIT, 4, NULL, 0);
	assert_true(client_closed(&first));
	client_reset(&second, 1);
	client_order(&second, EXIT, 4, NULL, 0);
	assert_true(client_closed(&second));
	harness_go_on(&h);
	for (int i = 0; i < 2; i++) {
		const struct shai_control_event *ended = harness_event(&h, SHAI_EVENT_ENDED);

		assert_string_equal(ended->reason, "");
		assert_int_equal(ended->counters[0], 1);
	}
	close(first.socket);
	close(second.socket);
}

static void
the_monitor_ends_sessions(void **state)
{
	struct shai_control_forget forget = {
	    .header = control_header(SHAI_CONTROL_FORGET, sizeof(forget)),
	    .principal = "alice",
	    .flags = SHAI_FORGET_END,
	    .reason = "a policy has changed"};
	struct shai_control_end end = {
	    .header = control_header(SHAI_CONTROL_END, sizeof(end)), .reason = "revoked"};
	struct client alice, bob;

	(void)state;
	harness_start(&h, SERVES, NULL);
	alice = client_begin(&h);
	bob = client_begin(&h);
	(void)client_bind(&alice, "alice");
	(void)client_bind(&bob, "bob");
	harness_send(&h, &forget, sizeof(forget), NULL);
	assert_true(client_closed(&alice));
	assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->reason, "a policy has changed");
	client_order(&bob, COLD_CALL, 0, NULL, 0); /* it lives, and says its session's number */
	end.session = harness_call(&h, 1).session;
	assert_int_equal(client_report(&bob, &end.reason, 0).value, 1);
	harness_send(&h, &end, sizeof(end), NULL);
	assert_true(client_closed(&bob));
	close(alice.socket);
	close(bob.socket);
}

static void
limits_sessions_of_a_principal(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client first, second;
	struct report report;

	(void)state;
	settings.per_principal = 1;
	harness_start(&h, SERVES, &settings);
	first = client_begin(&h);
	second = client_begin(&h);
	(void)client_bind(&first, "alice");
	client_login(&second, "alice", false);
	assert_int_equal(client_bound(&second, &report).status, EACCES);
	(void)harness_event(&h, SHAI_EVENT_LIMIT);
	(void)client_bind(&second, "bob");
	close(first.socket);
	close(second.socket);
}

static void
limits_the_time_of_a_session(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client client;

	(void)state;
	settings.lifetime_s = 3;
	harness_start(&h, SERVES, &settings);
	client = client_begin(&h);
	(void)client_bind(&client, "alice");
	assert_true(client_closed(&client));
	assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->reason,
	    "a session lasts at most 3 s; connect again");
	close(client.socket);
}

/*
 * The instance of a window: its sessions end with it, although the monitor says nothing, and no
 * other session does. Nor do they get the set of the next window.
 */
static void
sessions_end_with_their_window(void **state)
{
	struct shai_control_set set = {.header = control_header(SHAI_CONTROL_SET, sizeof(set)),
	    .principal = "alice",
	    .instance = "worker(alice, 1)",
	    .flags = SHAI_SET_ANALYZED | SHAI_SET_LEAVES};
	struct client ending, lasting;
	struct timespec now;

	(void)state;
	harness_start(&h, SERVES, NULL);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	set.ends = set.expires = (now.tv_sec + 4) * INT64_C(1000000000) + now.tv_nsec;
	harness_send(&h, &set, sizeof(set), NULL);
	ending = client_begin(&h);
	(void)client_bind(&ending, "alice");
	lasting = client_begin(&h);
	(void)client_bind(&lasting, "bob");
	text_copy(set.instance, sizeof(set.instance), "worker(alice, 2)");
	set.ends = set.expires = 0;
	set.flags |= SHAI_SET_LIVE;
	harness_send(&h, &set, sizeof(set), NULL);
	assert_true(client_closed(&ending));
	assert_string_equal(harness_event(&h, SHAI_EVENT_ENDED)->reason,
	    "the window of time of its instance has ended; connect again");
	assert_false(client_has_report(&lasting));
	close(ending.socket);
	close(lasting.socket);
}

#define MANY 300

static void
many_sessions_live_at_the_same_time(void **state)
{
	static struct client clients[MANY];
	struct shai_control_settings settings = harness_settings();
	struct shai_control_forget forget = {
	    .header = control_header(SHAI_CONTROL_FORGET, sizeof(forget)),
	    .principal = "alice",
	    .flags = SHAI_FORGET_END};
	struct client next;

	(void)state;
	settings.slots = MANY;
	settings.lifetime_s = 3600;
	harness_start(&h, SERVES, &settings);
	for (int i = 0; i < MANY; i++) {
		clients[i] = client_begin(&h);
		(void)client_bind(&clients[i], i % 2 == 0 ? "alice" : "bob");
	}
	harness_send(&h, &forget, sizeof(forget), NULL);
	for (int i = 0; i < MANY; i += 2)
		assert_true(client_closed(&clients[i]));
	next = client_begin(&h); /* of a slot that has become free */
	(void)client_bind(&next, "bob");
	for (int i = 1; i < MANY; i += 2)
		assert_false(client_has_report(&clients[i])); /* neither a message nor an end */
	for (int i = 0; i < MANY; i++)
		close(clients[i].socket);
	close(next.socket);
}

/*
 * The supervisor gets the end of the first session and the login to the second at once,
 * while the first one's worker still runs.
 */
static void
a_session_that_ends_counts_for_its_user_no_longer(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client first, second;
	struct report report;

	(void)state;
	settings.per_principal = 1;
	harness_start(&h, SERVES, &settings);
	first = client_begin(&h);
	second = client_begin(&h);
	(void)client_bind(&first, "alice");
	harness_stand_still(&h);
	client_reset(&first, 1);
	client_finish_orders(&first);
	client_login(&second, "alice", false);
	client_finish_orders(&second);
	harness_go_on(&h);
	assert_int_equal(client_bound(&second, &report).status, 0);
	assert_true(client_closed(&first));
	close(first.socket);
	close(second.socket);
}

static void
ends_a_session_without_a_user(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client client;

	(void)state;
	settings.unbound_ms = 50;
	harness_start(&h, SERVES, &settings);
	client.socket = client_connect(&h);
	while (!client_closed(&client)) /* its worker may be too late to say that it has begun */
		;
	assert_string_equal(
	    harness_event(&h, SHAI_EVENT_ENDED)->reason, "nobody authenticated within 50 ms");
	close(client.socket);
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_session_begins_binds_and_ends),
	    TEST(the_output_of_a_session_leads_nowhere),
	    TEST(a_slot_serves_many_sessions),
	    TEST(refuses_a_wrong_signature_and_lets_the_user_try_again),
	    TEST(a_login_waits_for_a_credit),
	    TEST(a_login_without_a_credit_is_refused_after_a_while),
	    TEST(a_message_that_breaks_the_protocol_ends_the_session),
	    TEST(says_how_a_worker_ended),
	    TEST(a_worker_that_ended_after_its_reset_has_served),
	    TEST(the_monitor_ends_sessions),
	    TEST(limits_sessions_of_a_principal),
	    TEST(limits_the_time_of_a_session),
	    TEST(sessions_end_with_their_window),
	    TEST(many_sessions_live_at_the_same_time),
	    TEST(a_session_that_ends_counts_for_its_user_no_longer),
	    TEST(ends_a_session_without_a_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
