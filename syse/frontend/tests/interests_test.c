/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Histories become topics, which are written in the place of those before.
 */
#include "interests.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "click.h"
#include "stand_in.h"

#define QUERIES "*3\r\n$11\r\nship \"moon\"\r\n$4\r\nship\r\n$4\r\nrain\r\n"
#define CLICKS "*1\r\n$9\r\n17 Anchor\r\n"

static struct settings settings = {.answer_timeout = 50};
static struct assets assets;
static struct worker worker;
static struct interests interests;
static int client, queries;

static int
load(void **state)
{
	char reason[512];

	(void)state;
	assert_true(topics_load(&assets.topics, SYSE_ASSETS "/topics.txt", reason, sizeof reason));
	return 0;
}

static int
unload(void **state)
{
	(void)state;
	topics_release(&assets.topics);
	return 0;
}

static void
begin(const char *replies)
{
	memset(&stand_in, 0, sizeof stand_in);
	memset(&worker, 0, sizeof worker);
	memset(&interests, 0, sizeof interests);
	settings.fault = FAULT_NONE;
	stand_in.mode = SHAI_MODE_SHAI;
	stand_in.replies = replies;
	worker.settings = &settings;
	worker.assets = &assets;
	strcpy(worker.principal, "alice");
	client = stand_in_session(&worker.session, true, &queries);
}

static void
end(void)
{
	keyvalue_release(&worker.keyvalue);
	stand_in_end(&worker.session);
	close(client);
	close(queries);
}

static void
both_histories_become_topics(void **state)
{
	(void)state;
	begin(QUERIES CLICKS);
	assert_int_equal(interests_update(&worker, &interests), 200);
	assert_string_equal(
	    stand_in.written, "topics:alice topic(\"nautical\")\ntopic(\"weather\")\n");
	assert_int_equal(stand_in.written_flags, SHAI_WRITE_REPLACE);
	assert_int_equal(interests.count, 2);
	assert_string_equal(interests.topic[0], "nautical");
	end();
	begin("*0\r\n"); /* whoever has searched for nothing has no topics any more */
	assert_int_equal(interests_update(&worker, &interests), 200);
	assert_string_equal(stand_in.written, "topics:alice ");
	assert_int_equal(interests.count, 0);
	end();
}

static void
the_fault_writes_the_newest_query(void **state)
{
	(void)state;
	begin(QUERIES CLICKS);
	settings.fault = FAULT_QUERY_AS_TOPIC;
	assert_int_equal(interests_update(&worker, &interests), 200);
	assert_string_equal(stand_in.written, "topics:alice topic(\"ship \\\"moon\\\"\")\n");
	end();
}

static void
what_goes_wrong_is_told(void **state)
{
	static const struct {
		const char *replies;
		int error, status;
		const char *reason;
	} cases[] = {
	    {QUERIES CLICKS, EACCES, 403, "write your topics: the stand-in refuses"},
	    {"-NOPERM no\r\n", 0, 503, "read your histories: read a history: NOPERM no"},
	    {QUERIES "$1\r\nx\r\n", 0, 503, "the store's answer is not a list"},
	    {"*1\r\n:7\r\n", 0, 200, ""}, /* an entry that is no text has no topics */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		begin(cases[i].replies);
		stand_in.write_error = cases[i].error;
		assert_int_equal(interests_update(&worker, &interests), cases[i].status);
		if (strstr(interests.reason, cases[i].reason) == NULL)
			fail_msg("%s instead of %s", interests.reason, cases[i].reason);
		if (cases[i].status == 503)
			assert_int_equal(worker.session.keyvalue, -1);
		end();
	}
}

static void
clicks_are_of_documents_that_open(void **state)
{
	struct document document;
	char reason[256];

	(void)state;
	begin(":1\r\n+OK\r\n");
	stand_in.opened = "title: A day\nowner: alice\nvisibility: private\n\nIt rained.\n";
	assert_int_equal(click_record(&worker, 17, &document, reason, sizeof reason), 200);
	assert_memory_equal(document.title, "A day", document.title_length);
	stand_in.opened = NULL;
	assert_int_equal(click_record(&worker, 17, &document, reason, sizeof reason), 403);
	end();
	begin("-NOPERM no\r\n");
	stand_in.opened = "title: A day\n\n";
	assert_int_equal(click_record(&worker, 17, &document, reason, sizeof reason), 503);
	assert_string_equal(reason, "remember what you opened: append to a history: NOPERM no");
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(both_histories_become_topics),
	    cmocka_unit_test(the_fault_writes_the_newest_query),
	    cmocka_unit_test(what_goes_wrong_is_told),
	    cmocka_unit_test(clicks_are_of_documents_that_open),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
