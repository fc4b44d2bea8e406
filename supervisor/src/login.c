/* SPDX-License-Identifier: BSD-2-Clause */
#include "login.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static_assert(SHAI_KEY_SIZE == crypto_sign_PUBLICKEYBYTES, "an Ed25519 key");
static_assert(SHAI_SIGNATURE_SIZE == crypto_sign_BYTES, "an Ed25519 signature");

static bool
one_line(const char *name)
{
	return name[0] != '\0' && strchr(name, '\n') == NULL;
}

size_t
login_text(const struct login *login, const char *principal, char out[LOGIN_TEXT_MAX])
{
	char nonce[2 * SHAI_NONCE_SIZE + 1];
	int length;

	if (!one_line(login->service) || !one_line(login->pipeline) || !one_line(principal))
		return 0;
	sodium_bin2hex(nonce, sizeof(nonce), login->nonce, SHAI_NONCE_SIZE);
	length = snprintf(out, LOGIN_TEXT_MAX, SHAI_SIGNED_PREFIX "%s\n%s\n%s\n%s", login->service,
	    login->pipeline, principal, nonce);
	return length > 0 && length < (int)LOGIN_TEXT_MAX ? (size_t)length : 0;
}

/*
 * Writes a name in quotes, with quotes and what is not printable ASCII escaped: it came
 * from a client that nobody knows. A name that is too long is cut.
 */
static void
quote(const char *name, char *out, size_t size)
{
	size_t at = 0;

	out[at++] = '"';
	for (; *name != '\0' && at + sizeof("\\x00\"") <= size; name++) {
		unsigned char byte = (unsigned char)*name;

		if (byte == '"' || byte == '\\')
			out[at++] = '\\';
		if (byte >= ' ' && byte < 0x7f)
			out[at++] = (char)byte;
		else
			at += (size_t)sprintf(out + at, "\\x%02x", byte);
	}
	out[at++] = '"';
	out[at] = '\0';
}

struct principal *
login_verify(const struct login *login, const struct keys *keys,
    const struct shai_authenticate *request, char reason[SHAI_REASON_MAX])
{
	struct principal *principal = keys_find(keys, request->principal);
	char text[LOGIN_TEXT_MAX], name[SHAI_REASON_MAX - 64];
	size_t length;

	if (principal == NULL) {
		quote(request->principal, name, sizeof(name));
		snprintf(reason, SHAI_REASON_MAX,
		    "principal %s is not known; register its public key", name);
		return NULL;
	}
	length = login_text(login, principal->name, text);
	if (length > 0 && crypto_sign_verify_detached(request->signature,
			      (const unsigned char *)text, length, principal->key) == 0)
		return principal;
	snprintf(reason, SHAI_REASON_MAX,
	    "the signature does not match %s's key and this connection's nonce", principal->name);
	return NULL;
}
