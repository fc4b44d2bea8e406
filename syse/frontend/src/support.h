/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The support's front end: shows an employee one document of a user, after it has written the
 * access to the log.
 */
#ifndef SYSE_SUPPORT_H
#define SYSE_SUPPORT_H

#include <stdbool.h>
#include <time.h>

#include "document.h"
#include "text.h"
#include "worker.h"

#define SUPPORT_LOG "/support/accesses" /* a conduit of type access-log; not in mode baseline */
#define SUPPORT_NAME_MAX 1024           /* bytes of a document's name */
#define SUPPORT_REASON_MAX 512

/*
 * Appends the entry that principal accesses the document called name at a time (UTC), in the
 * canonical form of the type access-log, with its line break.
 */
void support_entry(struct text *entry, const char *principal, const char *name, time_t when);

/*
 * Writes the entry about a document, in mode baseline to standard error, then opens and reads it.
 * name is its name in the pipeline
 * ("/corpus/private/alice/1.txt"), id its conduit's number; if they are not of one document, the
 * entry is about another one, and this one stays closed.
 *
 * Returns the HTTP status: 200, or 403 with the reason if the entry or the document is refused.
 */
int support_read(struct worker *worker, const char *name, uint32_t id, struct document *document,
    char reason[SUPPORT_REASON_MAX]);

#endif
