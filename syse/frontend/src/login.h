/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The login of a connection: the client signs the connection's nonce, and the monitor
 * (in mode baseline, this process) verifies the signature.
 */
#ifndef SYSE_LOGIN_H
#define SYSE_LOGIN_H

#include "http.h"
#include "response.h"
#include "worker.h"

#define LOGIN_ATTEMPTS_MAX 3 /* on one connection; then it is closed */

/* Answers GET /session: the nonce to sign, and the user who is logged in. */
void login_describe(const struct worker *worker, struct response *response);

/* Answers POST /session {"principal": name, "signature": 128 hexadecimal digits}. */
void login_attempt(
    struct worker *worker, const struct http_request *request, struct response *response);

#endif
