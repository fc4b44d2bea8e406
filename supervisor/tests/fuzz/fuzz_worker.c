/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker's messages under libFuzzer: each input is a conversation. Four bytes come before
 * each message: whether a user has logged in, the type if the header is made right, the
 * length, and how many zeros follow.
 */
#include "demand.h"
#include "keys.h"
#include "login.h"
#include "worker_records.h"

static void
check(const struct worker_record *record, const struct worker_conversation *conversation)
{
	static const uint8_t nonce[SHAI_NONCE_SIZE];
	const struct login login = {.service = "local", .pipeline = "syse", .nonce = nonce};
	const struct keys nobody = {NULL};
	char reason[SHAI_REASON_MAX], text[LOGIN_TEXT_MAX];

	switch (record->type) {
	case SHAI_AUTHENTICATE:
		demand(strlen(record->authenticate->principal) < SHAI_NAME_MAX);
		demand(login_text(&login, record->authenticate->principal, text) <= sizeof(text));
		demand(login_verify(&login, &nobody, record->authenticate, reason) == NULL);
		demand(strlen(reason) < sizeof(reason));
		break;
	case SHAI_OPEN:
		demand(conversation->bound && record->open->count <= SHAI_BATCH_MAX);
		break;
	case SHAI_WRITE:
		demand(conversation->bound && record->write->size <= SHAI_CONTENT_MAX);
		demand(sizeof(*record->write) + record->write->size == record->write->header.size);
		demand(strlen(record->write->conduit) < SHAI_PREFIX_MAX);
		break;
	case SHAI_CHOICES:
		demand(conversation->bound && record->choices->reserved == 0);
		break;
	case SHAI_CHOOSE:
		demand(conversation->bound && record->choose->reserved == 0);
		demand(strlen(record->choose->policy) < SHAI_POLICY_MAX);
		break;
	default:
		demand(record->type == SHAI_RESET);
		demand(worker_counters(record->reset, 1).fast_opens <= 20000);
		break;
	}
}

/* One message of size bytes, with zeros after it. Returns whether the session goes on. */
static int
say(const uint8_t *data, size_t size, const uint8_t control[4],
    struct worker_conversation *conversation)
{
	size_t zeros = control[3];
	uint8_t *copy = message_copy(data, size, zeros);
	struct worker_record record;
	const char *problem;

	if (size + zeros >= sizeof(struct shai_header) && control[1] != 0) {
		struct shai_header *header = (void *)copy;

		header->type = control[1];
		header->version = SHAI_WIRE_VERSION;
		header->size = (uint32_t)(size + zeros);
	}
	problem = worker_decode((struct bytes){copy, size + zeros, 0}, conversation, &record);
	if (problem == NULL)
		check(&record, conversation);
	free(copy);
	return problem == NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct worker_conversation conversation = {.bound = false};
	int messages = 0;

	while (size >= 4) {
		const uint8_t *control = data;
		size_t length = control[2] < size - 4 ? control[2] : size - 4;

		conversation.bound = (control[0] & 1) != 0;
		if (!say(data + 4, length, control, &conversation))
			break;
		demand(control[1] != SHAI_AUTHENTICATE || ++messages <= 3);
		data += 4 + length;
		size -= 4 + length;
	}
	return 0;
}
