/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "records.h"

#define POLICY "private(owner: \"alice\")"

struct offered_record {
	struct shai_offered head;
	char choice[SHAI_OFFERED_MAX + 1][SHAI_POLICY_MAX];
};

static struct shai_session session;
static struct shai_offer offer;
static struct offered_record offered;
static char reason[SHAI_REASON_MAX];
static const unsigned char signature[SHAI_SIGNATURE_SIZE] = {7, 8, 9};

/* An offer of count policies, whose length it returns. */
static size_t
fill_offered(const struct fake_monitor *fake, uint32_t count)
{
	size_t length = sizeof(offered.head) + count * sizeof(offered.choice[0]);

	memset(&offered, 0, sizeof(offered));
	shai_encode_header(&offered.head.header, SHAI_OFFERED, length, fake->sequence);
	offered.head.count = count;
	strcpy(offered.head.conduit, "/friends/alice/1");
	strcpy(offered.head.nonce, "abc");
	strcpy(offered.head.policy, POLICY);
	for (uint32_t i = 0; i < count; i++)
		(void)snprintf(offered.choice[i], sizeof(offered.choice[i]), "policy%u()", i);
	return length;
}

static void
queue_chosen(struct fake_monitor *fake, int32_t status, const char *why)
{
	struct shai_chosen answer;

	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_CHOSEN, sizeof(answer), fake->sequence);
	answer.status = status;
	EXPECT(shai_encode_text(answer.reason, sizeof(answer.reason), why) == 0);
	fake_send(fake, &answer, sizeof(answer), NULL, 0);
}

static void
an_offer_comes_from_the_monitor(struct fake_monitor *fake, size_t count)
{
	struct shai_choices request;
	size_t length;

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	length = fill_offered(fake, (uint32_t)count);
	fake_send(fake, &offered, length, NULL, 0);
	EXPECT(shai_choices(&session, 77, &offer) == 0);
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_CHOICES && request.header.size == sizeof(request));
	EXPECT(request.conduit == 77 && request.reserved == 0);
	EXPECT(strcmp(offer.conduit, "/friends/alice/1") == 0 && strcmp(offer.nonce, "abc") == 0);
	EXPECT(strcmp(offer.policy, POLICY) == 0 && offer.count == count);
	EXPECT(memcmp(offer.choice, offered.choice, count * sizeof(offer.choice[0])) == 0);
}

static void
a_choice_goes_to_the_monitor(struct fake_monitor *fake, size_t variant)
{
	struct shai_choose request;

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	queue_chosen(fake, variant == 0 ? 0 : ESTALE, variant == 0 ? "" : "too late");
	strcpy(reason, "of before");
	if (variant == 0) {
		EXPECT(shai_choose(&session, 77, POLICY, signature, reason) == 0);
		EXPECT(strcmp(reason, "") == 0);
	} else {
		EXPECT(shai_choose(&session, 77, POLICY, signature, reason) == -1);
		EXPECT(errno == ESTALE && strcmp(reason, "too late") == 0);
		EXPECT(strstr(shai_reason(), "too late") != NULL);
	}
	EXPECT(session.state == SHAI_SESSION_BOUND);
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_CHOOSE && request.header.size == sizeof(request));
	EXPECT(request.conduit == 77 && request.reserved == 0);
	EXPECT(strcmp(request.policy, POLICY) == 0);
	EXPECT(memcmp(request.signature, signature, sizeof(signature)) == 0);
}

static void
what_is_refused_leaves_the_session(struct fake_monitor *fake, size_t variant)
{
	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	memset(&offered, 0, sizeof(offered));
	shai_encode_header(
	    &offered.head.header, SHAI_OFFERED, sizeof(offered.head), fake->sequence);
	offered.head.status = EACCES;
	fake_send(fake, &offered, sizeof(offered.head), NULL, 0);
	EXPECT(shai_choices(&session, 77, &offer) == -1 && errno == EACCES);
	EXPECT(session.state == SHAI_SESSION_BOUND);
}

static void
what_cannot_be_chosen_is_not_asked_for(struct fake_monitor *fake, size_t variant)
{
	char name[SHAI_POLICY_MAX + 1];
	char byte;

	memset(name, 'x', sizeof(name));
	name[SHAI_POLICY_MAX] = '\0';
	if (variant != 0)
		fake_bind(fake, &session, variant == 1 ? SHAI_MODE_BASELINE : SHAI_MODE_SHAI, 2);
	if (variant < 2) {
		const int want = variant == 0 ? ENOTCONN : EOPNOTSUPP;

		EXPECT(shai_choices(&session, 1, &offer) == -1 && errno == want);
		EXPECT(shai_choose(&session, 1, POLICY, signature, reason) == -1 && errno == want);
	} else {
		EXPECT(shai_choose(&session, 1, name, signature, reason) == -1 &&
		       errno == ENAMETOOLONG);
	}
	EXPECT(recv(fake->socket, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void
a_spoiled_offer_breaks_the_session(struct fake_monitor *fake, size_t variant)
{
	int descriptor = fake_descriptor();
	size_t length;

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	length = fill_offered(fake, variant == 1 ? SHAI_OFFERED_MAX + 1 : 2);
	if (variant == 0)
		offered.head.count = 3;
	else if (variant == 2)
		memset(offered.choice[1], 'x', sizeof(offered.choice[1]));
	else if (variant == 3)
		memset(offered.head.nonce, 'x', sizeof(offered.head.nonce));
	else if (variant == 4)
		memset(offered.head.conduit, 'x', sizeof(offered.head.conduit));
	else if (variant == 5)
		memset(offered.head.policy, 'x', sizeof(offered.head.policy));
	else if (variant == 6)
		offered.head.status = EACCES; /* and yet it offers something */
	else if (variant == 7)
		offered.head.header.sequence--;
	else if (variant == 8)
		length--;
	fake_send(fake, &offered, length, &descriptor, variant == 9);
	EXPECT(shai_choices(&session, 1, &offer) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
}

static void
a_spoiled_answer_breaks_the_session(struct fake_monitor *fake, size_t variant)
{
	struct shai_chosen answer;
	int descriptor = fake_descriptor();

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_CHOSEN, sizeof(answer), fake->sequence);
	if (variant == 0)
		answer.status = -EACCES;
	else if (variant == 1)
		answer.reserved = 1;
	else if (variant == 2)
		memset(answer.reason, 'x', sizeof(answer.reason));
	else if (variant == 3)
		answer.header.type = SHAI_WRITTEN;
	fake_send(fake, &answer, sizeof(answer), &descriptor, variant == 4);
	EXPECT(shai_choose(&session, 1, POLICY, signature, reason) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
	EXPECT(strcmp(reason, "") == 0);
}

/* The session may end by its own choice. */
static void
a_session_that_ends_is_broken(struct fake_monitor *fake, size_t variant)
{
	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	EXPECT(shutdown(fake->socket, SHUT_WR) == 0);
	EXPECT(shai_choose(&session, 1, POLICY, signature, reason) == -1);
	EXPECT(errno == ECONNRESET && session.state == SHAI_SESSION_BROKEN);
}

RUN(an_offer_comes_from_the_monitor, SHAI_OFFERED_MAX + 1)
RUN(a_choice_goes_to_the_monitor, 2)
RUN(what_is_refused_leaves_the_session, 1)
RUN(what_cannot_be_chosen_is_not_asked_for, 3)
RUN(a_spoiled_offer_breaks_the_session, 10)
RUN(a_spoiled_answer_breaks_the_session, 5)
RUN(a_session_that_ends_is_broken, 1)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_offer_comes_from_the_monitor),
	    cmocka_unit_test(test_a_choice_goes_to_the_monitor),
	    cmocka_unit_test(test_what_is_refused_leaves_the_session),
	    cmocka_unit_test(test_what_cannot_be_chosen_is_not_asked_for),
	    cmocka_unit_test(test_a_spoiled_offer_breaks_the_session),
	    cmocka_unit_test(test_a_spoiled_answer_breaks_the_session),
	    cmocka_unit_test(test_a_session_that_ends_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
