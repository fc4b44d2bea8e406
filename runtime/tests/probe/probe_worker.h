/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The commands of probe_worker, which answer over the user's connection. Each gets
 * the rest of its line, which it may change.
 */
#ifndef SHAI_TESTS_PROBE_WORKER_H
#define SHAI_TESTS_PROBE_WORKER_H

#include "shai.h"

#ifdef __GLIBC__
#include <string.h>
#define error_name strerrorname_np
#else
#include "error_name.h"
#endif

#define LINE 4096

extern struct shai_session session;

/* Answers with a line, or ends the process without a connection. */
void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Answers with errno's name and a reason. */
void answer_error(const char *reason);

/* worker_conduits.c: what a session may open, read and write. */
void probe_authenticate(char *rest);
void probe_open(char *rest);
void probe_receive(char *rest);
void probe_read(char *rest);
void probe_native(char *rest);
void probe_beneath(char *rest);
void probe_raw(char *rest);
void probe_query(char *rest);
void probe_get(char *rest);
void probe_push(char *rest);
void probe_write(char *rest);
void probe_replace(char *rest);

/* Calls shai_write with the content that a text stands for. */
int probe_write_content(
    struct shai_session *by, const char *conduit, const char *text, uint32_t flags);

/* Reads a signature in hexadecimal; digits that are not there are zeros. hex may be NULL. */
void probe_signature(const char *hex, uint8_t signature[SHAI_SIGNATURE_SIZE]);

/* worker_choices.c: which policy a session's user chooses. */
void probe_choices(char *rest);
void probe_choose(char *rest);

/* worker_remains.c: what a session could leave to the next one, or take from it. */
void probe_remember(char *rest);
void probe_recall(char *rest);
void probe_search(char *rest);
void probe_leave(char *rest);
void probe_left(char *rest);
void probe_descriptors(char *rest);
void probe_count(char *rest);
void probe_counted(char *rest);
void probe_again(char *rest);
void probe_linger(char *rest);

#endif
