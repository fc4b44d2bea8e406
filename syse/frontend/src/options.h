/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The command line.
 */
#ifndef SYSE_OPTIONS_H
#define SYSE_OPTIONS_H

#include "settings.h"

/*
 * Reads the arguments of main into settings, which have the values of what is not given. Ends the
 * program with the reason if they are wrong, and for --help.
 */
void options_parse(struct settings *settings, int argc, char **argv);

#endif
