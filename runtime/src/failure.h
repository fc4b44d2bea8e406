/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_FAILURE_H
#define SHAI_FAILURE_H

/* Records a failure for shai_reason(), and sets errno to error. */
void shai_record_failure(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The same with the value -1 for the caller to return. A macro, so that static
 * analysers see the -1.
 */
#define shai_fail(...) (shai_record_failure(__VA_ARGS__), -1)

#endif
