/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What each method and path does, and who may use it.
 */
#ifndef SYSE_ROUTES_H
#define SYSE_ROUTES_H

#include "http.h"
#include "response.h"
#include "worker.h"

/* Answers one request. Sets response->close when the session ends with it. */
void routes_handle(
    struct worker *worker, const struct http_request *request, struct response *response);

#endif
