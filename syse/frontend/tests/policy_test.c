/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a document's owner may choose is told, and a choice is passed on as it was signed.
 */
#include "policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stand_in.h"

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ODD_DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define SIGNATURE DIGITS DIGITS
#define PRIVATE "private(owner: \"alice\")"
#define CHOICE "{\"policy\":\"private(owner: \\\"alice\\\")\",\"signature\":\"" SIGNATURE "\"}"

static struct shai_offer offer = {.conduit = "/corpus/friends/alice/<1>.txt",
    .nonce = DIGITS,
    .policy = "friends(owner: \"alice\")",
    .count = 2,
    .choice = {PRIVATE, "friends(owner: \"alice\")"}};
static struct assets assets;
static struct worker worker;
static struct http_request request;
static struct response response;

static int
begin(void **state)
{
	(void)state;
	memset(&stand_in, 0, sizeof stand_in);
	memset(&worker, 0, sizeof worker);
	memset(&request, 0, sizeof request);
	stand_in.offer = &offer;
	worker.session.state = SHAI_SESSION_BOUND;
	strcpy(worker.session.pipeline, "syse");
	response_begin(&response, &assets);
	return 0;
}

static void
send_choice(const char *body)
{
	request.body_length = strlen(body);
	assert_true(request.body_length <= sizeof request.body);
	memcpy(request.body, body, request.body_length);
	response_begin(&response, &assets);
	policy_choose(&worker, 17, &request, &response);
}

static void
answered(int status, const char *body)
{
	assert_int_equal(response.status, status);
	assert_int_equal(response.body.length, strlen(body));
	assert_memory_equal(response.body.data, body, response.body.length);
}

static void
an_offer_is_told(void **state)
{
	(void)state;
	policy_offer(&worker, 17, &response);
	answered(200, "{\"conduit\":\"/corpus/friends/alice/\\u003c1\\u003e.txt\","
		      "\"policy\":\"friends(owner: \\\"alice\\\")\",\"choices\":["
		      "\"private(owner: \\\"alice\\\")\",\"friends(owner: \\\"alice\\\")\"],"
		      "\"nonce\":\"" DIGITS "\",\"pipeline\":\"syse\"}\n");
}

static void
nothing_to_choose_is_refused(void **state)
{
	(void)state;
	stand_in.offer = NULL;
	policy_offer(&worker, 17, &response);
	answered(403, "{\"error\":\"the stand-in refuses\"}\n");
	assert_false(response.close);
}

static void
a_choice_is_passed_on(void **state)
{
	(void)state;
	send_choice(CHOICE);
	answered(200, "{\"policy\":\"private(owner: \\\"alice\\\")\"}\n");
	assert_string_equal(stand_in.chosen, "17 " PRIVATE " " SIGNATURE);
}

static void
a_refused_choice_is_told(void **state)
{
	(void)state;
	stand_in.choose_error = EACCES;
	send_choice(CHOICE);
	answered(403, "{\"error\":\"the signature is another's\"}\n");
	assert_false(response.close);
	stand_in.choose_error = ECONNRESET; /* the session is over */
	send_choice(CHOICE);
	answered(403, "{\"error\":\"the stand-in refuses\"}\n");
	assert_true(response.close);
}

#define SHAPE "the body is not {\\\"policy\\\": text, \\\"signature\\\": 128 hexadecimal digits}"
#define SIZE "the policy is empty or too long"
#define DIGIT "the signature is not 128 hexadecimal digits"

static void
malformed_choices_go_nowhere(void **state)
{
	static const struct {
		const char *body, *wrong;
	} malformed[] = {
	    {"", SHAPE},
	    {"[]", SHAPE},
	    {"{\"policy\":\"private()\"}", SHAPE},
	    {"{\"signature\":\"" SIGNATURE "\"}", SHAPE},
	    {"{\"policy\":1,\"signature\":\"" SIGNATURE "\"}", SHAPE},
	    {"{\"policy\":\"private()\",\"signature\":7}", SHAPE},
	    {"{\"policy\":\"a\\u0000b\",\"signature\":\"" SIGNATURE "\"}", SHAPE},
	    {"{\"policy\":\"a()\",\"policy\":\"b()\",\"signature\":\"" SIGNATURE "\"}", SHAPE},
	    {CHOICE "{}", SHAPE},
	    {"{\"policy\":\"\",\"signature\":\"" SIGNATURE "\"}", SIZE},
	    {"{\"policy\":\"private()\",\"signature\":\"" DIGITS "\"}", DIGIT},
	    {"{\"policy\":\"private()\",\"signature\":\"" SIGNATURE "00\"}", DIGIT},
	    {"{\"policy\":\"private()\",\"signature\":\"x" DIGITS ODD_DIGITS "\"}", DIGIT},
	    {"{\"policy\":\"private()\",\"signature\":\"" DIGITS ODD_DIGITS "x\"}", DIGIT},
	};
	char answer[256];

	(void)state;
	for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
		send_choice(malformed[i].body);
		snprintf(answer, sizeof answer, "{\"error\":\"choose a policy: %s\"}\n",
		    malformed[i].wrong);
		answered(400, answer);
		assert_string_equal(stand_in.chosen, "");
	}
}

static void
a_policy_has_a_greatest_length(void **state)
{
	char longest[SHAI_POLICY_MAX + 256];

	(void)state;
	for (int extra = 1; extra >= 0; extra--) {
		snprintf(longest, sizeof longest, "{\"signature\":\"%s\",\"policy\":\"%0*d\"}",
		    SIGNATURE, SHAI_POLICY_MAX - 1 + extra, 7);
		send_choice(longest);
		assert_int_equal(response.status, extra == 0 ? 200 : 400);
		assert_int_equal(stand_in.chosen[0] == '\0', extra);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(an_offer_is_told, begin),
	    cmocka_unit_test_setup(nothing_to_choose_is_refused, begin),
	    cmocka_unit_test_setup(a_choice_is_passed_on, begin),
	    cmocka_unit_test_setup(a_refused_choice_is_told, begin),
	    cmocka_unit_test_setup(malformed_choices_go_nowhere, begin),
	    cmocka_unit_test_setup(a_policy_has_a_greatest_length, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
