/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The attributes of a document, before its text: one "field: value" a line, ended by an
 * empty line. The search uses them; enforcement uses the policy on the document's path.
 */
#ifndef SYSE_ENGINE_HEADER_H
#define SYSE_ENGINE_HEADER_H

#include <stddef.h>

#define HEADER_SIZE_MAX 4096  /* bytes */
#define HEADER_OWNER_SIZE 256 /* with the NUL */

enum visibility {
	VISIBILITY_PUBLIC = 1, /* everybody; such a document has no owner */
	VISIBILITY_PRIVATE,    /* its owner */
	VISIBILITY_FRIENDS     /* its owner and the owner's friends */
};

struct header {
	enum visibility visibility;
	char owner[HEADER_OWNER_SIZE]; /* empty for a public document */
};

/*
 * Reads the header at the beginning of a document. Returns NULL, or what is wrong with
 * it. Unknown fields are skipped.
 */
const char *header_read(const char *text, size_t size, struct header *header);

#endif
