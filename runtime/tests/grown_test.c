/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Capability sets that grow while a session uses them.
 */
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

static struct shai_session session;
static struct shai_document documents[SHAI_BATCH_MAX];

struct grown {
	struct shai_grown head;
	uint32_t classes[FAKE_CLASSES];
};

/* A record about a set of classes 1..count, with directories of the first ones. */
static struct grown
grown_to(uint32_t count, uint32_t directories)
{
	struct grown record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_GROWN,
	    offsetof(struct grown, classes) + count * sizeof(record.classes[0]), 0);
	record.head.class_count = count;
	record.head.directory_count = directories;
	for (uint32_t i = 0; i < count; i++)
		record.classes[i] = i + 1;
	return record;
}

/* Sends it with the directories of the first count classes. */
static void
send_grown(struct fake_monitor *fake, const struct grown *record, uint32_t count)
{
	int directory[FAKE_CLASSES] = {0};

	for (uint32_t i = 0; i < count; i++)
		directory[i] = fake_class_directory(fake, i + 1);
	fake_send(fake, record, record->head.header.size, directory, count);
	fake->sequence--; /* it was no answer */
	for (uint32_t i = 0; i < count; i++)
		EXPECT(close(directory[i]) == 0);
}

/* A transfer may come in between. Afterwards the session asks no more, and holds no more. */
static void
a_set_that_grows_or_shrinks_is_taken_over(struct fake_monitor *fake, size_t variant)
{
	static const uint32_t counts[][2] = {{1, FAKE_CLASSES}, {FAKE_CLASSES, 2}, {2, 2}};
	const uint32_t before = counts[variant][0], after = counts[variant][1];
	const uint32_t covered = 1, asked = FAKE_CONDUITS + 5; /* class 2; none */
	struct grown record = grown_to(after, after);
	struct shai_open request;
	size_t held;

	held = fake_descriptor_count();
	fake_bind(fake, &session, SHAI_MODE_SHAI, before);
	EXPECT(FAKE_CLASS(covered) == 2);
	fake_transfer(fake, 7, &covered, 1);
	send_grown(fake, &record, after);
	fake_queue_opened(fake, 1, (int32_t[]){EACCES});
	EXPECT(shai_open(&session, &asked, 1, documents, 1) == 0);
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(session.class_count == after && session.directory_count == after);
	EXPECT(fake_descriptor_count() == held + after);
	for (uint32_t i = after; i < before; i++)
		EXPECT(session.classes[i] == 0);
	EXPECT(shai_channel_receive(&session, 7, documents, 1) == 1);
	fake_expect_document(&documents[0], covered);
	EXPECT(recv(fake->socket, &request, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

/* A wrong record, or one that comes without its directories, ends the session. */
static void
a_spoiled_set_is_not_taken_over(struct fake_monitor *fake, size_t variant)
{
	const uint32_t asked = FAKE_CONDUITS + 5;
	struct grown record = grown_to(3, 3);
	size_t before;

	fake_bind(fake, &session, SHAI_MODE_SHAI, 2);
	before = fake_descriptor_count();
	if (variant == 1)
		record.classes[2] = record.classes[1];
	if (variant == 2)
		record.head.header.sequence = 1;
	send_grown(fake, &record, variant == 0 ? 2 : 3);
	EXPECT(shai_open(&session, &asked, 1, documents, 1) == -1);
	EXPECT(errno == EPROTO && session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
}

RUN(a_set_that_grows_or_shrinks_is_taken_over, 3)
RUN(a_spoiled_set_is_not_taken_over, 3)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_set_that_grows_or_shrinks_is_taken_over),
	    cmocka_unit_test(test_a_spoiled_set_is_not_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
