/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The history of the results that a user has opened.
 */
#ifndef SYSE_CLICK_H
#define SYSE_CLICK_H

#include "worker.h"

/*
 * Puts the number and the title of a document at the head of the user's history of clicks. The
 * title is read from the document, which the user has to be allowed to read.
 *
 * Returns the HTTP status: 204; or 403 and 502 (see document_open) or 503 (see tuples_failed) with
 * the reason.
 */
int click_record(struct worker *worker, uint32_t id, char *reason, size_t reason_size);

#endif
