/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes to conduits that have a type: the monitor makes them.
 */
#include <errno.h>
#include <string.h>

#include "documents.h"
#include "exchange.h"
#include "failure.h"
#include "shai.h"
#include "shai_text.h"

/* Not on the stack: that of a sealed worker's session is small. */
static struct {
	struct shai_write head;
	uint8_t content[SHAI_CONTENT_MAX];
} request;

static int
check(const struct shai_session *session, const char *conduit, size_t size, uint32_t flags)
{
	if (session != NULL && session->state != SHAI_SESSION_BOUND)
		return shai_fail(ENOTCONN, "write: the session is not bound to a user");
	if ((session != NULL ? session->mode : shai_mode()) == SHAI_MODE_BASELINE)
		return shai_fail(EOPNOTSUPP, "write: in mode baseline the monitor writes nothing");
	if (size > SHAI_CONTENT_MAX)
		return shai_fail(EMSGSIZE, "write: %zu bytes; at most %d are written at once", size,
		    SHAI_CONTENT_MAX);
	if ((flags & ~SHAI_WRITE_REPLACE) != 0)
		return shai_fail(EINVAL, "write: unknown flags 0x%x", flags & ~SHAI_WRITE_REPLACE);
	if (!shai_text_valid(conduit))
		return shai_fail(ENOENT, "write: no conduit has a name that is not UTF-8");
	return 0;
}

/* Waits for the answer. Returns 0, or -1 after shai_fail, with *broken if the answer is none. */
static int
receive(struct shai_session *session, const char *conduit, uint64_t sequence, bool *broken)
{
	struct shai_written answer;
	struct shai_message message;
	const char *problem;

	*broken = true;
	if (shai_receive_answer(session, &message) != 0)
		return -1;
	problem = shai_decode_written(message.bytes, sequence, &answer);
	if (problem == NULL && message.descriptor_count != 0)
		problem = "unexpected descriptors";
	if (problem != NULL)
		return shai_exchange_refuse(&message, "SHAI_WRITTEN", problem);
	*broken = false;
	if (answer.status != 0)
		return shai_fail(answer.status, "write to %s: %s", conduit, answer.reason);
	return 0;
}

int
shai_write(struct shai_session *session, const char *conduit, const void *content, size_t size,
    uint32_t flags)
{
	bool broken = true;
	int result;

	if (check(session, conduit, size, flags) != 0)
		return -1;
	memset(&request.head, 0, sizeof(request.head));
	if (shai_encode_text(request.head.conduit, sizeof(request.head.conduit), conduit) != 0)
		return shai_fail(
		    ENAMETOOLONG, "write: the name is longer than %d bytes", SHAI_PREFIX_MAX - 1);
	shai_encode_header(&request.head.header, SHAI_WRITE, sizeof(request.head) + size,
	    shai_exchange_sequence());
	request.head.flags = flags;
	request.head.size = (uint32_t)size;
	if (size > 0)
		memcpy(request.content, content, size);
	result = shai_exchange_send(&request, sizeof(request.head) + size);
	if (result == 0)
		result = receive(session, conduit, request.head.header.sequence, &broken);
	if (result != 0 && broken && session != NULL)
		return shai_session_break(session);
	return result;
}
