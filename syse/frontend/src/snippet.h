/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The excerpt of a document that is shown with a result.
 */
#ifndef SYSE_SNIPPET_H
#define SYSE_SNIPPET_H

#include "terms.h"
#include "text.h"

#define SNIPPET_SIZE 240  /* maximum number of bytes of the document that are shown */
#define SNIPPET_BEFORE 80 /* bytes of these before the hit */
#define SNIPPET_ELLIPSIS "\xe2\x80\xa6"

/*
 * Appends the text around the first hit of a term: a whole word if there is one, else
 * the beginning of a word, else the document's beginning. It begins and ends at word
 * boundaries if they are in reach. White space becomes single spaces, and an ellipsis
 * marks where the document continues.
 */
void snippet_write(struct text *out, const struct terms *terms, const char *document, size_t size);

#endif
