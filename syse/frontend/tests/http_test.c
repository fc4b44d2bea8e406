/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests over a socket pair, in every way they can be cut into pieces.
 */
#include "http.h"

#include <http_parser.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "parameters.h"

static const struct http_timeouts SHORT = {.idle = 30, .request = 30};
static struct http_connection connection;
static struct http_request request;

static int
open_pair(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	http_open(&connection, ends[0], 1000);
	return ends[1];
}

static void
close_pair(int client)
{
	close(client);
	close(connection.descriptor);
}

static void
send_text(int client, const char *text, size_t size)
{
	assert_int_equal(write(client, text, size), size);
}

static const char TWO[] =
    "POST /session?x HTTP/1.1\r\nAccept: text/html\r\naccept: a/b\r\nSec-Fetch-Site: cross-site\r\n"
    "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nConnection: close\r\n\r\n";

static void
expect_two(void)
{
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_COMPLETE);
	assert_int_equal(request.method, HTTP_POST);
	assert_int_equal(request.target_length, 10);
	assert_memory_equal(request.target, "/session?x", 10);
	assert_int_equal(request.accept_length, 13);
	assert_memory_equal(request.accept, "text/html,a/b", 13);
	assert_int_equal(request.body_length, 3);
	assert_memory_equal(request.body, "abc", 3);
	assert_true(request.cross_site);
	assert_true(request.keep_alive);
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_COMPLETE);
	assert_int_equal(request.method, HTTP_GET);
	assert_int_equal(request.body_length, 0);
	assert_false(request.cross_site);
	assert_false(request.keep_alive);
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_GONE);
}

/* A datagram socket keeps the pieces apart: each read returns one. */
static void
test_two_requests_cut_anywhere(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < sizeof TWO - 1; cut++) {
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		http_open(&connection, ends[0], 1000);
		send_text(ends[1], TWO, cut);
		send_text(ends[1], TWO + cut, sizeof TWO - 1 - cut);
		shutdown(ends[1], SHUT_WR);
		expect_two();
		close_pair(ends[1]);
	}
}

struct refusal {
	const char *text;
	int status;
};

static const struct refusal REFUSALS[] = {
    {"nonsense\r\n\r\n", 400},
    {"GET /\r\n\r\n", 505},
    {"GET / HTTP/2.0\r\n\r\n", 505},
    {"GET / HTTP/1.1\r\n: x\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n", 408},
    {"GET / HTTP/1.1\r\nHost:", 408},
    {"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nx", 408},
    {"CONNECT a:1 HTTP/1.1\r\n\r\n", 405},
};

static void
test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++) {
		int client = open_pair();

		send_text(client, REFUSALS[i].text, strlen(REFUSALS[i].text));
		assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_REFUSED);
		assert_int_equal(request.refusal_status, REFUSALS[i].status);
		assert_non_null(request.refusal_reason);
		close_pair(client);
	}
}

struct origin {
	const char *headers;
	bool cross_site;
};

static const struct origin ORIGINS[] = {
    {"", false},
    {"Sec-Fetch-Site: same-origin\r\n", false},
    {"Sec-Fetch-Site: none\r\n", false},
    {"Sec-Fetch-Site: same-site\r\n", false},
    {"Sec-Fetch-Site: cross-site\r\n", true},
    {"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: cross-site\r\n", true},
    {"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", true},
    {"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: none\r\n", true},
    {"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", true},
    {"Sec-Fetch-Site: something\r\n", true},
};

static void
test_other_sites_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ORIGINS / sizeof ORIGINS[0]; i++) {
		int client = open_pair();
		char text[256];
		int size =
		    snprintf(text, sizeof text, "GET / HTTP/1.1\r\n%s\r\n", ORIGINS[i].headers);

		send_text(client, text, (size_t)size);
		assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_COMPLETE);
		assert_int_equal(request.cross_site, ORIGINS[i].cross_site);
		close_pair(client);
	}
}

/* size bytes of header are accepted exactly when they do not exceed the limit. */
static void
test_header_limit(void **state)
{
	static char text[HTTP_HEADER_MAX + 4096];
	static const int SIZES[] = {
	    100, HTTP_HEADER_MAX - 200, HTTP_HEADER_MAX + 1, HTTP_HEADER_MAX + 2000};

	(void)state;
	for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
		size_t size = (size_t)SIZES[i];
		int client = open_pair();
		bool fits = size <= HTTP_HEADER_MAX;

		memset(text, 'x', sizeof text);
		memcpy(text, "GET / HTTP/1.1\r\nA: ", 19);
		memcpy(text + size - 4, "\r\n\r\n", 4);
		send_text(client, text, size);
		assert_int_equal(
		    http_read(&connection, &SHORT, &request), fits ? HTTP_COMPLETE : HTTP_REFUSED);
		if (!fits)
			assert_int_equal(request.refusal_status, 431);
		close_pair(client);
	}
}

static void
test_an_upgrade_is_ignored(void **state)
{
	static const char TEXT[] =
	    "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\n\r\n";
	int client = open_pair();

	(void)state;
	send_text(client, TEXT, sizeof TEXT - 1);
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_COMPLETE);
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_COMPLETE);
	assert_int_equal(request.target_length, 2);
	close_pair(client);
}

static void
test_idle_and_closed_ones_are_gone(void **state)
{
	int client = open_pair();

	(void)state;
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_GONE);
	shutdown(client, SHUT_WR);
	assert_int_equal(http_read(&connection, &SHORT, &request), HTTP_GONE);
	close_pair(client);
}

static void
test_lingering_ends_one_direction_and_empties_the_other(void **state)
{
	int client = open_pair();
	char byte;

	(void)state;
	send_text(client, TWO, sizeof TWO - 1);
	http_linger(&connection);
	assert_int_equal(read(client, &byte, 1), 0);
	assert_int_equal(
	    read(connection.descriptor, &byte, 1), -1); /* would block: all is discarded */
	close_pair(client);
}

static void
test_accept(void **state)
{
	static const struct {
		const char *accept;
		bool html;
	} CASES[] = {{"", false}, {"*/*", false}, {"text/html", true}, {"TEXT/HTML", true},
	    {"application/json", false}, {"text/html, application/json", false},
	    {"text/html;q=0.5, application/json;q=0.4", true},
	    {"text/html;q=0.4,application/json;q=0.5", false}, {"text/html;q=0", false},
	    {"text/html;q=", false}, {"text/html;q=1.000000000000000", true}, {"text/html;q", true},
	    {"text/html,application/xhtml+xml,*/*;q=0.8", true}, {",,,", false}};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
		assert_int_equal(
		    http_prefers_html(CASES[i].accept, strlen(CASES[i].accept)), CASES[i].html);
}

static void
test_parameters(void **state)
{
	static const struct {
		const char *query;
		enum parameter_outcome outcome;
		const char *value;
	} CASES[] = {{"q=a", PARAMETER_FOUND, "a"}, {"x=1&q=a%20b+c&q=z", PARAMETER_FOUND, "a b c"},
	    {"q=%C3%a4", PARAMETER_FOUND, "\xc3\xa4"}, {"q=%2B%26%3D", PARAMETER_FOUND, "+&="},
	    {"q=", PARAMETER_FOUND, ""}, {"q=+a%0a", PARAMETER_FOUND, "a"},
	    {"q", PARAMETER_MISSING, ""}, {"", PARAMETER_MISSING, ""},
	    {"qq=a&r=q=b", PARAMETER_MISSING, ""}, {"&&&", PARAMETER_MISSING, ""},
	    {"q=%", PARAMETER_MALFORMED, ""}, {"q=%1", PARAMETER_MALFORMED, ""},
	    {"q=%g0", PARAMETER_MALFORMED, ""}, {"q=%00", PARAMETER_MALFORMED, ""},
	    {"q=%1b", PARAMETER_MALFORMED, ""}, {"q=%80", PARAMETER_MALFORMED, ""},
	    {"q=12345678", PARAMETER_TOO_LONG, ""}};
	char out[8];
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_int_equal(parameter_text(CASES[i].query, strlen(CASES[i].query), "q", out,
				     sizeof out, &length),
		    CASES[i].outcome);
		if (CASES[i].outcome == PARAMETER_FOUND)
			assert_string_equal(out, CASES[i].value);
	}
}

static int
prepare(void **state)
{
	(void)state;
	http_prepare();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_requests_cut_anywhere),
	    cmocka_unit_test(test_refusals),
	    cmocka_unit_test(test_other_sites_are_told_apart),
	    cmocka_unit_test(test_header_limit),
	    cmocka_unit_test(test_an_upgrade_is_ignored),
	    cmocka_unit_test(test_idle_and_closed_ones_are_gone),
	    cmocka_unit_test(test_lingering_ends_one_direction_and_empties_the_other),
	    cmocka_unit_test(test_accept),
	    cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
