/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Functions for both starting a task and serving it.
 */
#ifndef SHAI_TESTS_FAKE_DESCRIPTORS_H
#define SHAI_TESTS_FAKE_DESCRIPTORS_H

#include <sys/capsicum.h>

#include "fake_sandbox.h"

/* Moves a descriptor out of the way of the task's numbers, close-on-exec. */
int fake_aside(int descriptor);

/* Two sockets that take records of any size, aside. */
void fake_pair(int type, int ends[2]);

/* Limits a descriptor's rights and returns it. */
int fake_limited(int descriptor, const cap_rights_t *rights);

/* The path of one of the test's files; valid until the next call. */
const char *fake_path(const struct fake_sandbox *fake, const char *name);

#endif
