/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The policy of one document, which its owner chooses: "make this private". The owner's browser
 * signs the choice, and the monitor verifies it. This program only passes both on.
 */
#ifndef SYSE_POLICY_H
#define SYSE_POLICY_H

#include "http.h"
#include "response.h"
#include "worker.h"

/* Answers GET /policy?id=N: what is in force, and what the session's user may choose and signs. */
void policy_offer(struct worker *worker, uint32_t id, struct response *response);

/* Answers POST /policy?id=N {"policy": text, "signature": 128 hexadecimal digits}. */
void policy_choose(struct worker *worker, uint32_t id, const struct http_request *request,
    struct response *response);

#endif
