/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A query, as the front end writes it on a line:
 * {"query":17,"user":"alice","friends":["bob"],"text":"aback","count":10,"checked":false}
 */
#ifndef SYSE_ENGINE_REQUEST_H
#define SYSE_ENGINE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define REQUEST_LINE_MAX 4095 /* bytes, with the line feed: one atomic write to a pipe */

struct request {
	uint32_t query; /* the requester's number for it; the answer repeats it */
	uint32_t count; /* how many results are wanted, 1..SHAI_BATCH_MAX */
	bool checked;   /* the answer goes through the reference monitor */
	/* Valid until request_release. */
	const char *user;
	const json_t *friends; /* of strings, possibly NULL */
	json_t *line;
};

/*
 * Reads a line. Returns NULL, or what is wrong with it; query is then the query's number
 * if it could be read, or 0. Unknown fields are skipped.
 */
const char *request_read(struct request *request, const char *line, size_t length);

/* To be called after request_read in any case. */
void request_release(struct request *request);

#endif
