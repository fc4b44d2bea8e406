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

#define CONDUIT "/support/accesses"

static struct shai_session session;
static char content[SHAI_CONTENT_MAX + 1];

static void
queue_written(struct fake_monitor *fake, int32_t status, const char *reason)
{
	struct shai_written answer;

	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_WRITTEN, sizeof(answer), fake->sequence);
	answer.status = status;
	EXPECT(shai_encode_text(answer.reason, sizeof(answer.reason), reason) == 0);
	fake_send(fake, &answer, sizeof(answer), NULL, 0);
}

static void
expect_write(struct fake_monitor *fake, size_t size, uint32_t flags)
{
	static struct {
		struct shai_write head;
		char content[SHAI_CONTENT_MAX];
	} request;

	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request.head) + size);
	EXPECT(request.head.header.type == SHAI_WRITE);
	EXPECT(request.head.header.size == sizeof(request.head) + size);
	EXPECT(request.head.size == size && request.head.flags == flags);
	EXPECT(strcmp(request.head.conduit, CONDUIT) == 0);
	EXPECT(memcmp(request.content, content, size) == 0);
}

/* By a session, and by a task without one. */
static void
content_goes_to_the_monitor(struct fake_monitor *fake, size_t variant)
{
	static const size_t sizes[] = {0, 1, SHAI_CONTENT_MAX};
	const size_t size = sizes[variant % 3];
	const bool in_session = variant >= 3;

	memset(content, 'x', sizeof(content));
	if (in_session)
		fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	queue_written(fake, 0, "");
	EXPECT(shai_write(
		   in_session ? &session : NULL, CONDUIT, content, size, SHAI_WRITE_REPLACE) == 0);
	expect_write(fake, size, SHAI_WRITE_REPLACE);
	queue_written(fake, EACCES, "no");
	EXPECT(shai_write(in_session ? &session : NULL, CONDUIT, content, size, 0) == -1);
	EXPECT(errno == EACCES && strcmp(shai_reason(), "write to " CONDUIT ": no") == 0);
	expect_write(fake, size, 0);
	EXPECT(!in_session || session.state == SHAI_SESSION_BOUND);
}

/* What comes before the answer is for later. */
static void
a_transfer_may_come_before_the_answer(struct fake_monitor *fake, size_t variant)
{
	static const uint32_t conduit = 1;
	struct shai_document document;

	(void)variant;
	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	fake_transfer(fake, 7, &conduit, 1);
	queue_written(fake, 0, "");
	EXPECT(shai_write(&session, CONDUIT, content, 1, 0) == 0);
	EXPECT(shai_channel_receive(&session, 7, &document, 1) == 1);
}

static void
what_cannot_be_written_is_not_asked_for(struct fake_monitor *fake, size_t variant)
{
	char name[SHAI_PREFIX_MAX + 1];
	char byte;

	memset(name, 'x', sizeof(name));
	name[SHAI_PREFIX_MAX] = '\0';
	if (variant != 0)
		fake_bind(fake, &session, variant == 1 ? SHAI_MODE_BASELINE : SHAI_MODE_SHAI, 2);
	if (variant == 0)
		EXPECT(shai_write(&session, CONDUIT, content, 1, 0) == -1 && errno == ENOTCONN);
	if (variant == 1)
		EXPECT(shai_write(&session, CONDUIT, content, 1, 0) == -1 && errno == EOPNOTSUPP);
	if (variant == 2)
		EXPECT(shai_write(&session, CONDUIT, content, SHAI_CONTENT_MAX + 1, 0) == -1 &&
		       errno == EMSGSIZE);
	if (variant == 3)
		EXPECT(shai_write(&session, name, content, 1, 0) == -1 && errno == ENAMETOOLONG);
	if (variant == 4)
		EXPECT(
		    shai_write(&session, "/support/\xff", content, 1, 0) == -1 && errno == ENOENT);
	if (variant == 5)
		EXPECT(shai_write(&session, CONDUIT, content, 1, SHAI_WRITE_REPLACE << 1) == -1 &&
		       errno == EINVAL);
	EXPECT(session.state != SHAI_SESSION_BROKEN);
	EXPECT(recv(fake->socket, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void
a_spoiled_answer_breaks_the_session(struct fake_monitor *fake, size_t variant)
{
	struct shai_written answer;
	int descriptor = fake_descriptor();
	size_t length = sizeof(answer);

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_WRITTEN, sizeof(answer), fake->sequence);
	if (variant == 0)
		answer.status = -EACCES;
	else if (variant == 1)
		answer.reserved = 1;
	else if (variant == 2)
		memset(answer.reason, 'x', sizeof(answer.reason));
	else if (variant == 3)
		length--;
	else if (variant == 4)
		answer.header.sequence--;
	else
		answer.header.type = SHAI_OPENED;
	fake_send(fake, &answer, length, &descriptor, variant == 6);
	EXPECT(shai_write(&session, CONDUIT, content, 1, 0) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
}

RUN(content_goes_to_the_monitor, 6)
RUN(a_transfer_may_come_before_the_answer, 1)
RUN(what_cannot_be_written_is_not_asked_for, 6)
RUN(a_spoiled_answer_breaks_the_session, 7)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_content_goes_to_the_monitor),
	    cmocka_unit_test(test_a_transfer_may_come_before_the_answer),
	    cmocka_unit_test(test_what_cannot_be_written_is_not_asked_for),
	    cmocka_unit_test(test_a_spoiled_answer_breaks_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
