/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The monitor's records, and what they change.
 */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

#include "supervisor.h"

/*
 * Watches the control socket. When it ends, or brings a record that it must not, s->lost
 * becomes true and everything is killed. Returns 0, or -1 with errno.
 */
int control_begin(struct supervisor *s, int socket);

#endif
