/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures. Where time is emulated only ratios mean anything, so ratios of things measured
 * in the same run are what is printed.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdint.h>

/* Measures in a process of its own, and returns the least of five. */
uint64_t measure(uint64_t (*what)(void));

void print_ratio(const char *what, uint64_t of, uint64_t to);

void print_session_figures(void);

#endif
