/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Decodes requests, their answers, and the requests of a session to its stub, as
 * records.h does. Pure.
 */
#ifndef SHAI_REQUESTS_DECODE_H
#define SHAI_REQUESTS_DECODE_H

#include <stdbool.h>

#include "paths.h"
#include "records.h"
#include "shai_requests.h"

const char *shai_decode_placed(
    struct shai_bytes record, uint64_t sequence, struct shai_placed *out);

const char *shai_decode_place(struct shai_bytes record, uint64_t sequence, struct shai_place *out);

/* *extra becomes the bytes that follow the answer, which some answers have. */
const char *shai_decode_answer(
    struct shai_bytes record, uint64_t sequence, struct shai_answer *out, struct shai_bytes *extra);

const char *shai_decode_request_path(struct shai_bytes record, struct shai_request_path *out);
const char *shai_decode_stub_directory(struct shai_bytes record, struct shai_stub_directory *out);

/* *data becomes the bytes to write. */
const char *shai_decode_stub_write(
    struct shai_bytes record, struct shai_stub_write *out, struct shai_bytes *data);

/* Reports whether the decisions grant a class. NULL grants nothing. */
bool shai_decisions_grant(const struct shai_decisions *decisions, uint32_t class);

/*
 * Reports whether the decisions cover an open of a path with these flags of open(2):
 * the path must lie beneath a class that they grant, and the open be for reading
 * only. path is relative to the view and normal. *class and *rest are as in
 * shai_view_class.
 */
bool shai_decisions_cover(const struct shai_decisions *decisions, const char *path, int flags,
    uint32_t *class, const char **rest);

#endif
