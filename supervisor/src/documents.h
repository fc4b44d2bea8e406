/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Users' documents: directories for sessions, and single documents for workers that
 * cannot open them natively.
 */
#ifndef SUPERVISOR_DOCUMENTS_H
#define SUPERVISOR_DOCUMENTS_H

#include "supervisor.h"

/* Directories that go with a record. */
struct grant {
	struct mount *held[SHAI_DIRECTORIES_MAX];
	size_t count;
};

/*
 * Takes over the view's descriptor, and maps the class table, which stays the caller's.
 * Returns 0, or -1 with errno.
 */
int documents_begin(struct supervisor *s, int view, int classes);

/*
 * Grants the directories of the first of these classes, as many as there can be; none
 * where there are no detached mounts. Appends their descriptors, which stay the
 * supervisor's until documents_return.
 */
struct grant documents_grant(
    struct supervisor *s, const uint32_t *classes, size_t count, struct descriptors *with);
void documents_return(struct supervisor *s, const struct grant *grant);

/* Whether the document is one of the session's set. The session is bound in mode shai. */
bool documents_includes(const struct supervisor *s, const struct session *session, uint32_t id);

/*
 * Asks the monitor with a whole record: a SHAI_OPEN, SHAI_WRITE, SHAI_CHOICES or SHAI_CHOOSE. Until
 * it has answered, the session's messages and transfers wait: whoever asks without end keeps it
 * busy with one question at a time.
 */
void documents_ask(
    struct supervisor *s, struct session *session, const struct shai_header *request);

/*
 * A bound worker's SHAI_OPEN. Documents of classes in the session's set are opened here.
 * With any other document the message goes to the monitor, which decides and records.
 */
void documents_open(
    struct supervisor *s, struct session *session, const struct worker_record *record);

/*
 * Answers what the monitor was asked. If the session's set has grown, the worker learns of it
 * first: it is now that it reads what it is sent.
 */
void documents_answer(struct supervisor *s, struct session *session, struct bytes answer,
    const struct descriptors *with);

#endif
