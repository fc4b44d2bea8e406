/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opens conduits by id: natively if the session's capability set covers them, else by
 * asking the monitor.
 */
#include "documents.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "classes.h"
#include "counters.h"
#include "directories.h"
#include "exchange.h"
#include "failure.h"
#include "transfers.h"
#include "view.h"

/*
 * A group of ids that is opened together. It has as many ids as may still be needed,
 * so that one request to the monitor covers all of them.
 */
struct round {
	size_t count;
	uint32_t conduit[SHAI_BATCH_MAX];
	int descriptor[SHAI_BATCH_MAX]; /* -1: not open */
	size_t asked_count;
	size_t asked[SHAI_BATCH_MAX]; /* indices of those that the monitor is asked about */
};

/*
 * Finds the place of a conduit of this class for a native open. Returns the directory
 * and writes the name beneath it, or returns -1 if it is not to be opened natively.
 */
static int
native_place(const struct shai_session *session, uint32_t class, uint32_t conduit,
    char name[SHAI_VIEW_NAME_SIZE])
{
	if (class == 0 || shai_mode_is_dynamic(session->mode))
		return -1;
	shai_view_name(class, conduit, name);
	if (session->mode == SHAI_MODE_BASELINE)
		return SHAI_FD_CAPABILITY;
	if (!shai_backend_holds_directories())
		return shai_class_position(session->classes, session->class_count, class) <
			       session->class_count
			   ? SHAI_FD_CAPABILITY
			   : -1;
	shai_view_name_in_class(conduit, name);
	return shai_directory_of_class(session, class);
}

/* Opens natively. Returns a descriptor, or -1 if this is not possible, or no longer. */
static int
open_natively(const struct shai_session *session, uint32_t conduit)
{
	char name[SHAI_VIEW_NAME_SIZE];
	uint32_t class = shai_class_of(conduit);
	uint32_t tried = 0;

	/*
	 * The second attempt is for a conduit whose class has changed in the
	 * meantime.
	 */
	for (int attempt = 0; attempt < 2; attempt++) {
		int directory = native_place(session, class, conduit, name);
		int descriptor;

		if (class == tried || directory < 0)
			return -1;
		descriptor = shai_backend_open_in_view(directory, name);
		if (descriptor >= 0)
			return descriptor;
		if (errno != ENOENT)
			return -1;
		tried = class;
		class = shai_class_of(conduit);
	}
	return -1;
}

static void
close_round(struct round *round)
{
	for (size_t i = 0; i < round->count; i++)
		if (round->descriptor[i] >= 0)
			(void)close(round->descriptor[i]);
	round->count = 0;
}

/*
 * Opens conduits[0..count) natively, until needed are open or needed are left for the
 * monitor. Returns how many ids it has consumed.
 */
static size_t
begin_round(struct round *round, const struct shai_session *session, const uint32_t *conduits,
    size_t count, size_t needed)
{
	size_t opened = 0;
	size_t i;

	round->count = 0;
	round->asked_count = 0;
	for (i = 0; i < count && opened < needed && round->asked_count < needed; i++) {
		int descriptor = -1;

		if (conduits[i] != 0)
			descriptor = open_natively(session, conduits[i]);
		if (descriptor >= 0)
			opened++;
		else if (conduits[i] != 0 && session->mode != SHAI_MODE_BASELINE)
			round->asked[round->asked_count++] = round->count;
		round->conduit[round->count] = conduits[i];
		round->descriptor[round->count++] = descriptor;
	}
	shai_count(fast_opens, opened);
	return i;
}

/*
 * Puts the answer's descriptors into the round. Returns NULL, or what is wrong with
 * the answer.
 */
static const char *
distribute(struct round *round, const struct shai_opened *answer, struct shai_message *message)
{
	size_t granted = 0;
	size_t next = 0;

	for (size_t i = 0; i < round->asked_count; i++)
		granted += answer->status[i] == 0;
	if (granted != message->descriptor_count)
		return "descriptors that do not match its grants";
	for (size_t i = 0; i < round->asked_count; i++)
		if (answer->status[i] == 0)
			round->descriptor[round->asked[i]] = shai_message_take(message, next++);
	return NULL;
}

/*
 * Takes over a capability set that has grown. Returns false if the message brings none, or
 * a wrong one.
 */
static bool
take_grown(struct shai_session *session, struct shai_message *message)
{
	uint32_t before = session->class_count;
	struct shai_grown head;

	if (shai_decode_grown(message->bytes, &head, session->classes) != NULL ||
	    message->descriptor_count != head.directory_count)
		return false;
	if (head.class_count < before) /* shai_reset clears no more than class_count */
		memset(session->classes + head.class_count, 0,
		    (before - head.class_count) * sizeof(session->classes[0]));
	session->class_count = head.class_count;
	shai_directories_take(session, message, 0, head.directory_count);
	return true;
}

/* Whether a message comes before the answer to a bound session's question, and was taken over. */
static bool
precedes_answer(struct shai_session *session, struct shai_message *message)
{
	if (message->descriptor_count == 0 && shai_transfers_keep(message->bytes))
		return true;
	return shai_backend_holds_directories() && take_grown(session, message);
}

int
shai_receive_answer(struct shai_session *session, struct shai_message *message)
{
	do
		if (shai_exchange_receive(message) != 0)
			return -1;
	while (session != NULL && precedes_answer(session, message));
	return 0;
}

/*
 * Asks the monitor about the conduits that could not be opened natively. Returns 0,
 * or -1 after shai_fail.
 */
static int
ask_monitor(struct shai_session *session, struct round *round)
{
	struct shai_open request;
	struct shai_opened answer;
	struct shai_message message;
	const char *problem;

	memset(&request, 0, sizeof(request));
	shai_encode_header(&request.header, SHAI_OPEN, sizeof(request), shai_exchange_sequence());
	request.count = (uint32_t)round->asked_count;
	for (size_t i = 0; i < round->asked_count; i++)
		request.conduit[i] = round->conduit[round->asked[i]];
	shai_count(slow_opens, round->asked_count);
	if (shai_exchange_send(&request, sizeof(request)) != 0)
		return -1;
	if (shai_receive_answer(session, &message) != 0)
		return -1;
	problem =
	    shai_decode_opened(message.bytes, request.header.sequence, request.count, &answer);
	if (problem == NULL)
		problem = distribute(round, &answer, &message);
	if (problem != NULL)
		return shai_exchange_refuse(&message, "SHAI_OPENED", problem);
	return 0;
}

/*
 * Passes at most max of the open descriptors to the caller, in order. Returns how
 * many.
 */
static size_t
finish_round(
    struct round *round, struct shai_session *session, struct shai_document *out, size_t max)
{
	size_t filled = 0;

	for (size_t i = 0; i < round->count; i++) {
		if (round->descriptor[i] < 0) {
			session->withheld++;
		} else if (filled < max) {
			out[filled].conduit = round->conduit[i];
			out[filled++].descriptor = round->descriptor[i];
			round->descriptor[i] = -1;
		}
	}
	close_round(round);
	return filled;
}

ssize_t
shai_documents_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max)
{
	struct round round;
	size_t filled = 0;
	size_t used = 0;

	session->withheld = 0;
	while (used < count && filled < max) {
		used += begin_round(&round, session, conduits + used, count - used, max - filled);
		if (round.asked_count > 0 && ask_monitor(session, &round) != 0) {
			int error = errno;

			close_round(&round);
			while (filled > 0)
				(void)close(out[--filled].descriptor);
			errno = error;
			return shai_session_break(session);
		}
		filled += finish_round(&round, session, out + filled, max - filled);
	}
	shai_count(dropped_transfers, session->withheld);
	return (ssize_t)filled;
}

ssize_t
shai_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max)
{
	if (session->state != SHAI_SESSION_BOUND)
		return shai_fail(ENOTCONN, "open: the session is not bound to a user");
	if (count > SHAI_BATCH_MAX)
		return shai_fail(EINVAL, "open: more than %d conduits at once", SHAI_BATCH_MAX);
	return shai_documents_open(session, conduits, count, out, max);
}
