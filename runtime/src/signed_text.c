/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "shai.h"

void
shai_nonce_hex(const uint8_t nonce[SHAI_NONCE_SIZE], char out[SHAI_NONCE_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHAI_NONCE_SIZE; i++) {
		out[2 * i] = digits[nonce[i] >> 4];
		out[2 * i + 1] = digits[nonce[i] & 15];
	}
	out[2 * SHAI_NONCE_SIZE] = '\0';
}

size_t
shai_signed_text(
    const struct shai_session *session, const char *principal, char out[SHAI_SIGNED_TEXT_SIZE])
{
	const char *line[] = {session->service, session->pipeline, principal};
	size_t length = sizeof(SHAI_SIGNED_PREFIX) - 1;

	memcpy(out, SHAI_SIGNED_PREFIX, length);
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		size_t size = strnlen(line[i], SHAI_NAME_MAX);

		/* With a line break, a name could imitate the next line. */
		if (size == 0 || size == SHAI_NAME_MAX || memchr(line[i], '\n', size) != NULL)
			return 0;
		memcpy(out + length, line[i], size);
		length += size;
		out[length++] = '\n';
	}
	shai_nonce_hex(session->nonce, out + length);
	return length + SHAI_NONCE_HEX_SIZE - 1;
}
