/* SPDX-License-Identifier: BSD-2-Clause */
#include "login.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "names.h"
#include "shallow.h"

struct claim {
	char principal[SHAI_NAME_MAX];
	uint8_t signature[SHAI_SIGNATURE_SIZE];
};

/* Describes the session, independently of its user. */
static void
append_session(struct text *body, const struct worker *worker)
{
	text_string(body, ",\"region\":");
	text_json_string(body, worker->session.region);
	text_string(body, ",\"mode\":");
	text_json_string(body, name_of_mode(worker->session.mode));
	text_string(body, ",\"instance\":");
	text_json_string(body, worker->session.instance);
	text_string(body, ",\"service\":");
	text_json_string(body, worker->session.service);
	text_string(body, ",\"pipeline\":");
	text_json_string(body, worker->session.pipeline);
	text_string(body, "}\n");
}

void
login_describe(const struct worker *worker, struct response *response)
{
	struct text *body = &response->body;

	text_string(body, "{\"nonce\":\"");
	text_hex(body, worker->session.nonce, sizeof worker->session.nonce);
	text_string(body, "\",\"principal\":");
	if (worker->principal[0] != '\0')
		text_json_string(body, worker->principal);
	else
		text_string(body, "null");
	append_session(body, worker);
}

/* Returns NULL, or what is wrong with the claim. */
static const char *
read_claim(const json_t *root, struct claim *claim)
{
	const json_t *principal = json_object_get(root, "principal");
	const json_t *signature = json_object_get(root, "signature");
	size_t length = json_string_length(principal), size;
	const char *name = json_string_value(principal);

	if (!json_is_object(root) || name == NULL || !json_is_string(signature))
		return "the body is not {\"principal\": name, \"signature\": 128 hexadecimal "
		       "digits}";
	if (length == 0 || length >= sizeof claim->principal)
		return "the principal's name is empty or exceeds 95 bytes";
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
			return "the principal's name has a control character";
	if (json_string_length(signature) != 2 * SHAI_SIGNATURE_SIZE ||
	    sodium_hex2bin(claim->signature, sizeof claim->signature, json_string_value(signature),
		2 * SHAI_SIGNATURE_SIZE, NULL, &size, NULL) != 0 ||
	    size != SHAI_SIGNATURE_SIZE)
		return "the signature is not 128 hexadecimal digits";
	memcpy(claim->principal, name, length + 1);
	return NULL;
}

/* Binds the session to its user. Returns NULL, or the reason for a refusal. */
static const char *
bind_session(struct worker *worker, const struct claim *claim)
{
	static char reason[512];

	if (shai_mode() == SHAI_MODE_BASELINE &&
	    !keys_verify(worker->keys, &worker->session, claim->principal, claim->signature, reason,
		sizeof reason))
		return reason;
	if (shai_authenticate(&worker->session, claim->principal, claim->signature) == 0)
		return NULL;
	return shai_reason()[0] != '\0' ? shai_reason() : strerror(errno);
}

static void
refuse_login(struct worker *worker, struct response *response, const char *reason)
{
	worker->failed_logins++;
	response->close = worker->failed_logins >= LOGIN_ATTEMPTS_MAX ||
			  worker->session.state != SHAI_SESSION_CONNECTED;
	response_error(response, 403, "log in: %s", reason);
}

void
login_attempt(struct worker *worker, const struct http_request *request, struct response *response)
{
	struct claim claim;
	const char *reason;
	json_t *root;

	if (worker->session.state == SHAI_SESSION_BOUND) {
		response_error(response, 409,
		    "this connection belongs to \"%s\"; DELETE /session ends it, another user "
		    "needs a new "
		    "one",
		    worker->principal);
		return;
	}
	root = shallow_read(request->body, request->body_length);
	reason = read_claim(root, &claim);
	json_decref(root);
	if (reason != NULL) {
		response_error(response, 400, "log in: %s", reason);
		return;
	}
	reason = bind_session(worker, &claim);
	if (reason != NULL) {
		refuse_login(worker, response, reason);
		return;
	}
	memcpy(worker->principal, claim.principal, sizeof worker->principal);
	text_string(&response->body, "{\"principal\":");
	text_json_string(&response->body, worker->principal);
	append_session(&response->body, worker);
}
