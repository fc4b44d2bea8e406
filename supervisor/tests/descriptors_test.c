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

static struct harness h;

static void
start_with_few_descriptors(void)
{
	const struct rlimit few = {.rlim_cur = FEW, .rlim_max = FEW};
	struct shai_control_settings settings = harness_settings();

	settings.mounts_max = 4096;
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

/* Directories that are kept for later sessions must not take the descriptors of these. */
static void
directories_that_are_kept_keep_nobody_out(void **state)
{
	struct client client;

	(void)state;
	start_with_few_descriptors();
	for (uint32_t i = 0; i < USERS; i++) {
		set_of_others(100 + i * SHAI_DIRECTORIES_MAX);
		client = client_begin(&h);
		assert_int_equal(client_bind(&client, "alice").descriptors, SHAI_DIRECTORIES_MAX);
		client_reset(&client, 0);
		assert_true(client_closed(&client));
		close(client.socket);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    HARNESS_TEST(directories_that_are_kept_keep_nobody_out, &h),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
