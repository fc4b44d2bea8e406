/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "records.h"

struct registered_record {
	struct shai_registered head;
	struct shai_capability entry[2];
};

static struct registered_record
registered(const struct fake_monitor *fake, enum shai_mode mode)
{
	struct registered_record record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_REGISTERED, sizeof(record), fake->sequence);
	record.head.mode = mode;
	record.head.capability_count = 2;
	record.entry[0] = (struct shai_capability){
	    "/shai/view", SHAI_FD_CAPABILITY, SHAI_KIND_DIRECTORY, SHAI_RIGHT_READ};
	record.entry[1] = (struct shai_capability){
	    "/shai/pipe/queries/0", SHAI_FD_PIPE, SHAI_KIND_PIPE, SHAI_RIGHT_WRITE};
	return record;
}

static void
table_is_loaded(struct fake_monitor *fake, size_t variant)
{
	struct registered_record answer = registered(fake, SHAI_MODE_SHAI);
	struct shai_register request;
	char rest[64];

	(void)variant;
	EXPECT(shai_mode() == SHAI_MODE_SHAI);
	fake_send(fake, &answer, sizeof(answer), NULL, 0);
	EXPECT(shai_register("worker", 0) == 0);
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_REGISTER && request.header.size == sizeof(request));
	EXPECT(strcmp(request.instance, "worker") == 0);
	EXPECT(shai_capability_count() == 2 && shai_capability_at(2) == NULL);
	EXPECT(strcmp(shai_capability_at(1)->prefix, "/shai/pipe/queries/0") == 0);
	EXPECT(shai_path_lookup("/shai/./view/../view/3/0/17", rest, sizeof(rest)) == 16);
	EXPECT(strcmp(rest, "3/0/17") == 0);
	EXPECT(shai_path_lookup("/shai/view/../../etc/passwd", rest, sizeof(rest)) == -1);
	EXPECT(errno == ENOENT);
	EXPECT(shai_path_lookup("/shai/view/3/0/17", rest, 6) == -1 && errno == ENAMETOOLONG);
}

static void
mode_needs_agreement(struct fake_monitor *fake, size_t variant)
{
	static const struct {
		const char *environment;
		enum shai_mode mode;
		int result;
	} cases[] = {
	    {NULL, SHAI_MODE_SHAI, 0}, {NULL, SHAI_MODE_BASELINE, 0},
	    {"baseline", SHAI_MODE_BASELINE, 0}, {"baseline", SHAI_MODE_SHAI, -1},
	    {"shai", SHAI_MODE_BASELINE, -1},
	    {"shai", SHAI_MODE_DYNAMIC, 0}, /* switched while the task ran */
	};
	struct registered_record answer = registered(fake, cases[variant].mode);

	if (cases[variant].environment != NULL)
		EXPECT(setenv(SHAI_ENVIRONMENT_MODE, cases[variant].environment, 1) == 0);
	fake_send(fake, &answer, sizeof(answer), NULL, 0);
	EXPECT(shai_register("worker", 0) == cases[variant].result);
	if (cases[variant].result == 0)
		EXPECT(shai_mode() == cases[variant].mode);
	else
		EXPECT(errno == EPROTO);
}

static void
refusal_is_reported(struct fake_monitor *fake, size_t variant)
{
	struct registered_record answer = registered(fake, SHAI_MODE_SHAI);

	(void)variant;
	answer.head.status = EACCES;
	answer.head.capability_count = 0;
	answer.head.header.size = sizeof(answer.head);
	strcpy(answer.head.reason, "no such instance");
	fake_send(fake, &answer, sizeof(answer.head), NULL, 0);
	EXPECT(shai_register("nobody", 0) == -1 && errno == EACCES);
	EXPECT(strstr(shai_reason(), "no such instance") != NULL);
	EXPECT(strstr(shai_reason(), "nobody") != NULL);
	EXPECT(shai_capability_count() == 0);
}

/* Each answer must leave the table empty, the connection ended, no descriptor behind. */
static void
bad_answer_fails_closed(struct fake_monitor *fake, size_t variant)
{
	struct registered_record answer = registered(fake, SHAI_MODE_SHAI);
	static uint8_t oversized[SHAI_WIRE_MAX + 1];
	int descriptors[2] = {fake_descriptor(), fake_descriptor()};
	size_t before = fake_descriptor_count();
	uint8_t rest[sizeof(struct shai_register)];

	switch (variant) {
	case 0:
		fake_send(fake, &answer, sizeof(answer) - 1, NULL, 0);
		break;
	case 1:
		fake_send(fake, oversized, sizeof(oversized), NULL, 0);
		break;
	case 2:
		answer.head.header.version++;
		fake_send(fake, &answer, sizeof(answer), NULL, 0);
		break;
	case 3:
		answer.head.header.type = SHAI_BOUND;
		fake_send(fake, &answer, sizeof(answer), NULL, 0);
		break;
	case 4:
		fake_send(fake, &answer, sizeof(answer), descriptors, 2);
		break;
	default:
		answer.head.header.sequence++;
		fake_send(fake, &answer, sizeof(answer), descriptors, 1);
	}
	EXPECT(shai_register("worker", 0) == -1 && errno == EPROTO);
	EXPECT(shai_capability_count() == 0);
	EXPECT(fake_descriptor_count() == before);
	EXPECT(fake_receive(fake, rest, sizeof(rest)) == sizeof(rest));
	EXPECT(fake_receive(fake, rest, sizeof(rest)) == 0);
	EXPECT(shai_register("worker", 0) == -1 && errno == ECONNRESET);
}

static void
gone_monitor_fails_closed(struct fake_monitor *fake, size_t variant)
{
	char name[SHAI_NAME_MAX + 1];

	(void)variant;
	memset(name, 'x', sizeof(name));
	name[SHAI_NAME_MAX] = '\0';
	EXPECT(shai_register(name, 0) == -1 && errno == ENAMETOOLONG);
	EXPECT(close(fake->socket) == 0);
	EXPECT(shai_register("worker", 0) == -1 && errno == ECONNRESET);
}

static void
a_table_is_loaded_at_registration(void **state)
{
	(void)state;
	assert_int_equal(fake_run(table_is_loaded, 0), 0);
}

static void
baseline_needs_launcher_and_monitor_to_agree(void **state)
{
	(void)state;
	for (size_t variant = 0; variant < 6; variant++)
		assert_int_equal(fake_run(mode_needs_agreement, variant), 0);
}

static void
a_refusal_carries_its_reason(void **state)
{
	(void)state;
	assert_int_equal(fake_run(refusal_is_reported, 0), 0);
}

static void
bad_answers_fail_closed(void **state)
{
	(void)state;
	for (size_t variant = 0; variant < 6; variant++)
		assert_int_equal(fake_run(bad_answer_fails_closed, variant), 0);
	assert_int_equal(fake_run(gone_monitor_fails_closed, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_table_is_loaded_at_registration),
	    cmocka_unit_test(baseline_needs_launcher_and_monitor_to_agree),
	    cmocka_unit_test(a_refusal_carries_its_reason),
	    cmocka_unit_test(bad_answers_fail_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
