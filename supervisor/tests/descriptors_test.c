/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The real supervisor where a process may have few descriptors.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "documents_asked.h"

#define FEW 1400 /* the launcher's descriptors are moved to numbers up to 770 */
#define USERS 6
#define WAITING 850
#define SLOTS 16

static struct harness h;

static void
start_with_few_descriptors(uint32_t waiting, uint32_t slots)
{
	const struct rlimit few = {.rlim_cur = FEW, .rlim_max = FEW};
	struct shai_control_settings settings = harness_settings();

	settings.mounts_max = 4096;
	settings.waiting = waiting;
	settings.slots = slots;
	/* Of this process, too, which may not be able to raise it again. */
	EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
	harness_start(&h, SERVES, &settings);
}

/* Makes the directories of as many classes as a session gets, and alice's set of them. */
static void
set_of_others(uint32_t first)
{
	struct {
		struct shai_control_set head;
		uint32_t classes[SHAI_DIRECTORIES_MAX];
	} record = {.head = {.header = control_header(SHAI_CONTROL_SET, sizeof(record)),
			.class_count = SHAI_DIRECTORIES_MAX,
			.flags = SHAI_SET_ANALYZED | SHAI_SET_LEAVES,
			.principal = "alice",
			.instance = "worker(alice)"}};
	char path[96];

	for (uint32_t i = 0; i < SHAI_DIRECTORIES_MAX; i++) {
		record.classes[i] = first + i;
		(void)snprintf(path, sizeof(path), "%s/view/%u", h.directory, first + i);
		EXPECT(mkdir(path, 0755) == 0);
	}
	harness_send(&h, &record, sizeof(record), NULL);
	harness_fence(&h);
}

/* Each with other directories, which are kept. */
static void
serve_users(void)
{
	for (uint32_t i = 0; i < USERS; i++) {
		struct client client;

		set_of_others(100 + i * SHAI_DIRECTORIES_MAX);
		client = client_begin(&h);
		assert_int_equal(client_bind(&client, "alice").descriptors, SHAI_DIRECTORIES_MAX);
		client_reset(&client, 0);
		assert_true(client_closed(&client));
		close(client.socket);
	}
}

/* Directories that are kept for later sessions must not take the descriptors of these. */
static void
directories_that_are_kept_keep_nobody_out(void **state)
{
	(void)state;
	start_with_few_descriptors(64, 2);
	serve_users();
}

/* Nor those of connections that wait. */
static void
connections_that_wait_leave_room_for_sessions(void **state)
{
	int waiting[WAITING];
	struct client busy[2];

	(void)state;
	start_with_few_descriptors(WAITING, 2);
	serve_users();
	for (size_t i = 0; i < COUNT(busy); i++)
		busy[i] = client_begin(&h);
	for (size_t i = 0; i < WAITING; i++)
		waiting[i] = client_connect(&h);
	for (size_t i = 0; i < COUNT(busy); i++) {
		struct client next = {.socket = waiting[i]};

		client_reset(&busy[i], 0);
		(void)client_report(&next, &next.connected, sizeof(next.connected));
		(void)close(busy[i].socket);
	}
	for (size_t i = 0; i < WAITING; i++)
		(void)close(waiting[i]);
}

/* A connection, or -1 if this process may not have more. */
static int
connect_silently(void)
{
	int room = dup(h.control);

	if (room < 0)
		return -1;
	(void)close(room);
	return client_connect(&h);
}

/*
 * As many as may wait by the settings, and more than there are descriptors for: this process
 * has fewer others open than the supervisor, which has the ends of slots.
 */
static void
no_more_connections_wait_than_leave_room_for_answers(void **state)
{
	static int waiting[FEW];
	size_t count = 0;
	struct client clients[SLOTS];
	struct question question;
	struct descriptors with = {.count = 1};
	int file;

	(void)state;
	start_with_few_descriptors(SHAI_WAITING_MAX, SLOTS);
	for (size_t i = 0; i < SLOTS; i++)
		clients[i] = client_begin(&h);
	(void)client_bind(&clients[0], "alice");
	harness_fence(&h); /* the seccomp listener, too, has come before this process is full */
	while ((waiting[count] = connect_silently()) >= 0)
		count++;
	for (size_t i = 0; i < FEW; i++) /* each lets the supervisor accept some */
		harness_fence(&h);
	client_open(&clients[0], DOCUMENT_OF_BOB);
	question = question_about(&h, 1);
	with.number[0] = h.output;
	question_answer(&h, &question, (int32_t[]){0}, &with);
	assert_int_equal(client_opened(&clients[0], &file), 0);
	for (size_t i = 0; i < count; i++)
		(void)close(waiting[i]);
	for (size_t i = 0; i < SLOTS; i++)
		(void)close(clients[i].socket);
}

/* The numbers of the supervisor's first two descriptors that are free. */
static void
find_free(rlim_t number[2])
{
	char path[64];

	for (rlim_t i = 0, found = 0; found < 2; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%u", h.supervisor, (unsigned)i);
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
			number[found++] = i;
	}
}

/* There is one for the connection, none for the socket between the supervisor and the worker. */
static void
workers_outlive_a_lack_of_descriptors(void **state)
{
	const struct shai_control_event *event;
	struct rlimit usual, scarce;
	rlim_t number[2];
	struct client client;

	(void)state;
	start_with_few_descriptors(WAITING, 2);
	while (harness_counts(&h).idle == 0)
		;
	harness_fence(&h);
	find_free(number);
	EXPECT(prlimit(h.supervisor, RLIMIT_NOFILE, NULL, &usual) == 0);
	scarce = (struct rlimit){.rlim_cur = number[1], .rlim_max = usual.rlim_max};
	EXPECT(prlimit(h.supervisor, RLIMIT_NOFILE, &scarce, NULL) == 0);
	client.socket = client_connect(&h);
	assert_true(client_closed(&client));
	event = harness_event(&h, SHAI_EVENT_LIMIT);
	assert_string_equal(
	    event->reason, "the session's socket cannot be made: Too many open files");
	EXPECT(prlimit(h.supervisor, RLIMIT_NOFILE, &usual, NULL) == 0);
	(void)close(client.socket);
	client = client_begin(&h);
	harness_fence(&h);
	for (size_t i = 0; i < h.events; i++)
		assert_int_not_equal(h.event[i].kind, SHAI_EVENT_WORKER);
	(void)close(client.socket);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    HARNESS_TEST(directories_that_are_kept_keep_nobody_out, &h),
	    HARNESS_TEST(connections_that_wait_leave_room_for_sessions, &h),
	    HARNESS_TEST(no_more_connections_wait_than_leave_room_for_answers, &h),
	    HARNESS_TEST(workers_outlive_a_lack_of_descriptors, &h),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
