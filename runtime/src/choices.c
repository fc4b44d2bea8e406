/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A user's choice of a document's policy. The monitor decides on it by the user's signature.
 */
#include <errno.h>
#include <string.h>

#include "documents.h"
#include "exchange.h"
#include "failure.h"
#include "shai.h"

static int
check(const struct shai_session *session)
{
	if (session->state != SHAI_SESSION_BOUND)
		return shai_fail(ENOTCONN, "choose a policy: the session is not bound to a user");
	if (session->mode == SHAI_MODE_BASELINE)
		return shai_fail(
		    EOPNOTSUPP, "choose a policy: in mode baseline the monitor decides nothing");
	return 0;
}

/* Sends a question and receives the record that answers it. Returns 0, or -1 after shai_fail. */
static int
ask(struct shai_session *session, const struct shai_header *request, struct shai_message *message)
{
	if (shai_exchange_send(request, request->size) != 0)
		return -1;
	return shai_receive_answer(session, message);
}

/* What there is to say of an answer that was decoded: a problem with it ends the session. */
static int
refuse(struct shai_session *session, struct shai_message *message, const char *record,
    const char *problem)
{
	(void)shai_exchange_refuse(message, record, problem);
	return shai_session_break(session);
}

int
shai_choices(struct shai_session *session, uint32_t conduit, struct shai_offer *offer)
{
	struct shai_choices request = {.conduit = conduit};
	struct shai_offered answer;
	struct shai_message message;
	const char *problem;

	if (check(session) != 0)
		return -1;
	shai_encode_header(
	    &request.header, SHAI_CHOICES, sizeof(request), shai_exchange_sequence());
	if (ask(session, &request.header, &message) != 0)
		return shai_session_break(session);
	problem =
	    shai_decode_offered(message.bytes, request.header.sequence, &answer, offer->choice);
	if (problem == NULL && message.descriptor_count != 0)
		problem = "unexpected descriptors";
	if (problem != NULL)
		return refuse(session, &message, "SHAI_OFFERED", problem);
	if (answer.status != 0)
		return shai_fail(answer.status,
		    "choices for document %u: its policy is not for this user to choose", conduit);
	memcpy(offer->conduit, answer.conduit, sizeof(offer->conduit));
	memcpy(offer->nonce, answer.nonce, sizeof(offer->nonce));
	memcpy(offer->policy, answer.policy, sizeof(offer->policy));
	offer->count = answer.count;
	return 0;
}

int
shai_choose(struct shai_session *session, uint32_t conduit, const char *policy,
    const unsigned char signature[SHAI_SIGNATURE_SIZE], char reason[SHAI_REASON_MAX])
{
	struct shai_choose request = {.conduit = conduit};
	struct shai_chosen answer;
	struct shai_message message;
	const char *problem;

	reason[0] = '\0';
	if (check(session) != 0)
		return -1;
	if (shai_encode_text(request.policy, sizeof(request.policy), policy) != 0)
		return shai_fail(ENAMETOOLONG, "choose a policy: its text is longer than %d bytes",
		    SHAI_POLICY_MAX - 1);
	memcpy(request.signature, signature, sizeof(request.signature));
	shai_encode_header(&request.header, SHAI_CHOOSE, sizeof(request), shai_exchange_sequence());
	if (ask(session, &request.header, &message) != 0)
		return shai_session_break(session);
	problem = shai_decode_chosen(message.bytes, request.header.sequence, &answer);
	if (problem == NULL && message.descriptor_count != 0)
		problem = "unexpected descriptors";
	if (problem != NULL)
		return refuse(session, &message, "SHAI_CHOSEN", problem);
	if (answer.status == 0)
		return 0;
	memcpy(reason, answer.reason, sizeof(answer.reason));
	return shai_fail(answer.status, "choose a policy for document %u: %s", conduit, reason);
}
