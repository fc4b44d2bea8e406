/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Escaping, and texts that do not fit.
 */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "utf8.h"

struct escape {
	const char *text, *json, *html;
};

static const struct escape ESCAPES[] = {
    {"", "\"\"", ""}, {"plain", "\"plain\"", "plain"},
    {"<script>", "\"\\u003cscript\\u003e\"", "&lt;script&gt;"},
    {"\"&'\\", "\"\\\"\\u0026'\\\\\"", "&quot;&amp;&#39;\\"},
    {"a\nb\tc\r", "\"a\\nb\\tc\\r\"", "a\nb\tc\r"},
    {"\x01\x7f", "\"\\u0001\\u007f\"", UTF8_REPLACEMENT UTF8_REPLACEMENT},
    {"\xc3\xa4\xf0\x9f\x98\x80", "\"\xc3\xa4\xf0\x9f\x98\x80\"", "\xc3\xa4\xf0\x9f\x98\x80"},
    {"\xff<", "\"" UTF8_REPLACEMENT "\\u003c\"", UTF8_REPLACEMENT "&lt;"},
    {"\xc3", "\"" UTF8_REPLACEMENT "\"", UTF8_REPLACEMENT},
    {"\xc0\xaf", "\"" UTF8_REPLACEMENT UTF8_REPLACEMENT "\"",
	UTF8_REPLACEMENT UTF8_REPLACEMENT}, /* overlong "/" */
    {"\xed\xa0\x80", "\"" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT "\"",
	UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT}, /* a surrogate */
};

static void
assert_text(const struct text *text, const char *expected)
{
	assert_false(text->overflowed);
	assert_int_equal(text->length, strlen(expected));
	assert_memory_equal(text->data, expected, text->length);
}

static void
test_escapes(void **state)
{
	char storage[256];
	struct text text;

	(void)state;
	for (size_t i = 0; i < sizeof ESCAPES / sizeof ESCAPES[0]; i++) {
		text_init(&text, storage, sizeof storage);
		text_json_string(&text, ESCAPES[i].text);
		assert_text(&text, ESCAPES[i].json);
		text_init(&text, storage, sizeof storage);
		text_html_string(&text, ESCAPES[i].text);
		assert_text(&text, ESCAPES[i].html);
	}
}

/*
 * For any bytes, the result is JSON that another implementation reads, and HTML
 * without markup.
 */
static void
test_any_bytes_stay_text(void **state)
{
	unsigned seed = 20180423;
	char data[64], storage[512];
	struct text text;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t size = (size_t)(round % (int)sizeof data);
		json_t *parsed;

		for (size_t i = 0; i < size; i++) {
			seed = seed * 1103515245 + 12345;
			data[i] = (char)(seed >> 16);
		}
		text_init(&text, storage, sizeof storage);
		text_json(&text, data, size);
		assert_null(memchr(text.data, '<', text.length));
		parsed = json_loadb(text.data, text.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		assert_non_null(parsed);
		json_decref(parsed);
		text_init(&text, storage, sizeof storage);
		text_html(&text, data, size);
		assert_true(utf8_valid(text.data, text.length));
		for (const char *special = "<>\"'"; *special != '\0'; special++)
			assert_null(memchr(text.data, *special, text.length));
	}
}

static void
test_overflow_keeps_what_is_there(void **state)
{
	char storage[8];
	struct text text;

	(void)state;
	text_init(&text, storage, 5);
	text_string(&text, "abc");
	text_string(&text, "def");
	assert_true(text.overflowed);
	text_string(&text, "d"); /* would fit, but must not hide that something is missing */
	assert_int_equal(text.length, 3);
}

static void
test_numbers(void **state)
{
	static const uint8_t BYTES[] = {0x00, 0x9f, 0xff};
	char storage[64];
	struct text text;

	(void)state;
	text_init(&text, storage, sizeof storage);
	text_number(&text, 0);
	text_string(&text, " ");
	text_number(&text, UINT64_MAX);
	text_string(&text, " ");
	text_hex(&text, BYTES, sizeof BYTES);
	assert_text(&text, "0 18446744073709551615 009fff");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_escapes),
	    cmocka_unit_test(test_any_bytes_stay_text),
	    cmocka_unit_test(test_overflow_keeps_what_is_there),
	    cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
