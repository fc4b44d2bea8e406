/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Replies of the key-value store under libFuzzer, in two parts, since they arrive in parts.
 * Whatever comes, no reply is one that the random token answers.
 */
#include "demand.h"
#include "replies.h"

static void
take(struct replies *replies)
{
	enum reply reply;

	do {
		reply = replies_next(replies);
		demand(reply != REPLY_PROBE);
	} while (reply != REPLY_NONE && reply != REPLY_BROKEN);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replies replies = {.reader = NULL};
	size_t first;

	if (size == 0)
		return 0;
	first = data[0] < size - 1 ? data[0] : size - 1;
	demand(replies_begin(&replies));
	replies_draw_token(&replies);
	demand(replies_feed(&replies, (const char *)data + 1, first));
	take(&replies);
	if (replies_feed(&replies, (const char *)data + 1 + first, size - 1 - first))
		take(&replies);
	replies_end(&replies);
	return 0;
}
