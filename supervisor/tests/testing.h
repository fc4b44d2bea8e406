/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUPERVISOR_TESTING_H
#define SUPERVISOR_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs some of the headers above. */
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
