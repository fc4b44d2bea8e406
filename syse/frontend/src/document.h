/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A document of the corpus: header lines "title: …", "owner: …",
 * "visibility: …", an empty line, then the text.
 */
#ifndef SYSE_DOCUMENT_H
#define SYSE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shai.h"
#include "snippet.h"
#include "terms.h"

#define DOCUMENT_READ_MAX 65536 /* bytes of a document that are read */
#define DOCUMENT_TITLE_MAX 256  /* longer ones are cut */
#define DOCUMENT_FIELD_MAX 96
/* The excerpt, two ellipses. */
#define DOCUMENT_SNIPPET_MAX (SNIPPET_SIZE + 8)

struct field {
	size_t length;
	char data[DOCUMENT_FIELD_MAX];
};

/*
 * The parts of a document that are shown. Text may be invalid UTF-8; writers replace
 * the invalid bytes.
 */
struct document {
	uint32_t id;
	bool interesting; /* it mentions one of the user's interests */
	size_t title_length;
	char title[DOCUMENT_TITLE_MAX];
	struct field owner;      /* "-" for public documents */
	struct field visibility; /* "public", "friends" or "private", but as the file says */
	size_t snippet_length;
	char snippet[DOCUMENT_SNIPPET_MAX];
};

/* Fills in everything but the id from the file's bytes. */
void document_parse(struct document *document, const char *data, size_t size,
    const struct terms *query, const struct terms *interests);

/*
 * Reads an open document and parses it. The descriptor stays the caller's.
 * Returns 0 or -1 with errno of read(2).
 */
int document_read(struct document *document, int descriptor, const struct terms *query,
    const struct terms *interests);

/*
 * Opens and reads one document of the session's user. Returns the HTTP status: 200, 403 if it is
 * withheld, or 502 if it cannot be read, the last two with the reason.
 */
int document_open(struct shai_session *session, uint32_t id, struct document *document,
    char *reason, size_t reason_size);

/* Moves the interesting documents to the front, and otherwise keeps the order. */
void document_personalise(struct document *documents, size_t count);

#endif
