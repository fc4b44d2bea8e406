/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Messages to standard error, but only some of them when there are many. They hold
 * nothing that a user wrote: others read the log.
 */
#ifndef SYSE_ENGINE_COMPLAINTS_H
#define SYSE_ENGINE_COMPLAINTS_H

/* Logs the first ten, then one in a thousand. May be called from any thread. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

#endif
