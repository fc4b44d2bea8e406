/* SPDX-License-Identifier: BSD-2-Clause */
#include "documents_asked.h"

#include <errno.h>
#include <sys/socket.h>

#define TWO 16 /* bytes of a transfer of two numbers */

struct question
question_about(struct harness *h, uint32_t count)
{
	struct question question;

	(void)harness_receive(h, SHAI_CONTROL_ASK_RECORD, &question, sizeof(question));
	EXPECT(question.asked.count == count);
	return question;
}

void
question_answer(struct harness *h, const struct question *question, const int32_t *status,
    const struct descriptors *with)
{
	struct {
		struct shai_control_relay head;
		struct shai_opened record;
	} answer = {.head = {.header = control_header(SHAI_CONTROL_RELAY, sizeof(answer)),
			.session = question->head.session},
	    .record = {.header = {.version = SHAI_WIRE_VERSION,
			   .type = SHAI_OPENED,
			   .size = sizeof(answer.record),
			   .sequence = question->asked.header.sequence},
		.count = question->asked.count}};

	memcpy(answer.record.status, status, answer.record.count * sizeof(*status));
	harness_send(h, &answer, sizeof(answer), with);
}

void
question_refuse(struct harness *h, uint32_t id)
{
	struct question question = question_about(h, 1);

	EXPECT(question.asked.conduit[0] == id);
	question_answer(h, &question, (int32_t[]){EACCES}, NULL);
}

uint32_t
query_of(const struct client *client, uint32_t query)
{
	return shai_first_query(client->connected.nonce) + query;
}

void
channel_write(const struct harness *h, const struct client *client, uint32_t query, uint32_t first,
    uint32_t second)
{
	struct shai_transfer record = {
	    .query = query_of(client, query), .conduit = {first, second}};

	EXPECT(send(h->channel, &record, TWO, 0) == TWO);
}

void
expect_transfer(const struct passed *passed, const struct client *client, uint32_t query,
    uint32_t first, uint32_t second)
{
	EXPECT(passed->transfer.query == query_of(client, query));
	EXPECT(passed->transfer.conduit[0] == first);
	EXPECT(passed->transfer.conduit[1] == second);
}

void
client_passed(const struct client *client, uint32_t query, uint32_t first, uint32_t second)
{
	struct passed passed;

	EXPECT(client_report(client, &passed, sizeof(passed)).size == sizeof(passed.header) + TWO);
	EXPECT(passed.header.type == SHAI_TRANSFER);
	expect_transfer(&passed, client, query, first, second);
}
