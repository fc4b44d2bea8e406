/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy.h"

#include <sodium.h>
#include <string.h>

#include "shallow.h"

struct choice {
	char policy[SHAI_POLICY_MAX];
	uint8_t signature[SHAI_SIGNATURE_SIZE];
};

static void
refuse(const struct worker *worker, struct response *response, const char *reason)
{
	response_error(response, 403, "%s", reason);
	response->close = worker->session.state != SHAI_SESSION_BOUND;
}

void
policy_offer(struct worker *worker, uint32_t id, struct response *response)
{
	static struct shai_offer offer; /* not on the stack: that of a session is small */
	struct text *body = &response->body;

	if (shai_choices(&worker->session, id, &offer) != 0) {
		refuse(worker, response, shai_reason());
		return;
	}
	text_string(body, "{\"conduit\":");
	text_json_string(body, offer.conduit);
	text_string(body, ",\"policy\":");
	text_json_string(body, offer.policy);
	text_string(body, ",\"choices\":[");
	for (uint32_t i = 0; i < offer.count; i++) {
		if (i > 0)
			text_string(body, ",");
		text_json_string(body, offer.choice[i]);
	}
	text_string(body, "],\"nonce\":");
	text_json_string(body, offer.nonce);
	text_string(body, ",\"pipeline\":");
	text_json_string(body, worker->session.pipeline);
	text_string(body, "}\n");
}

/* Returns NULL, or what is wrong with the body. */
static const char *
read_choice(const json_t *root, struct choice *choice)
{
	const json_t *policy = json_object_get(root, "policy");
	const json_t *signature = json_object_get(root, "signature");
	size_t length = json_string_length(policy);

	if (!json_is_string(policy) || !json_is_string(signature))
		return "the body is not {\"policy\": text, \"signature\": 128 hexadecimal digits}";
	if (length == 0 || length >= sizeof choice->policy)
		return "the policy is empty or too long";
	if (json_string_length(signature) != 2 * SHAI_SIGNATURE_SIZE ||
	    sodium_hex2bin(choice->signature, sizeof choice->signature,
		json_string_value(signature), 2 * SHAI_SIGNATURE_SIZE, NULL, NULL, NULL) != 0)
		return "the signature is not 128 hexadecimal digits";
	memcpy(choice->policy, json_string_value(policy), length + 1);
	return NULL;
}

void
policy_choose(struct worker *worker, uint32_t id, const struct http_request *request,
    struct response *response)
{
	static struct choice choice;
	json_t *root = shallow_read(request->body, request->body_length);
	const char *wrong = read_choice(root, &choice);
	char reason[SHAI_REASON_MAX];

	json_decref(root);
	if (wrong != NULL) {
		response_error(response, 400, "choose a policy: %s", wrong);
		return;
	}
	if (shai_choose(&worker->session, id, choice.policy, choice.signature, reason) != 0) {
		refuse(worker, response, reason[0] != '\0' ? reason : shai_reason());
		return;
	}
	text_string(&response->body, "{\"policy\":");
	text_json_string(&response->body, choice.policy);
	text_string(&response->body, "}\n");
}
