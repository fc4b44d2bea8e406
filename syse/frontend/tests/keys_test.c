/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Keys as mode baseline reads them, and the signatures it accepts.
 */
#include "keys.h"

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define FACT(tuples) "{\"conduit\":\"population\",\"says\":\"key\",\"tuples\":" tuples "}\n"

static void
write_file(char path[], const char *text)
{
	int descriptor = mkstemp(path);

	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
	close(descriptor);
}

static void
test_what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text, *cause;
	} CASES[] = {{"", "contains no keys"}, {"{\"key\"", "line 1:"}, {FACT("7"), "not a fact"},
	    {FACT("[]"), "contains no keys"}, {FACT("[[\"a\"]]"), "not [principal, key]"},
	    {FACT("[[\"a\",\"00\"]]"), "not 64 hexadecimal digits"},
	    {FACT("[[\"a\",\"" ZEROS "00\"]]"), "not 64 hexadecimal digits"},
	    {FACT("[[\"a\",\"" ZEROS "\"],[\"a\",\"" ZEROS "\"]]"), "two keys"},
	    {"{}\n" FACT("[[\"a\",\"x\"]]"), "line 2: a key is not"}};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		char path[] = "/tmp/syse-keys-XXXXXX", reason[256] = "";
		struct keys keys;

		write_file(path, CASES[i].text);
		assert_false(keys_load(&keys, path, reason, sizeof reason));
		assert_non_null(strstr(reason, CASES[i].cause));
		assert_non_null(strstr(reason, path));
		unlink(path);
	}
}

static void
test_signatures(void **state)
{
	unsigned char public[32], secret[64], signature[64];
	static struct shai_session session = {
	    .nonce = {1, 2, 3}, .service = "example.org:443", .pipeline = "syse"};
	char path[] = "/tmp/syse-keys-XXXXXX", hex[65], text[512], reason[256];
	char signed_text[SHAI_SIGNED_TEXT_SIZE];
	char *changed[] = {(char *)session.nonce, session.service, session.pipeline};
	struct keys keys;

	(void)state;
	crypto_sign_keypair(public, secret);
	sodium_bin2hex(hex, sizeof hex, public, sizeof public);
	snprintf(text, sizeof text, FACT("[[\"bob\",\"" ZEROS "\"],[\"alice\",\"%s\"]]"), hex);
	write_file(path, text);
	assert_true(keys_load(&keys, path, reason, sizeof reason));
	unlink(path);
	crypto_sign_detached(signature, NULL, (unsigned char *)signed_text,
	    shai_signed_text(&session, "alice", signed_text), secret);
	assert_true(keys_verify(&keys, &session, "alice", signature, reason, sizeof reason));
	assert_false(keys_verify(&keys, &session, "bob", signature, reason, sizeof reason));
	assert_non_null(strstr(reason, "does not match \"bob\""));
	assert_false(keys_verify(&keys, &session, "carol", signature, reason, sizeof reason));
	assert_non_null(strstr(reason, "no public key is registered for principal \"carol\""));
	assert_false(keys_verify(&keys, &session, "", signature, reason, sizeof reason));
	for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
		(*changed[i])++;
		assert_false(
		    keys_verify(&keys, &session, "alice", signature, reason, sizeof reason));
		assert_non_null(strstr(reason, session.service));
		(*changed[i])--;
	}
	for (size_t i = 0; i < sizeof signature; i++) {
		signature[i] ^= 1;
		assert_false(
		    keys_verify(&keys, &session, "alice", signature, reason, sizeof reason));
		signature[i] ^= 1;
	}
	keys_release(&keys);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_wrong_is_named),
	    cmocka_unit_test(test_signatures),
	};

	return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
