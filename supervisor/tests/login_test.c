/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who proves to be whom: the signed text, its signature, and the reasons of refusals.
 */
#include "testing.h"

#include <sodium.h>

#include "login.h"
#include "text.h"

static const uint8_t nonce[SHAI_NONCE_SIZE] = {0x01, 0xfe, [31] = 0x7f};
static const char text_of_alice[] =
    "shai-session-v2\nlocal\nsyse\nalice\n"
    "01fe00000000000000000000000000000000000000000000000000000000007f";

static struct keys keys;
static uint8_t secret[crypto_sign_SECRETKEYBYTES];

static int
register_alice(void **state)
{
	struct shai_control_key record = {.present = 1};

	(void)state;
	text_copy(record.principal, sizeof(record.principal), "alice");
	crypto_sign_keypair(record.key, secret);
	return keys_apply(&keys, &record);
}

static int
forget_everybody(void **state)
{
	(void)state;
	keys_free(&keys);
	return 0;
}

static const struct login local = {.service = "local", .pipeline = "syse", .nonce = nonce};

static struct shai_authenticate
request(const char *principal, const char *text)
{
	struct shai_authenticate result = {.header.type = SHAI_AUTHENTICATE};

	text_copy(result.principal, sizeof(result.principal), principal);
	crypto_sign_detached(
	    result.signature, NULL, (const unsigned char *)text, strlen(text), secret);
	return result;
}

static void
the_signed_text_names_service_and_pipeline(void **state)
{
	char text[LOGIN_TEXT_MAX];

	(void)state;
	assert_int_equal(login_text(&local, "alice", text), sizeof(text_of_alice) - 1);
	assert_memory_equal(text, text_of_alice, sizeof(text_of_alice) - 1);
}

static void
the_longest_names_fit(void **state)
{
	char name[SHAI_NAME_MAX], text[LOGIN_TEXT_MAX];
	const struct login longest = {.service = name, .pipeline = name, .nonce = nonce};

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(login_text(&longest, name, text), 16 + 3 * SHAI_NAME_MAX + 64);
}

static void
no_name_imitates_another_line(void **state)
{
	const struct login two_lines = {.service = "a\nb", .pipeline = "syse", .nonce = nonce};
	const struct login empty = {.service = "local", .pipeline = "", .nonce = nonce};
	char text[LOGIN_TEXT_MAX];

	(void)state;
	assert_int_equal(login_text(&two_lines, "alice", text), 0);
	assert_int_equal(login_text(&empty, "alice", text), 0);
	assert_int_equal(login_text(&local, "alice\nx", text), 0);
	assert_int_equal(login_text(&local, "", text), 0);
}

static void
a_signature_proves_the_principal(void **state)
{
	struct shai_authenticate genuine = request("alice", text_of_alice);
	char reason[SHAI_REASON_MAX];
	struct principal *principal = login_verify(&local, &keys, &genuine, reason);

	(void)state;
	assert_non_null(principal);
	assert_string_equal(principal->name, "alice");
}

/* Each is a genuine signature of alice for something else. */
static void
signatures_for_something_else_are_refused(void **state)
{
	static const uint8_t other_nonce[SHAI_NONCE_SIZE] = {2};
	const struct login others[] = {{.service = "other", .pipeline = "syse", .nonce = nonce},
	    {.service = "local", .pipeline = "other", .nonce = nonce},
	    {.service = "local", .pipeline = "syse", .nonce = other_nonce}};
	char reason[SHAI_REASON_MAX];
	struct shai_authenticate forged = request("alice", text_of_alice), version_1;

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		assert_null(login_verify(&others[i], &keys, &forged, reason));
		assert_string_equal(
		    reason, "the signature does not match alice's key and this connection's nonce");
	}
	version_1 =
	    request("alice", "shai-session-v1\nalice\n"
			     "01fe00000000000000000000000000000000000000000000000000000000007f");
	assert_null(login_verify(&local, &keys, &version_1, reason));
	forged.signature[5] ^= 1;
	assert_null(login_verify(&local, &keys, &forged, reason));
	memset(forged.signature, 0, sizeof(forged.signature));
	assert_null(login_verify(&local, &keys, &forged, reason));
}

static void
the_name_of_an_unknown_principal_is_quoted(void **state)
{
	static const struct {
		const char *name, *reason;
	} names[] = {
	    {"mallory", "principal \"mallory\" is not known; register its public key"},
	    {"a\"b\\c", "principal \"a\\\"b\\\\c\" is not known; register its public key"},
	    {"x\ny\x1b", "principal \"x\\x0ay\\x1b\" is not known; register its public key"},
	    {"", "principal \"\" is not known; register its public key"},
	};
	struct shai_authenticate longest = {.principal = ""};
	char reason[SHAI_REASON_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct shai_authenticate unknown = request(names[i].name, text_of_alice);

		assert_null(login_verify(&local, &keys, &unknown, reason));
		assert_string_equal(reason, names[i].reason);
	}
	memset(longest.principal, 0xfe, sizeof(longest.principal) - 1);
	assert_null(login_verify(&local, &keys, &longest, reason));
	assert_true(text_valid(reason, strlen(reason) + 1));
	assert_non_null(strstr(reason, "\" is not known; register its public key"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_signed_text_names_service_and_pipeline),
	    cmocka_unit_test(the_longest_names_fit),
	    cmocka_unit_test(no_name_imitates_another_line),
	    cmocka_unit_test(a_signature_proves_the_principal),
	    cmocka_unit_test(signatures_for_something_else_are_refused),
	    cmocka_unit_test(the_name_of_an_unknown_principal_is_quoted),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("login", tests, register_alice, forget_everybody);
}
