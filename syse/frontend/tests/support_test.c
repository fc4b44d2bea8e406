/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The support writes the entry about an access first, and then reads the document.
 */
#include "support.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "stand_in.h"

#define NAME "/corpus/private/alice/1.txt"

static struct settings settings;
static struct worker worker;
static struct document document;
static char reason[SUPPORT_REASON_MAX];

static int
begin(void **state)
{
	(void)state;
	memset(&stand_in, 0, sizeof stand_in);
	memset(&worker, 0, sizeof worker);
	stand_in.mode = SHAI_MODE_SHAI;
	stand_in.open_needs_entry = true;
	stand_in.opened = "title: A day\nowner: alice\nvisibility: private\n\nIt rained.\n";
	settings.fault = FAULT_NONE;
	worker.settings = &settings;
	strcpy(worker.principal, "erin");
	return 0;
}

static void
entries_are_in_canonical_form(void **state)
{
	char storage[256];
	struct text entry;

	(void)state;
	text_init(&entry, storage, sizeof storage);
	support_entry(&entry, "erin", "/corpus/a \"b\" \\.txt", 1798761600);
	assert_int_equal(entry.length,
	    strlen("access(\"erin\", \"/corpus/a \\\"b\\\" \\\\.txt\", 2027-01-01T00:00:00Z)\n"));
	assert_memory_equal(entry.data,
	    "access(\"erin\", \"/corpus/a \\\"b\\\" \\\\.txt\", 2027-01-01T00:00:00Z)\n",
	    entry.length);
}

static void
an_access_is_logged_first(void **state)
{
	static const char expected[] = SUPPORT_LOG " access(\"erin\", \"" NAME "\", ";

	(void)state;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 200);
	assert_memory_equal(stand_in.written, expected, sizeof expected - 1);
	assert_memory_equal(document.title, "A day", document.title_length);
	assert_int_equal(document.id, 17);
}

static void
nothing_is_read_if_the_entry_is_refused(void **state)
{
	(void)state;
	stand_in.write_error = EACCES;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 403);
	assert_int_equal(stand_in.opens, 0);
}

static void
a_document_that_is_withheld_is_refused(void **state)
{
	(void)state;
	stand_in.opened = NULL;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 403);
	assert_string_equal(reason, "you may not read the document");
}

/* With a fault the support reads whatever became of its entry: others have to stop it. */
static void
faults_read_without_a_proper_entry(void **state)
{
	(void)state;
	settings.fault = FAULT_SKIP_ENTRY;
	stand_in.open_needs_entry = false;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 200);
	assert_string_equal(stand_in.written, "");
	settings.fault = FAULT_FORGE_ENTRY;
	stand_in.write_error = EACCES;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 200);
	assert_null(strstr(stand_in.written, "erin"));
	settings.fault = FAULT_DATE_AHEAD;
	assert_int_equal(support_read(&worker, NAME, 17, &document, reason), 200);
	assert_non_null(strstr(stand_in.written, "erin"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(entries_are_in_canonical_form, begin),
	    cmocka_unit_test_setup(an_access_is_logged_first, begin),
	    cmocka_unit_test_setup(nothing_is_read_if_the_entry_is_refused, begin),
	    cmocka_unit_test_setup(a_document_that_is_withheld_is_refused, begin),
	    cmocka_unit_test_setup(faults_read_without_a_proper_entry, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
