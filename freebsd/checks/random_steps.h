/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The steps of random programs: each makes calls with random arguments and returns what
 * they answered.
 */
#ifndef RANDOM_STEPS_H
#define RANDOM_STEPS_H

#include <stdint.h>

#define RANDOM_FILE 3 /* an open file that a program finds */

/* Begins the program that follows from a number, which is not 0. */
void random_begin(uint32_t seed);

/* Makes its next step, and says of which kind it was. */
uint64_t random_step(uint32_t *kind);

#endif
