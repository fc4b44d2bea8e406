/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The history of the results that a user has opened.
 */
#ifndef SYSE_CLICK_H
#define SYSE_CLICK_H

#include "document.h"
#include "worker.h"

/*
 * Opens a document, and puts its number and title at the head of the user's history of clicks.
 *
 * Returns the HTTP status: 200; or 403 and 502 (see document_open) or 503 (see tuples_failed) with
 * the reason.
 */
int click_record(struct worker *worker, uint32_t id, struct document *document, char *reason,
    size_t reason_size);

#endif
