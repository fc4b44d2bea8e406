/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The roll-back code (rollback_code.S), which sealed workers map.
 */
#ifndef SUPERVISOR_ROLLBACK_H
#define SUPERVISOR_ROLLBACK_H

#include <stdint.h>

#include "shai_rollback.h"

extern const uint8_t rollback_code[SHAI_ROLLBACK_CODE_SIZE];

/*
 * Makes a file in memory with the code, which nobody can change or execute as a program.
 * Returns its descriptor, or -1 with errno.
 */
int rollback_open(void);

#endif
