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
    const uint8_t nonce[SHAI_NONCE_SIZE], const char *principal, char out[SHAI_SIGNED_TEXT_SIZE])
{
	const size_t prefix = sizeof(SHAI_SIGNED_PREFIX) - 1;
	size_t name = strnlen(principal, SHAI_NAME_MAX);

	/* With a line break, a principal's name could imitate the line of the nonce. */
	if (name == 0 || name == SHAI_NAME_MAX || memchr(principal, '\n', name) != NULL)
		return 0;
	memcpy(out, SHAI_SIGNED_PREFIX, prefix);
	memcpy(out + prefix, principal, name);
	out[prefix + name] = '\n';
	shai_nonce_hex(nonce, out + prefix + name + 1);
	return prefix + name + 1 + SHAI_NONCE_HEX_SIZE - 1;
}
