/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads the replies of a key-value store for the few that a supervisor expects. What else
 * comes is read over, and not kept.
 */
#ifndef SUPERVISOR_REPLIES_H
#define SUPERVISOR_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLIES_TOKEN_SIZE 16 /* random bytes of a token */

enum reply {
	REPLY_NONE,   /* the next one is not complete */
	REPLY_BROKEN, /* what came breaks the protocol; nothing can be read any more */
	REPLY_OK,     /* the status "OK" */
	REPLY_RESET,  /* the status "RESET" */
	REPLY_PROBE,  /* the error that the store does not know the token as a command */
	REPLY_OTHER,
};

struct replies {
	struct redisReader *reader; /* NULL: not begun */
	char token[2 * REPLIES_TOKEN_SIZE + 1];
	enum reply last; /* the last one that began, not within another one */
};

/* Begins to read. Must not be moved until replies_end. Returns false without memory. */
bool replies_begin(struct replies *replies);
void replies_end(struct replies *replies);

/* Draws a token, which nobody else knows. */
void replies_draw_token(struct replies *replies);

/* Adds bytes that the store sent. Returns false without memory. */
bool replies_feed(struct replies *replies, const char *bytes, size_t length);

/* Takes the next reply from the bytes. One within another, or in a string, is none. */
enum reply replies_next(struct replies *replies);

/* Reports whether no bytes are left after the last reply. */
bool replies_empty(const struct replies *replies);

#endif
