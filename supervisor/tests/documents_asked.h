/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Documents that a worker of the real supervisor gets: what the monitor is asked about them, and
 * what another task writes into the channel of slot 0.
 */
#ifndef SUPERVISOR_TESTS_DOCUMENTS_ASKED_H
#define SUPERVISOR_TESTS_DOCUMENTS_ASKED_H

#include "harness.h"

/* What the monitor is asked about documents: by a worker, or because of a transfer to it. */
struct question {
	struct shai_control_relay head;
	struct shai_open asked;
};

/* Waits for the next one, about so many documents. */
struct question question_about(struct harness *h, uint32_t count);

/*
 * Answers it with a status for each document. Files come with those that are 0 if there are any:
 * nobody looks at those of a transfer.
 */
void question_answer(struct harness *h, const struct question *question, const int32_t *status,
    const struct descriptors *with);

/* Waits for a question about one document, and refuses that with EACCES. */
void question_refuse(struct harness *h, uint32_t id);

/* What a worker gets of a channel: from the supervisor, or in the buffer of its gate. */
struct passed {
	struct shai_header header;
	struct shai_transfer transfer;
};

/* The number of a query of the client's session; 0 is its first. */
uint32_t query_of(const struct client *client, uint32_t query);

/* Writes a transfer of two numbers that answers a query of the client's session. */
void channel_write(const struct harness *h, const struct client *client, uint32_t query,
    uint32_t first, uint32_t second);

/* Whether a transfer is this one. */
void expect_transfer(const struct passed *passed, const struct client *client, uint32_t query,
    uint32_t first, uint32_t second);

/* The next message that the client's worker reports is such a transfer. */
void client_passed(const struct client *client, uint32_t query, uint32_t first, uint32_t second);

#endif
