/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The real supervisor where a process may have few descriptors.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#define FEW 800 /* the launcher's descriptors are moved to numbers up to 770 */
#define USERS 5
#define WAITING 530

static struct harness h;

static void
start_with_few_descriptors(uint32_t waiting)
{
	const struct rlimit few = {.rlim_cur = FEW, .rlim_max = FEW};
	struct shai_control_settings settings = harness_settings();

	settings.mounts_max = 4096;
	settings.waiting = waiting;
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
	start_with_few_descriptors(64);
	serve_users();
}

/* Nor those of connections that wait. */
static void
connections_that_wait_leave_room_for_sessions(void **state)
{
	int waiting[WAITING];
	struct client busy[2];

	(void)state;
	start_with_few_descriptors(WAITING);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    HARNESS_TEST(directories_that_are_kept_keep_nobody_out, &h),
	    HARNESS_TEST(connections_that_wait_leave_room_for_sessions, &h),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
